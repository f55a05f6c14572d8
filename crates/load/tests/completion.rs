//! The driver of sessions that complete, on operations of this kernel: the same identity, plan and rows, and what never completes.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended, EngineError, Tables, run_completion};
use plimsoll_session::CompletionOpener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::files::{BLOCK, Files, Kind};
use support::{MS, Segment, completion, config, constant, driver};

/// All of them on one thread.
fn drive(opener: &Arc<MockOpener>, clients: u32, config: &Config) -> Segment {
    completion(opener, clients, &Control::new(1), config)
}

/// The most transactions that were under way at the same time.
fn depth_max(segment: &Segment) -> i64 {
    let starts = segment.column("start_ns").into_iter().map(|at_ns| (at_ns, 1));
    let mut changes: Vec<_> = starts.chain(segment.column("end_ns").into_iter().map(|at_ns| (at_ns, -1))).collect();
    changes.sort_unstable();
    let depths = changes.into_iter().scan(0, |depth, (_, change)| {
        *depth += change;
        Some(*depth)
    });
    depths.max().unwrap_or(0)
}

#[test]
fn a_closed_loop_performs_all_that_is_planned() {
    driver::performs_all_that_is_planned(drive);
    driver::performs_all_that_is_planned(|opener, clients, config| {
        completion(opener, clients, &Control::new(3), config)
    });
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
fn a_connection_that_breaks_is_opened_again() {
    driver::opens_again_what_breaks(drive);
}

#[test]
fn without_any_connection_the_segment_ends() {
    driver::ends_without_any_connection(drive);
}

#[test]
fn one_thread_has_an_operation_of_every_session_under_way() {
    let config = Config { transactions: Some(128), ..config() };
    let segment = drive(&Arc::new(MockOpener::new(|_| Scripted::DoneAfter(50 * MS))), 32, &config);
    assert_eq!(depth_max(&segment), 32);
    let open = drive(&Arc::new(MockOpener::new(|_| Scripted::DoneAfter(50 * MS))), 32, &constant(400.0, 400));
    assert!((10..=32).contains(&depth_max(&open)), "400 a second of 50 ms each: {}", depth_max(&open));
}

#[test]
fn files_are_written_and_read_back() {
    let kind = |index| [Kind::Written, Kind::Read, Kind::Refused, Kind::Ahead][(index % 4) as usize];
    let files = Arc::new(Files::new(kind));
    let config = Config { transactions: Some(400), kinds: 5, ..config() };
    let segment = completion(&files, 8, &Control::new(2), &config);
    let outcomes = &segment.outcomes;
    let done: Vec<_> = outcomes.by_kind.iter().map(|kind| kind.done).collect();
    assert_eq!(done, [100, 100, 0, 100, 0], "{:?}", outcomes.errors);
    assert_eq!((outcomes.by_kind[2].failed, outcomes.errors.len()), (100, 1));
    assert_eq!((outcomes.errors[0].sqlstate.as_str(), outcomes.errors[0].count), ("58030", 100));
    let (kinds, bytes) = (segment.column("kind"), segment.column("bytes"));
    let block = BLOCK as i64;
    assert!(kinds.iter().zip(bytes).all(|(&kind, bytes)| bytes == if kind < 2 { block } else { 0 }));
    assert_eq!(outcomes.reports.iter().map(|report| report.verification.checked).sum::<u64>(), 100);
    // What a transaction that had ended left under way was cancelled: the rings are gone, and have nothing of it.
    assert_eq!((files.held(), files.unread()), (0, 6));
}

#[test]
fn what_never_completes_is_cancelled_and_lost() {
    let files = Arc::new(Files::new(|_| Kind::Silent));
    let config = Config { kinds: 5, patience_ns: 100 * MS, ..constant(1_000.0, 100) };
    let began = Instant::now();
    let segment = completion(&files, 3, &Control::new(2), &config);
    assert!(began.elapsed() < Duration::from_secs(5));
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.planned, outcomes.identity.lost, outcomes.identity.skipped), (100, 3, 97));
    assert_eq!((outcomes.errors[0].sqlstate.as_str(), outcomes.connections_lost), ("XXABN", 3));
    assert!(outcomes.ended_ns - outcomes.started_ns >= 200 * MS, "not before patience was over");
    assert_eq!((files.held(), files.unread()), (0, 6));
}

#[test]
fn a_session_that_never_answers_holds_up_no_other() {
    let config = Config { transactions: None, duration_ns: Some(300 * MS), patience_ns: 200 * MS, ..config() };
    let script = |index| if index == 107 { Scripted::Silent } else { Scripted::DoneAfter(MS) };
    let segment = drive(&Arc::new(MockOpener::new(script)), 2, &config);
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.lost, outcomes.identity.failed, outcomes.ended), (1, 0, Ended::Seconds));
    assert!(outcomes.identity.done > 50, "the other one went on");
    assert_eq!((outcomes.errors[0].sqlstate.as_str(), outcomes.connections_lost), ("XXABN", 1));
}

#[test]
fn a_stop_lets_what_is_under_way_finish() {
    let control = Control::new(2);
    let config = Config { transactions: None, patience_ns: 60_000 * MS, ..config() };
    let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(100 * MS)));
    let (segment, stopped) = std::thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            while control.identity().planned < 13 {
                std::thread::sleep(Duration::from_millis(1));
            }
            control.stop();
            Instant::now()
        });
        (completion(&opener, 6, &control, &config), stopper.join().unwrap())
    });
    assert!(stopped.elapsed() < Duration::from_secs(5));
    let identity = segment.outcomes.identity;
    assert_eq!((segment.outcomes.ended, identity.done), (Ended::Told, identity.planned));
    assert!((13..=24).contains(&identity.done), "{identity:?}");
}

#[test]
fn threads_stay_on_their_cpus() {
    let threads = std::thread::available_parallelism().unwrap().get();
    let pinned = Config { pin_threads: true, ..config() };
    let opener = Arc::new(MockOpener::new(|_| Scripted::Done));
    let segment = completion(&opener, 2 * threads as u32, &Control::new(threads), &pinned);
    assert_eq!((segment.outcomes.cpus.len(), segment.outcomes.identity.done), (threads, 5_000));
}

#[test]
fn a_thread_that_panics_ends_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let script = |index| if index == 200 { panic!("as scripted") } else { Scripted::Done };
    let opener: Arc<dyn CompletionOpener> = Arc::new(MockOpener::new(script));
    let config = Config { transactions: None, duration_ns: None, ..config() };
    let sessions = (0..4).map(|number| opener.open(number).unwrap()).collect();
    let tables = Tables::create(folder.path()).unwrap();
    let error = run_completion(sessions, &opener, &config, &Control::new(2), tables).unwrap_err();
    assert!(matches!(error, EngineError::Panicked), "{error}");
}
