//! Open loops: the plan is kept whatever the server does, and what it did not get to is counted.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended};
use plimsoll_schedule::{Arrivals, Schedule, Step};
use std::sync::Arc;
use std::time::Duration;
use support::undisturbed::undisturbed;
use support::{MS, constant, controlled, segment};

#[test]
fn poisson_arrivals_start_when_due_on_any_number_of_threads() {
    undisturbed(Duration::from_millis(2), || {
        for threads in 1..=4 {
            let schedule = Schedule::Poisson { rate: 3_000.0, seed: 5, late_limit_ms: None };
            let config = Config { schedule, ..constant(1.0, 500) };
            let segment = segment(16, threads, &config, |_| Scripted::DoneAfter(MS / 10));
            assert_eq!(segment.outcomes.ended, Ended::Seconds);
            assert_eq!(segment.outcomes.identity.done, segment.outcomes.identity.planned);
            assert!((segment.outcomes.planned_rate.unwrap() - 3_000.0).abs() < 1e-6);
            // Two cores that others may be using: the median says that starts are on time, the rest is scheduling.
            let lag_ns = segment.outcomes.lag_ns.value_at_quantile(0.5);
            assert!(lag_ns < 2 * MS as u64, "{threads} threads: median lag {lag_ns} ns");
            let ended = segment.outcomes.ended_ns - segment.outcomes.started_ns;
            assert!((500 * MS..1_500 * MS).contains(&ended), "a segment lasts as long as its plan: {ended}");
        }
    });
}

#[test]
fn steps_and_ramps_are_followed() {
    let steps = vec![Step { rate: 500.0, seconds: 0.1 }, Step { rate: 4_000.0, seconds: 0.1 }];
    let arrivals = Arrivals::Constant;
    let (seed, late_limit_ms) = (1, None);
    let steps = Schedule::Steps { arrivals, steps, seed, late_limit_ms };
    let ramp = Schedule::Ramp { arrivals, from: 500.0, to: 4_000.0, seconds: 0.2, seed, late_limit_ms };
    for schedule in [steps, ramp] {
        let config = Config { schedule, ..constant(1.0, 200) };
        let segment = segment(8, 2, &config, |_| Scripted::Done);
        assert!((449..=451).contains(&segment.outcomes.identity.done), "{:?}", segment.outcomes.identity);
        assert!((segment.outcomes.planned_rate.unwrap() - 2_250.0).abs() < 1.0);
    }
}

#[test]
fn a_number_of_transactions_ends_the_plan() {
    let config = Config { transactions: Some(300), duration_ns: None, ..constant(3_000.0, 0) };
    let segment = segment(4, 2, &config, |_| Scripted::Done);
    assert_eq!((segment.outcomes.ended, segment.outcomes.identity.done), (Ended::Transactions, 300));
    assert!((segment.outcomes.planned_rate.unwrap() - 3_000.0).abs() < 1.0);
    let both = Config { transactions: Some(50), duration_ns: Some(100 * MS), ..constant(3_000.0, 0) };
    assert_eq!(support::segment(4, 2, &both, |_| Scripted::Done).outcomes.identity.done, 50);
}

#[test]
fn a_backlog_is_worked_off_within_the_patience_in_the_order_of_the_plan() {
    // One connection, 200 a second at most, against 400 a second for 200 ms: 80 due, 40 done in time.
    let config = Config { patience_ns: 5_000 * MS, ..constant(400.0, 200) };
    let segment = segment(1, 1, &config, |_| Scripted::DoneAfter(5 * MS));
    assert_eq!(segment.outcomes.identity.done, 80);
    assert!(segment.column("index").is_sorted());
    let last = segment.latency_ns(1.0);
    assert!(last > 200 * MS as u64, "the last one waited for half of the others: {last}");
}

#[test]
fn what_the_patience_does_not_suffice_for_is_skipped_and_counted() {
    for threads in [1, 2] {
        let config = Config { patience_ns: 50 * MS, ..constant(2_000.0, 200) };
        let segment = segment(2, threads, &config, |_| Scripted::DoneAfter(10 * MS));
        let identity = segment.outcomes.identity;
        assert_eq!((identity.planned, segment.outcomes.ended), (400, Ended::Seconds));
        assert!(identity.skipped > 300 && identity.done > 0, "{identity:?}");
        let unbegun = segment.column("kind").iter().filter(|&&kind| kind == 255).count() as u64;
        assert_eq!(unbegun, identity.skipped);
        assert_eq!(segment.outcomes.lag_ns.len(), identity.done + identity.lost, "the lag of what was started");
    }
}

#[test]
fn operations_that_would_start_too_late_are_skipped_and_counted() {
    undisturbed(Duration::from_millis(2), || {
        let schedule = Schedule::Constant { rate: 2_000.0, seed: 1, late_limit_ms: Some(20.0) };
        let config = Config { schedule, patience_ns: 5_000 * MS, ..constant(1.0, 300) };
        let segment = segment(2, 1, &config, |_| Scripted::DoneAfter(4 * MS));
        let identity = segment.outcomes.identity;
        assert_eq!(identity.planned, 600);
        assert!(identity.skipped > 200 && identity.done > 50, "{identity:?}");
        let lag_ns = segment.outcomes.lag_ns.max();
        assert!(lag_ns < 25 * MS as u64, "nothing was started much later than the limit: {lag_ns}");
        let (start, planned) = (segment.column("start_ns"), segment.column("planned_ns"));
        let kinds = segment.column("kind");
        let late = (0..kinds.len()).filter(|&row| kinds[row] == 255);
        assert!(late.clone().all(|row| start[row] - planned[row] > 20 * MS), "only what was too late was skipped");
    });
}

