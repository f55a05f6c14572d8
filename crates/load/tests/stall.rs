//! A server that stands still for a while: open loops show that while, a closed loop hides it. The same with a second and a
//! real server is a test of the agent.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::Scripted;
use plimsoll_load::{Config, monotonic_ns};
use plimsoll_schedule::Schedule;
use std::time::Duration;
use support::undisturbed::undisturbed;
use support::{MS, Segment, constant, segment};

const SERVICE_NS: i64 = MS / 5;
const STALL_NS: i64 = 250 * MS;

/// A second, in the second quarter of which no reply comes.
fn stalled(schedule: Schedule) -> Segment {
    let begins_ns = monotonic_ns() + STALL_NS;
    let script = move |_| {
        let now_ns = monotonic_ns();
        let standing_still = (begins_ns..begins_ns + STALL_NS).contains(&now_ns);
        let wait_ns = if standing_still { begins_ns + STALL_NS - now_ns } else { 0 };
        Scripted::DoneAfter(wait_ns + SERVICE_NS)
    };
    let config = Config { schedule, patience_ns: 10 * STALL_NS, ..constant(1.0, 1_000) };
    segment(4, 2, &config, script)
}

#[test]
fn open_loops_show_silence_and_the_closed_loop_hides_it() {
    undisturbed(Duration::from_millis(10), || {
        let (rate, seed, late_limit_ms) = (2_000.0, 3, None);
        for schedule in
            [Schedule::Constant { rate, seed, late_limit_ms }, Schedule::Poisson { rate, seed, late_limit_ms }]
        {
            let segment = stalled(schedule);
            let identity = segment.outcomes.identity;
            assert_eq!(identity.planned, identity.done, "caught up, and nothing was left out");
            let [median, high, max] = [0.5, 0.999, 1.0].map(|quantile| segment.latency_ns(quantile) as i64);
            assert!(median < STALL_NS / 4, "three quarters did not meet it: {median}");
            assert!(high > STALL_NS * 95 / 100, "p99.9 shows it: {high}");
            assert!((STALL_NS * 95 / 100..STALL_NS * 2).contains(&max), "as does the largest: {max}");
            // A quarter of the plan was due while the server stood still, each a little less late than the one before.
            let late = (1..10).map(|tenth| segment.latency_ns(0.75 + 0.025 * f64::from(tenth)));
            assert!(late.is_sorted());
            assert!(segment.latency_ns(0.875) as i64 > STALL_NS * 3 / 10);
        }
        let closed = stalled(Schedule::default());
        let high = closed.latency_ns(0.999) as i64;
        assert!(high < STALL_NS / 2, "four transactions of very many waited: p99.9 is {high}");
        let waited = closed.column("end_ns").into_iter().zip(closed.column("planned_ns"));
        assert_eq!(waited.filter(|(end, planned)| end - planned > STALL_NS / 2).count(), 4, "one a connection");
    });
}
