//! What holds for every schedule, whatever its parameters.

use plimsoll_schedule::{Arrivals, Schedule, Step};
use proptest::prelude::*;

const NS_PER_SECOND: f64 = 1e9;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![Just(Arrivals::Poisson), Just(Arrivals::Constant)]
}

/// Rates over four powers of ten.
fn rate() -> impl Strategy<Value = f64> {
    (0.0f64..4.0).prop_map(|power| 10f64.powf(power))
}

fn step() -> impl Strategy<Value = Step> {
    (rate(), 0.001f64..3.0).prop_map(|(rate, seconds)| Step { rate, seconds })
}

fn open_schedule() -> impl Strategy<Value = Schedule> {
    let late_limit_ms = None;
    prop_oneof![
        (rate(), any::<u64>()).prop_map(move |(rate, seed)| Schedule::Constant { rate, seed, late_limit_ms }),
        (rate(), any::<u64>()).prop_map(move |(rate, seed)| Schedule::Poisson { rate, seed, late_limit_ms }),
        (arrivals(), prop::collection::vec(step(), 1..6), any::<u64>())
            .prop_map(move |(arrivals, steps, seed)| Schedule::Steps { arrivals, steps, seed, late_limit_ms }),
        (arrivals(), rate(), rate(), 0.01f64..5.0, any::<u64>()).prop_map(
            move |(arrivals, from, to, seconds, seed)| {
                Schedule::Ramp { arrivals, from, to, seconds, seed, late_limit_ms }
            }
        ),
    ]
}

/// The integral of the rate from 0 to `seconds`.
fn expected(schedule: &Schedule, seconds: f64) -> f64 {
    match schedule {
        Schedule::Closed { .. } => unreachable!("only open loops have a rate"),
        Schedule::Constant { rate, .. } | Schedule::Poisson { rate, .. } => rate * seconds,
        Schedule::Steps { steps, .. } => {
            let (mut left, mut sum) = (seconds, 0.0);
            for step in steps {
                sum += step.rate * left.min(step.seconds);
                left -= left.min(step.seconds);
            }
            sum + left * steps.last().map_or(0.0, |step| step.rate)
        }
        Schedule::Ramp { from, to, seconds: length, .. } => {
            let inside = seconds.min(*length);
            let at_end = from + (to - from) * inside / length;
            (from + at_end) / 2.0 * inside + to * (seconds - inside)
        }
    }
}

