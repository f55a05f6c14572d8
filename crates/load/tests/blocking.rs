//! The driver of sessions that block, on mock sessions: the same identity, plan and rows, and calls that never come back.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control, Ended, EngineError, Tables, open_all, run, run_blocking};
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, BlockingOpener, BlockingSession, Ending, Opener, SessionReport};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use support::{MS, Segment, blocking, config, constant, driver};

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
fn indexes_that_threads_have_taken_ahead_at_the_end_are_left_out() {
    let script = |_| Scripted::DoneAfter(MS);
    let of_time = Config { transactions: None, duration_ns: Some(100 * MS), ..config() };
    let outcomes = drive(&Arc::new(MockOpener::new(script)), 3, &of_time).outcomes;
    // Each takes 64 at a time; it would be a chance in 64 cubed that all three ended with the last of theirs.
    assert_eq!((outcomes.next_index - 100) % 64, 0);
    assert!((1..=3 * 63).contains(&outcomes.left_out), "{outcomes:?}");
    // None of what was to be performed.
    let of_number = Config { transactions: Some(100), ..config() };
    let outcomes = drive(&Arc::new(MockOpener::new(script)), 3, &of_number).outcomes;
    assert_eq!((outcomes.next_index, outcomes.left_out, outcomes.identity.done), (200, 0, 100));
}

/// Takes its time before each transaction, or has only drawn.
struct Draws {
    has_only_drawn: bool,
}

impl BlockingSession for Draws {
    fn begin(&mut self, _index: u64) -> Begun {
        std::thread::sleep(Duration::from_millis(1));
        Begun { kind: 0, skipped: false }
    }

    fn has_only_drawn(&self) -> bool {
        self.has_only_drawn
    }

    fn perform(&mut self) -> Ending {
        Ending::of_nothing(Outcome::Done, true)
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport::default()
    }
}

#[test]
fn what_has_only_been_drawn_counts_as_begun_when_it_was_taken() {
    for has_only_drawn in [false, true] {
        let out = tempfile::tempdir().unwrap();
        let sessions: Vec<Box<dyn BlockingSession>> = vec![Box::new(Draws { has_only_drawn })];
        let config = Config { transactions: Some(20), ..config() };
        let tables = Tables::of_rows(out.path()).unwrap();
        let outcomes = run_blocking(sessions, None, &config, &Control::new(1), tables).unwrap();
        let (least, most) = if has_only_drawn { (0, 0) } else { (MS as u64, u64::MAX) };
        // The first is due when the threads are to begin, and begun when its thread does.
        let lag_ns = outcomes.lag_ns.value_at_quantile(0.5);
        assert!((least..=most).contains(&lag_ns), "{lag_ns}: has only drawn: {has_only_drawn}");
    }
}

/// Notes how late the kernel may wake its thread.
struct Wakes(Arc<AtomicU64>);

impl BlockingSession for Wakes {
    fn begin(&mut self, _index: u64) -> Begun {
        Begun { kind: 0, skipped: false }
    }

    fn perform(&mut self) -> Ending {
        self.0.store(rustix::thread::current_timer_slack().unwrap(), Ordering::Relaxed);
        Ending::of_nothing(Outcome::Done, true)
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport::default()
    }
}

#[test]
fn the_kernel_wakes_a_thread_in_time_as_it_does_those_of_the_other_drivers() {
    let (out, slack) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(0)));
    let config = Config { transactions: Some(1), ..config() };
    let sessions: Vec<Box<dyn BlockingSession>> = vec![Box::new(Wakes(Arc::clone(&slack)))];
    let tables = Tables::of_rows(out.path()).unwrap();
    run_blocking(sessions, None, &config, &Control::new(1), tables).unwrap();
    assert_eq!(slack.load(Ordering::Relaxed), 1, "nanoseconds; the kernel's own is 50,000");
}

/// What is open by a number in each thread: the number, and the inode of what is there.
type Opened = Arc<Mutex<Vec<(i32, u64)>>>;

/// Opens a file, and looks for the file that the other one has opened by then.
struct Opens {
    opened: Opened,
    both: Arc<Barrier>,
    seen: Arc<AtomicU64>,
}

impl BlockingSession for Opens {
    fn begin(&mut self, _index: u64) -> Begun {
        Begun { kind: 0, skipped: false }
    }

    fn perform(&mut self) -> Ending {
        let file = tempfile::tempfile().unwrap();
        let mine = (file.as_raw_fd(), file.metadata().unwrap().ino());
        self.opened.lock().unwrap().push(mine);
        self.both.wait();
        let opened = self.opened.lock().unwrap().clone();
        let is_here = |&(number, inode): &(i32, u64)| {
            std::fs::metadata(format!("/proc/thread-self/fd/{number}")).is_ok_and(|found| found.ino() == inode)
        };
        self.seen.fetch_add(opened.iter().filter(|one| is_here(one)).count() as u64, Ordering::Relaxed);
        self.both.wait();
        Ending::of_nothing(Outcome::Done, true)
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport::default()
    }
}

#[test]
fn what_a_thread_opens_the_others_have_unless_each_has_a_table_of_its_own() {
    for (own_descriptors, seen) in [(false, 4), (true, 2)] {
        let out = tempfile::tempdir().unwrap();
        let (opened, both, found) = (Opened::default(), Arc::new(Barrier::new(2)), Arc::new(AtomicU64::new(0)));
        let session = |_| -> Box<dyn BlockingSession> {
            Box::new(Opens { opened: Arc::clone(&opened), both: Arc::clone(&both), seen: Arc::clone(&found) })
        };
        // One each.
        let config = Config { transactions: None, dealt: vec![vec![0], vec![0]], own_descriptors, ..config() };
        let tables = Tables::of_rows(out.path()).unwrap();
        run_blocking((0..2).map(session).collect(), None, &config, &Control::new(2), tables).unwrap();
        assert_eq!(found.load(Ordering::Relaxed), seen, "tables of their own: {own_descriptors}");
    }
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
    // Each thread takes 64 indexes at a time from 100 on.
    let script = |index| if (index - 100) % 64 >= 10 { Scripted::Silent } else { Scripted::Done };
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
    let of_kinds: u64 = outcomes.by_kind.iter().map(|kind| kind.lost).sum();
    assert_eq!(of_kinds, 1, "and what it was is known");
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