#[test]
fn silence_is_abandoned_and_the_plan_still_accounted_for() {
    let config = Config { patience_ns: 50 * MS, ..constant(1_000.0, 100) };
    let segment = segment(3, 2, &config, |index| if index == 110 { Scripted::Silent } else { Scripted::Done });
    let outcomes = segment.outcomes;
    assert_eq!((outcomes.identity.lost, outcomes.identity.done), (1, 99));
    assert_eq!(outcomes.errors[0].sqlstate, "XXABN");
    let all_silent = support::segment(3, 2, &config, |_| Scripted::Silent).outcomes.identity;
    assert_eq!((all_silent.planned, all_silent.lost, all_silent.skipped), (100, 3, 97));
}

#[test]
fn lost_connections_leave_their_share_to_the_others() {
    let script = |index| match index {
        110 => Scripted::Lost,
        120 => Scripted::DoneThenClosed(MS),
        _ => Scripted::Done,
    };
    // The second is found to be gone when its thread looks, which the plan's 800 ms after it leave time for; and what is due next comes
    // 10 ms later, when it is gone for long, unless its thread is kept from running until then: it would be begun, and lost.
    undisturbed(Duration::from_millis(2), || {
        let outcomes = segment(3, 3, &constant(100.0, 1_000), script).outcomes;
        assert_eq!((outcomes.identity.lost, outcomes.identity.done, outcomes.identity.skipped), (1, 99, 0));
        assert_eq!(outcomes.connections_lost, 2);
    });
}

#[test]
fn what_a_lost_connection_leaves_goes_before_what_is_due_later() {
    undisturbed(Duration::from_millis(2), || {
        // Two connections on two threads, one transaction every 200 ms. The one that did the first has been given the third (due at
        // 400 ms) when it breaks; the other waits for the fourth (due at 600 ms).
        let script = |index| if index == 100 { Scripted::DoneThenClosed(300 * MS) } else { Scripted::Done };
        let segment = segment(2, 2, &constant(5.0, 1_000), script);
        assert_eq!((segment.outcomes.identity.done, segment.outcomes.connections_lost), (5, 1));
        let mut started: Vec<_> = segment.column("start_ns").into_iter().zip(segment.column("index")).collect();
        started.sort_unstable();
        assert!(started.iter().map(|(_, index)| index).is_sorted(), "in the order of the plan: {started:?}");
    });
}

#[test]
fn patience_begins_when_the_last_of_a_number_is_due() {
    // Indexes are taken ahead of their time: with as many threads the last is taken long before it is due.
    let config = Config { transactions: Some(3), duration_ns: None, patience_ns: 50 * MS, ..constant(5.0, 0) };
    let outcomes = segment(4, 4, &config, |_| Scripted::Done).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.done), (Ended::Transactions, 3), "{:?}", outcomes.identity);
}

#[test]
fn when_all_connections_are_gone_the_plan_ends_there() {
    let script = |index| if index >= 130 { Scripted::Lost } else { Scripted::Done };
    let config = constant(1_000.0, 60_000);
    let outcomes = segment(3, 2, &config, script).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.lost), (Ended::ConnectionsLost, 3));
    assert!(outcomes.identity.planned < 1_000, "{:?}", outcomes.identity);
}

#[test]
fn a_stop_ends_the_plan_and_the_backlog() {
    undisturbed(Duration::from_millis(2), || {
        for threads in [1, 3] {
            let control = Control::new(threads);
            let config = constant(4_000.0, 60_000);
            let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(2 * MS)));
            let segment = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    control.stop();
                });
                controlled(&opener, 3, &control, &config)
            });
            let identity = segment.outcomes.identity;
            assert_eq!(segment.outcomes.ended, Ended::Told);
            assert!((200..4_000).contains(&identity.planned), "{identity:?}");
            assert!(identity.skipped > 50, "1,500 a second were done, the rest was due and skipped: {identity:?}");
        }
    });
}

#[test]
fn sessions_rest_in_open_loops_too() {
    let segment = segment(8, 2, &constant(1_000.0, 100), |_| Scripted::DoneAfterRest(2 * MS));
    assert_eq!(segment.outcomes.identity.done, 100);
    assert!(segment.latency_ns(0.0) >= 2 * MS as u64);
}

#[test]
fn draws_of_nothing_are_skipped_on_time() {
    let script = |index: u64| if index.is_multiple_of(3) { Scripted::Skipped } else { Scripted::Done };
    let segment = segment(2, 2, &constant(1_500.0, 200), script);
    assert_eq!((segment.outcomes.identity.done, segment.outcomes.identity.skipped), (200, 100));
    assert!(segment.column("kind").iter().all(|&kind| kind == 0), "they were drawn");
}

#[test]
fn rows_of_a_sample_suffice_for_no_identity_but_the_counts_do() {
    let config = Config { rows_max: 0, sample_one_in: 7, ..constant(5_000.0, 200) };
    let outcomes = segment(4, 2, &config, |_| Scripted::Done).outcomes;
    assert_eq!((outcomes.identity.done, outcomes.rows.all_below_index), (1_000, config.first_index));
    assert!((80..220).contains(&outcomes.rows.recorded), "{:?}", outcomes.rows);
}

#[test]
fn seconds_are_told_apart() {
    let segment = segment(2, 2, &constant(500.0, 2_500), |_| Scripted::Done);
    let (second, count) = (segment.lag_seconds.column("second").unwrap(), segment.lag_seconds.column("count").unwrap());
    for wanted in 0..3 {
        let sum: i128 =
            second.iter().zip(&count).filter(|(second, _)| **second == wanted).map(|(_, count)| count).sum();
        let expected = if wanted == 2 { 250 } else { 500 };
        assert!((expected - 10..=expected + 10).contains(&sum), "second {wanted}: {sum}");
    }
}