fn is_poisson(schedule: &Schedule) -> bool {
    matches!(
        schedule,
        Schedule::Poisson { .. }
            | Schedule::Steps { arrivals: Arrivals::Poisson, .. }
            | Schedule::Ramp { arrivals: Arrivals::Poisson, .. }
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_rise_from_the_start(schedule in open_schedule(), first in 0u64..1 << 50) {
        prop_assert_eq!(schedule.validate(), Ok(()));
        let mut open = schedule.open(first).unwrap();
        let times: Vec<i64> = (first..first + 3_000).map(|index| open.due_ns(index)).collect();
        prop_assert!(times[0] >= 0);
        prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn a_time_does_not_depend_on_the_way_there(
        schedule in open_schedule(),
        first in 0u64..1 << 50,
        mut walk in prop::collection::vec(0u64..5_000, 1..60),
    ) {
        let mut every = schedule.open(first).unwrap();
        let times: Vec<i64> = (first..first + 5_000).map(|index| every.due_ns(index)).collect();
        let mut unordered = every.clone();
        for &place in &walk {
            prop_assert_eq!(unordered.due_ns(first + place), times[place as usize]);
        }
        walk.sort_unstable();
        let mut rising = schedule.open(first).unwrap();
        for &place in &walk {
            prop_assert_eq!(rising.due_ns(first + place), times[place as usize]);
        }
    }

    #[test]
    fn planned_within_counts_what_is_due_before(schedule in open_schedule(), first in 0u64..1 << 50, ms in 0i64..4_000) {
        let mut open = schedule.open(first).unwrap();
        let duration_ns = ms * 1_000_000;
        let planned = open.planned_within(duration_ns);
        prop_assert!(planned == 0 || open.due_ns(first + planned - 1) < duration_ns);
        prop_assert!(open.due_ns(first + planned) >= duration_ns);
    }

    #[test]
    fn counts_are_the_integral_of_the_rate(schedule in open_schedule(), seconds in 0.1f64..8.0) {
        let open = schedule.open(0).unwrap();
        let duration_ns = (seconds * NS_PER_SECOND).round() as i64;
        let (planned, expected) = (open.planned_within(duration_ns) as f64, expected(&schedule, seconds));
        // Six standard deviations of a Poisson count; equal distances are off by the first, at time 0, at most.
        let tolerance = if is_poisson(&schedule) { 6.0 * expected.sqrt() + 6.0 } else { 1.0 + 1e-6 * expected };
        prop_assert!((planned - expected).abs() <= tolerance, "{planned} instead of {expected}");
        prop_assert!((open.mean_rate(duration_ns) * seconds - expected).abs() <= 1e-6 * expected);
    }

    #[test]
    fn think_times_are_pure_and_within_their_bounds(mean in 0.001f64..50.0, low in 0.0f64..5.0, more in 0.0f64..5.0, seed: u64) {
        let text = format!(
            r#"{{"kind": "closed", "think_ms": {{"exponential": {mean}, "max": {}}}, "keying_ms": {{"uniform": [{low}, {}]}}, "seed": {seed}}}"#,
            3.0 * mean, low + more
        );
        let schedule: Schedule = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(schedule.validate(), Ok(()));
        let waits: Vec<i64> = (0..500).map(|index| schedule.wait_ns(index)).collect();
        prop_assert!(waits.iter().all(|&wait| wait as f64 >= low * 1e6 - 1.0 && wait as f64 <= (low + more + 3.0 * mean) * 1e6 + 1.0));
        prop_assert!((0..500).rev().all(|index| schedule.wait_ns(index as u64) == waits[index]));
    }
}

/// The largest distance between the empirical distribution of `values` and `cdf`.
fn kolmogorov_smirnov(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let distance = |(place, value): (usize, &f64)| {
        let (below, above) = (place as f64 / count, (place + 1) as f64 / count);
        (cdf(*value) - below).abs().max((above - cdf(*value)).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max)
}

#[test]
fn poisson_distances_are_exponential_and_independent() {
    const COUNT: usize = 20_000;
    for seed in 1..=10 {
        let schedule = Schedule::Poisson { rate: 1_000.0, seed, late_limit_ms: None };
        let mut open = schedule.open(seed * 1_000_003).unwrap();
        let times: Vec<i64> = (0..COUNT as u64).map(|place| open.due_ns(seed * 1_000_003 + place)).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        // The critical value at a probability of 0.001 of being wrong is 1.95 / sqrt(n).
        let distance = kolmogorov_smirnov(gaps.clone(), |gap| 1.0 - (-gap).exp());
        assert!(distance < 1.95 / (COUNT as f64).sqrt(), "seed {seed}: {distance}");
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let products: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        let correlation = products / gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        assert!(correlation.abs() < 4.0 / (COUNT as f64).sqrt(), "seed {seed}: {correlation}");
    }
}

#[test]
fn think_times_have_their_distribution() {
    const COUNT: u64 = 20_000;
    let of = |text: &str| -> Vec<f64> {
        let schedule: Schedule = serde_json::from_str(text).unwrap();
        (0..COUNT).map(|index| schedule.wait_ns(index) as f64 / 1e6).collect()
    };
    let critical = 1.95 / (COUNT as f64).sqrt();
    let thinking = of(r#"{"kind": "closed", "think_ms": {"exponential": 12.0}}"#);
    assert!(kolmogorov_smirnov(thinking, |ms| 1.0 - (-ms / 12.0).exp()) < critical);
    let keying = of(r#"{"kind": "closed", "keying_ms": {"uniform": [2, 10]}}"#);
    assert!(kolmogorov_smirnov(keying, |ms| (ms - 2.0) / 8.0) < critical);
    assert!(of(r#"{"kind": "closed", "think_ms": 2.5, "keying_ms": 1}"#).iter().all(|&ms| ms == 3.5));
}

#[test]
fn requests_read_as_the_contract_has_them() {
    let read = |text: &str| serde_json::from_str::<Schedule>(text).unwrap();
    assert_eq!(read(r#"{"kind": "closed", "think_ms": 0}"#), Schedule::default());
    let poisson = Schedule::Poisson { rate: 500.0, seed: 1, late_limit_ms: Some(250.0) };
    assert_eq!(read(r#"{"kind": "poisson", "rate": 500, "late_limit_ms": 250}"#), poisson);
    let steps =
        read(r#"{"kind": "steps", "steps": [{"rate": 1, "seconds": 2}, {"rate": 3, "seconds": 4}], "seed": 9}"#);
    let Schedule::Steps { arrivals: Arrivals::Poisson, steps: list, seed: 9, late_limit_ms: None } = &steps else {
        panic!("{steps:?}")
    };
    assert_eq!((list.len(), list[1].rate), (2, 3.0));
    let ramp = read(r#"{"kind": "ramp", "arrivals": "constant", "from": 10, "to": 20, "seconds": 3}"#);
    for schedule in [steps, ramp, poisson, Schedule::default()] {
        let text = serde_json::to_string(&schedule).unwrap();
        assert_eq!(read(&text), schedule, "every default is written out: {text}");
    }
}

#[test]
fn impossible_schedules_name_the_field() {
    for (text, field) in [
        (r#"{"kind": "closed", "think_ms": -1}"#, "schedule.think_ms"),
        (r#"{"kind": "closed", "keying_ms": {"uniform": [3, 2]}}"#, "schedule.keying_ms.uniform[1]"),
        (r#"{"kind": "closed", "think_ms": {"exponential": -3}}"#, "schedule.think_ms.exponential"),
        (r#"{"kind": "closed", "think_ms": {"exponential": 3, "max": -1}}"#, "schedule.think_ms.max"),
        (r#"{"kind": "constant", "rate": 0}"#, "schedule.rate"),
        (r#"{"kind": "poisson", "rate": 1e9}"#, "schedule.rate"),
        (r#"{"kind": "poisson", "rate": 1, "late_limit_ms": -1}"#, "schedule.late_limit_ms"),
        (r#"{"kind": "steps", "steps": []}"#, "schedule.steps"),
        (r#"{"kind": "steps", "steps": [{"rate": 1, "seconds": 0}]}"#, "schedule.steps[0].seconds"),
        (r#"{"kind": "ramp", "from": 1, "to": 0, "seconds": 1}"#, "schedule.to"),
    ] {
        let error = serde_json::from_str::<Schedule>(text).unwrap().validate().unwrap_err();
        assert!(error.0.contains(field), "{text}: {}", error.0);
    }
    for (text, word) in [
        (r#"{"kind": "poisson"}"#, "rate"),
        (r#"{"kind": "poisson", "rate": 1, "rat": 2}"#, "rat"),
        (r#"{"kind": "closed", "think_ms": "x"}"#, "exponential"),
        (r#"{"kind": "closed", "think_ms": {"exponential": 1, "mix": 2}}"#, "exponential"),
        (r#"{"kind": "sawtooth"}"#, "sawtooth"),
    ] {
        let error = serde_json::from_str::<Schedule>(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}
