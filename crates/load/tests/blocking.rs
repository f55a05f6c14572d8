//! The driver of sessions that block, on mock sessions: the same identity, plan and rows, and calls that never come back.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended, EngineError, Tables, open_all, run, run_blocking};
use plimsoll_session::{BlockingOpener, Opener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{MS, blocking, config, constant};

#[test]
fn a_closed_loop_performs_all_that_is_planned() {
    let script = |index: u64| match index % 5 {
        0 => Scripted::Failed("40001"),
        1 => Scripted::Skipped,
        2 => Scripted::DoneAfterRetries(300),
        3 => Scripted::DoneAfter(MS / 10),
        _ => Scripted::Done,
    };
    let config = Config { transactions: Some(2_000), duration_ns: None, ..config() };
    let segment = blocking(&Arc::new(MockOpener::new(script)), 4, &Control::new(4), &config);
    let identity = segment.outcomes.identity;
    assert_eq!((identity.planned, identity.done, identity.failed, identity.skipped), (2_000, 1_200, 400, 400));
    assert_eq!(segment.outcomes.ended, Ended::Transactions);
    assert_eq!(segment.column("retries").into_iter().max(), Some(300), "counts do not saturate");
    assert_eq!(segment.outcomes.reports.len(), 4);
    assert_eq!(segment.outcomes.backend_pids.len(), 4);
}

#[test]
fn an_open_loop_keeps_its_plan_and_counts_from_it() {
    // Two sessions perform 200 a second, and 400 are asked for: what is due waits, and its wait counts.
    let config = Config { patience_ns: 5_000 * MS, ..constant(400.0, 500) };
    let script = |_| Scripted::DoneAfter(10 * MS);
    let segment = blocking(&Arc::new(MockOpener::new(script)), 2, &Control::new(2), &config);
    assert_eq!((segment.outcomes.identity.planned, segment.outcomes.ended), (200, Ended::Seconds));
    assert!(segment.latency_ns(0.99) > 300 * MS as u64, "{}", segment.latency_ns(0.99));
    let lag = segment.outcomes.lag_ns.value_at_quantile(0.99);
    assert!(lag > 300 * MS as u64, "{lag}");
}

#[test]
fn a_rate_that_is_carried_starts_on_time() {
    let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(MS)));
    let segment = blocking(&opener, 4, &Control::new(4), &constant(200.0, 500));
    assert_eq!(segment.outcomes.identity.done, 100);
    let lag = segment.outcomes.lag_ns.value_at_quantile(0.5);
    assert!(lag < MS as u64, "{lag}");
}

#[test]
fn users_pause_from_the_end_or_from_when_it_was_due() {
    let config = Config { transactions: Some(10), duration_ns: None, ..config() };
    let of = |script: fn(u64) -> Scripted| {
        let segment = blocking(&Arc::new(MockOpener::new(script)), 1, &Control::new(1), &config);
        let planned = segment.planned_by_index();
        (planned[9].1 - planned[1].1) / 8
    };
    // (Before the first transaction there is a pause, too.)
    let after_the_end = of(|_| Scripted::DoneThenPaused(20 * MS));
    assert!((20 * MS..26 * MS).contains(&after_the_end), "{after_the_end}");
    let handed_in = of(|_| Scripted::HandedIn(15 * MS, 20 * MS));
    assert!((20 * MS..21 * MS).contains(&handed_in), "{handed_in}");
}

#[test]
fn a_stop_cancels_what_is_waited_for() {
    let control = Control::new(3);
    let config = Config { transactions: None, duration_ns: None, patience_ns: 60_000 * MS, ..config() };
    let stopper = Arc::clone(&control);
    let stopped = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stopper.stop();
        Instant::now()
    });
    let script = |index| if index >= 130 { Scripted::Silent } else { Scripted::Done };
    let segment = blocking(&Arc::new(MockOpener::new(script)), 3, &control, &config);
    assert!(stopped.join().unwrap().elapsed() < Duration::from_secs(5));
    let identity = segment.outcomes.identity;
    assert_eq!((identity.planned, identity.done, identity.failed), (33, 30, 3));
    assert_eq!((segment.outcomes.ended, segment.outcomes.errors[0].sqlstate.as_str()), (Ended::Told, "57014"));
}

#[test]
fn a_session_that_never_answers_is_lost_and_left_behind() {
    let config = Config { transactions: None, duration_ns: Some(300 * MS), patience_ns: 200 * MS, ..config() };
    let script = |index| if index == 107 { Scripted::Silent } else { Scripted::DoneAfter(MS) };
    let began = Instant::now();
    let segment = blocking(&Arc::new(MockOpener::deaf(script)), 2, &Control::new(2), &config);
    assert!(began.elapsed() < Duration::from_secs(10));
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.lost, outcomes.identity.failed, outcomes.ended), (1, 0, Ended::Seconds));
    assert!(outcomes.identity.done > 50, "the other one went on");
    assert_eq!((outcomes.errors[0].sqlstate.as_str(), outcomes.connections_lost), ("XXABN", 1));
}

#[test]
fn a_close_that_never_comes_back_holds_nobody_up() {
    let config = Config { transactions: None, duration_ns: Some(200 * MS), patience_ns: 200 * MS, ..config() };
    let script = |index| if index == 107 { Scripted::LostAndStuck } else { Scripted::DoneAfter(MS) };
    let began = Instant::now();
    let segment = blocking(&Arc::new(MockOpener::new(script)), 2, &Control::new(2), &config);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!((segment.outcomes.identity.lost, segment.outcomes.ended), (1, Ended::Seconds));
}

