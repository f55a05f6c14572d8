//! The driver of sessions that block, on mock sessions: the same identity, plan and rows, and calls that never come back.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended, EngineError, Tables, run_blocking};
use plimsoll_session::BlockingOpener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{MS, Segment, blocking, config, driver};

/// A thread for each session.
fn drive(opener: &Arc<MockOpener>, clients: u32, config: &Config) -> Segment {
    blocking(opener, clients, &Control::new(clients as usize), config)
}

#[test]
fn a_closed_loop_performs_all_that_is_planned() {
    driver::performs_all_that_is_planned(drive);
}

#[test]
fn an_open_loop_keeps_its_plan_and_counts_from_it() {
    driver::counts_from_the_plan(drive);
}

#[test]
fn a_rate_that_is_carried_starts_on_time() {
    driver::starts_on_time(drive);
}

#[test]
fn operations_that_would_start_too_late_are_skipped_and_counted() {
    driver::skips_what_is_too_late(drive);
}

#[test]
fn users_pause_from_the_end_or_from_when_it_was_due() {
    driver::pauses_from_the_end_or_from_when_it_was_due(drive);
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
    driver::opens_again_what_breaks(drive);
}

#[test]
fn without_any_connection_the_segment_ends() {
    driver::ends_without_any_connection(drive);
}

#[test]
fn a_thread_that_panics_ends_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let script = |index| if index == 200 { panic!("as scripted") } else { Scripted::Done };
    let opener: Arc<dyn BlockingOpener> = Arc::new(MockOpener::new(script));
    let config = Config { transactions: None, duration_ns: None, ..config() };
    let sessions = (0..2).map(|number| opener.open(number).unwrap()).collect();
    let tables = Tables::create(folder.path()).unwrap();
    let error = run_blocking(sessions, &opener, &config, &Control::new(2), tables).unwrap_err();
    assert!(matches!(error, EngineError::Panicked), "{error}");
}