#[test]
fn a_connection_that_breaks_is_opened_again() {
    let config = Config { transactions: Some(100), duration_ns: None, reconnect: true, ..config() };
    let script = |index| if index % 20 == 10 { Scripted::Lost } else { Scripted::Done };
    let opener = Arc::new(MockOpener::new(script));
    let segment = blocking(&opener, 2, &Control::new(2), &config);
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.done, outcomes.identity.lost, outcomes.connections_lost), (95, 5, 5));
    assert_eq!(u64::from(opener.opened()), 2 + outcomes.reconnects);
    assert_eq!(outcomes.backend_pids.len() as u64, 2 + outcomes.reconnects);
}

#[test]
fn without_any_connection_the_segment_ends() {
    let config = Config { transactions: Some(100), duration_ns: None, ..config() };
    let segment = blocking(&Arc::new(MockOpener::new(|_| Scripted::Lost)), 2, &Control::new(2), &config);
    assert_eq!((segment.outcomes.identity.lost, segment.outcomes.ended), (2, Ended::ConnectionsLost));
}

/// A closed loop in which each session has its own work.
fn dealt(work: &[&[u8]]) -> Config {
    let dealt = work.iter().map(|kinds| kinds.to_vec()).collect();
    Config { transactions: None, duration_ns: None, kinds: 2, patience_ns: 60_000 * MS, dealt, ..config() }
}

#[test]
fn what_is_dealt_out_is_performed_in_its_order() {
    let config = dealt(&[&[0; 5], &[0; 3], &[]]);
    let opener = Arc::new(MockOpener::new(|index| Scripted::DoneAfter((index as i64 % 3) * MS)));
    let segment = blocking(&opener, 3, &Control::new(3), &config);
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.planned, outcomes.identity.done, outcomes.ended), (8, 8, Ended::Transactions));
    assert_eq!((outcomes.next_index, outcomes.reports.len()), (108, 3));
    for (connection, indexes) in [(0, 100..105), (1, 105..108)] {
        let rows = segment.column("index").into_iter().zip(segment.column("connection"));
        let own: Vec<i64> = rows.filter(|(_, other)| *other == connection).map(|(index, _)| index).collect();
        assert_eq!(own, indexes.collect::<Vec<i64>>(), "of connection {connection}");
    }
}

#[test]
fn what_was_dealt_out_and_is_not_begun_is_skipped_by_its_kind() {
    let config = dealt(&[&[0, 0, 1, 1], &[0, 0, 1, 1, 1]]);
    let control = Control::new(2);
    let stopper = Arc::clone(&control);
    let stopped = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(stopper.identity().planned, 9, "all of it is planned from the start");
        stopper.stop();
    });
    let script = |index| match index {
        101 => Scripted::Lost,
        105 => Scripted::Silent,
        _ => Scripted::Done,
    };
    let segment = blocking(&Arc::new(MockOpener::new(script)), 2, &control, &config);
    stopped.join().unwrap();
    let (identity, by_kind) = (segment.outcomes.identity, &segment.outcomes.by_kind);
    assert_eq!((identity.done, identity.failed, identity.skipped, identity.lost), (2, 1, 5, 1));
    assert_eq!((by_kind[0].skipped, by_kind[1].skipped, segment.outcomes.ended), (0, 5, Ended::Told));
    let rows = segment.column("kind").into_iter().zip(segment.column("outcome")).zip(segment.column("backend_pid"));
    assert_eq!(rows.filter(|((kind, outcome), pid)| (*kind, *outcome) == (1, 2) && *pid > 0).count(), 5);
}

#[test]
fn work_that_is_dealt_out_wants_a_session_each_that_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let opener = Arc::new(MockOpener::new(|_| Scripted::Done));
    let tables = || Tables::of_rows(folder.path()).unwrap();
    let config = dealt(&[&[0]]);
    let sessions = open_all(opener.as_ref(), 1).unwrap();
    let ready: Arc<dyn Opener> = Arc::clone(&opener) as Arc<dyn Opener>;
    let error = run(sessions, &ready, &config, &Control::new(1), tables()).unwrap_err();
    assert!(error.to_string().contains("sessions that block"), "{error}");
    let blocking: Arc<dyn BlockingOpener> = opener;
    let sessions = || (0..2).map(|number| blocking.open(number).unwrap()).collect();
    for config in [config, Config { schedule: constant(1.0, 1).schedule, ..dealt(&[&[0], &[0]]) }] {
        let error = run_blocking(sessions(), Some(&blocking), &config, &Control::new(2), tables()).unwrap_err();
        assert!(error.to_string().contains("of a closed loop"), "{error}");
    }
}

#[test]
fn a_thread_that_panics_ends_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let script = |index| if index == 200 { panic!("as scripted") } else { Scripted::Done };
    let opener: Arc<dyn BlockingOpener> = Arc::new(MockOpener::new(script));
    let config = Config { transactions: None, duration_ns: None, ..config() };
    let sessions = (0..2).map(|number| opener.open(number).unwrap()).collect();
    let tables = Tables::create(folder.path()).unwrap();
    let error = run_blocking(sessions, Some(&opener), &config, &Control::new(2), tables).unwrap_err();
    assert!(matches!(error, EngineError::Panicked), "{error}");
}
