//! The engine against scripted sessions: every transaction is in the record and in exactly one count.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, NUMBER_BITS, Scripted};
use plimsoll_load::{Config, Control, Ended, EngineError, Tables, open_all, run};
use plimsoll_record::TransactionWriter;
use plimsoll_schedule::{Schedule, Wait};
use plimsoll_session::Opener;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::undisturbed::undisturbed;
use support::{MS, config, controlled, segment};

fn closed(think_ms: Wait, keying_ms: Wait) -> Schedule {
    Schedule::Closed { think_ms, keying_ms, seed: 1 }
}

#[test]
fn every_index_is_taken_once_on_any_number_of_threads() {
    for (threads, clients) in [(1, 1), (1, 8), (2, 8), (3, 2)] {
        let segment = segment(clients, threads, &config(), |_| Scripted::Done);
        let outcomes = &segment.outcomes;
        assert_eq!(outcomes.ended, Ended::Transactions);
        assert_eq!((outcomes.identity.done, outcomes.next_index), (5_000, 5_100));
        let mut indexes = segment.column("index");
        indexes.sort_unstable();
        assert!(indexes.into_iter().eq(100..5_100));
        assert_eq!(outcomes.latency_ns[0].len(), 5_000);
        assert!(outcomes.load_cpu_ns.user + outcomes.load_cpu_ns.system > 0);
        assert_eq!(outcomes.backend_pids.len(), clients as usize);
    }
}

#[test]
fn a_closed_loop_plans_from_the_end_before() {
    let segment = segment(1, 1, &config(), |_| Scripted::Done);
    let (planned, end) = (segment.column("planned_ns"), segment.column("end_ns"));
    assert!((1..planned.len()).all(|i| planned[i] == end[i - 1]));
}

#[test]
fn keying_and_thinking_lie_between_transactions() {
    let think_ms = Wait::Exponential { exponential: 1.0, max: Some(3.0) };
    let schedule = closed(think_ms, Wait::Uniform { uniform: [0.5, 1.0] });
    let config = Config { transactions: Some(40), schedule: schedule.clone(), ..config() };
    let segment = segment(1, 1, &config, |_| Scripted::Done);
    let (planned, end) = (segment.column("planned_ns"), segment.column("end_ns"));
    assert!((1..40).all(|i| planned[i] == end[i - 1] + schedule.wait_ns(100 + i as u64 - 1)));
    assert_eq!(planned[0], segment.outcomes.started_ns + schedule.wait_ns(u64::MAX));
}

#[test]
fn a_sessions_own_pause_counts_from_the_end_or_from_when_the_last_was_due() {
    let script = |index| match index % 3 {
        0 => Scripted::DoneThenPaused(2 * MS),
        1 => Scripted::HandedIn(MS, 3 * MS),
        // The answer takes longer than the user's pause: the next one is late, and says so.
        _ => Scripted::HandedIn(3 * MS, MS),
    };
    let config = Config { transactions: Some(30), ..config() };
    let segment = segment(1, 1, &config, script);
    let [planned, start, end] = ["planned_ns", "start_ns", "end_ns"].map(|name| segment.column(name));
    assert_eq!(planned[0], segment.outcomes.started_ns + 3 * MS, "before the first one as after index 100");
    for i in 1..30 {
        let (due, last) = (planned[i], i - 1);
        match (100 + last) % 3 {
            0 => assert_eq!(due, end[last] + 2 * MS),
            1 => assert_eq!(due, planned[last] + 3 * MS),
            _ => assert!(due == planned[last] + MS && start[i] >= end[last] && end[last] > due),
        }
    }
    assert!(segment.outcomes.lag_ns.max() >= 2 * MS as u64);
}

#[test]
fn a_pause_under_way_at_the_end_leaves_nothing_open() {
    let script = |_| Scripted::DoneThenPaused(1_000_000 * MS);
    let config = Config { transactions: None, duration_ns: Some(20 * MS), ..config() };
    let outcomes = segment(4, 2, &config, script).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.planned), (Ended::Seconds, 0));
}

#[test]
fn failures_go_on_and_are_counted_by_reason() {
    undisturbed(Duration::from_millis(10), || {
        let script = |index| match index % 10 {
            0 => Scripted::Failed("40001"),
            1 => Scripted::Failed("23505"),
            2 => Scripted::Skipped,
            3 => Scripted::DoneAfterRetries(2),
            _ => Scripted::Done,
        };
        let segment = segment(4, 2, &config(), script);
        let identity = segment.outcomes.identity;
        assert_eq!((identity.done, identity.failed, identity.skipped, identity.lost), (3_500, 1_000, 500, 0));
        assert_eq!(segment.outcomes.by_kind[0].retries, 1_000);
        assert_eq!(segment.column("retries").iter().sum::<i64>(), 1_000);
        let errors = &segment.outcomes.errors;
        let mut reasons: Vec<_> = errors.iter().map(|e| (e.sqlstate.as_str(), e.count)).collect();
        reasons.sort_unstable();
        assert_eq!(reasons, [("23505", 500), ("40001", 500)]);
        for (index, error) in segment.column("index").into_iter().zip(segment.column("error")) {
            let reason = (error > 0).then(|| errors[error as usize - 1].sqlstate.as_str());
            assert_eq!(reason, [Some("40001"), Some("23505")].get((index % 10) as usize).copied().flatten());
        }
    });
}

#[test]
fn a_lost_connection_ends_its_part_only() {
    let script = |index| if index == 500 { Scripted::Lost } else { Scripted::Done };
    let segment = segment(3, 1, &config(), script);
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.lost, outcomes.identity.done, outcomes.connections_lost), (1, 4_999, 1));
    assert_eq!(outcomes.ended, Ended::Transactions);
    assert_eq!(segment.column("outcome").iter().filter(|&&outcome| outcome == 3).count(), 1);
    assert_eq!(outcomes.reports.len(), 3, "the totals of a lost connection count too");
}

#[test]
fn when_all_connections_are_gone_the_segment_ends() {
    let script = |index| if index >= 200 { Scripted::Lost } else { Scripted::Done };
    let outcomes = segment(3, 2, &config(), script).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.lost), (Ended::ConnectionsLost, 3));
    assert_eq!(outcomes.next_index, 203);
}

#[test]
fn connections_that_break_are_opened_again_if_asked() {
    let script = |index| match index {
        1_000 => Scripted::DoneThenClosed(MS),
        index if index % 500 == 0 => Scripted::Lost,
        _ => Scripted::Done,
    };
    for schedule in [Schedule::default(), Schedule::Constant { rate: 20_000.0, seed: 1, late_limit_ms: None }] {
        let config = Config { reconnect: true, schedule, ..config() };
        let opener = Arc::new(MockOpener::new(script));
        let outcomes = controlled(&opener, 2, &Control::new(2), &config).outcomes;
        assert_eq!((outcomes.identity.lost, outcomes.identity.done), (9, 4_991));
        assert_eq!(outcomes.ended, Ended::Transactions);
        assert!((9..=10).contains(&outcomes.connections_lost), "{outcomes:?}");
        assert!(outcomes.reconnects >= 8, "the last may be too late: {outcomes:?}");
        assert!(u64::from(opener.opened()) >= 2 + outcomes.reconnects);
        assert_eq!(outcomes.backend_pids.len() as u64, 2 + outcomes.reconnects);
    }
}

#[test]
fn a_server_that_refuses_to_be_reached_again_is_waited_for() {
    undisturbed(Duration::from_millis(5), || {
        let script = |index| if index >= 200 { Scripted::Lost } else { Scripted::Done };
        let config = Config { reconnect: true, duration_ns: Some(150 * MS), transactions: None, ..config() };
        let opener = Arc::new(MockOpener::accepting(2, script));
        let outcomes = controlled(&opener, 2, &Control::new(1), &config).outcomes;
        assert_eq!((outcomes.ended, outcomes.identity.lost, outcomes.reconnects), (Ended::Seconds, 2, 0));
        assert!(opener.opened() > 2, "it was tried");
    });
}

#[test]
fn a_server_that_answers_nothing_any_more_does_not_keep_the_load() {
    undisturbed(Duration::from_millis(5), || {
        let script = |index| if index >= 200 { Scripted::Lost } else { Scripted::Done };
        let config = Config { reconnect: true, duration_ns: Some(50 * MS), transactions: None, ..config() };
        let opener = Arc::new(MockOpener::silent_after(2, script));
        // That this returns at all is what is tested.
        let outcomes = controlled(&opener, 2, &Control::new(1), &config).outcomes;
        assert_eq!((outcomes.ended, outcomes.identity.lost, opener.opened()), (Ended::Seconds, 2, 3));
    });
}

#[test]
fn connections_are_opened_side_by_side_and_all_or_none() {
    let sessions = open_all(&MockOpener::new(|_| Scripted::Done), 100).unwrap();
    assert!(sessions.iter().map(|session| session.server_process() & ((1 << NUMBER_BITS) - 1)).eq(0..100));
    let refused = open_all(&MockOpener::accepting(50, |_| Scripted::Done), 100).err().unwrap();
    assert_eq!(refused.code, "53300");
}

#[test]
fn time_ends_a_segment() {
    undisturbed(Duration::from_millis(2), || {
        let config = Config { transactions: None, duration_ns: Some(60 * MS), ..config() };
        let segment = segment(2, 1, &config, |_| Scripted::Done);
        assert_eq!(segment.outcomes.ended, Ended::Seconds);
        let last = segment.column("start_ns").into_iter().max().unwrap();
        assert!(last - segment.outcomes.started_ns < 61 * MS);
    });
}

#[test]
fn a_skipping_plan_ends_too() {
    let config = Config { transactions: None, duration_ns: Some(20 * MS), ..config() };
    let outcomes = segment(1, 1, &config, |_| Scripted::Skipped).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.done), (Ended::Seconds, 0));
}

#[test]
fn sessions_rest_of_their_own_will() {
    let config = Config { transactions: Some(20), ..config() };
    let segment = segment(4, 2, &config, |_| Scripted::DoneAfterRest(5 * MS));
    assert_eq!(segment.outcomes.identity.done, 20);
    let lasted = segment.column("end_ns").into_iter().zip(segment.column("start_ns")).map(|(end, start)| end - start);
    assert!(lasted.clone().all(|ns| ns >= 5 * MS), "{lasted:?}");
}

#[test]
fn a_stop_lets_transactions_finish_and_silence_is_abandoned() {
    let script = |index| if index == 103 { Scripted::Silent } else { Scripted::Done };
    let control = Control::new(1);
    let config = Config { transactions: None, patience_ns: 50 * MS, ..config() };
    let segment = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.identity().done < 1_000 {
                std::thread::yield_now();
            }
            control.stop();
        });
        controlled(&Arc::new(MockOpener::new(script)), 2, &control, &config)
    });
    let outcomes = segment.outcomes;
    assert_eq!(outcomes.ended, Ended::Told);
    assert_eq!((outcomes.identity.lost, outcomes.errors[0].sqlstate.as_str()), (1, "XXABN"));
}

#[test]
fn a_silent_connection_of_one_thread_ends_with_the_others() {
    // The number of transactions is reached by the other thread; this one hears of it.
    let script = |index| if index < 102 { Scripted::Silent } else { Scripted::Done };
    let config = Config { patience_ns: 500 * MS, ..config() };
    let outcomes = segment(3, 3, &config, script).outcomes;
    assert_eq!((outcomes.ended, outcomes.identity.lost, outcomes.identity.done), (Ended::Transactions, 2, 4_998));
}

#[test]
fn beyond_rows_max_a_sample_is_kept_and_the_rest_is_counted() {
    let config = Config { rows_max: 1_000, sample_one_in: 10, ..config() };
    let segment = segment(4, 2, &config, |_| Scripted::Done);
    let rows = segment.outcomes.rows;
    assert_eq!((rows.all_below_index, rows.sample_one_in), (1_100, 10));
    assert!((1_300..1_500).contains(&rows.recorded), "a tenth of 4,000: {rows:?}");
    assert_eq!(segment.outcomes.latency_ns[0].len(), 5_000);
    let again = support::segment(2, 1, &config, |_| Scripted::Done);
    let sorted = |mut indexes: Vec<i64>| {
        indexes.sort_unstable();
        indexes
    };
    assert_eq!(sorted(segment.column("index")), sorted(again.column("index")), "seed and index decide");
    let whole = support::segment(4, 2, &Config { rows_max: 5_000, ..config }, |_| Scripted::Done).outcomes.rows;
    assert_eq!((whole.recorded, whole.all_below_index, whole.sample_one_in), (5_000, 5_100, 1));
}

#[test]
fn a_worker_that_panics_ends_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let opener: Arc<dyn Opener> =
        Arc::new(MockOpener::new(|index| if index == 200 { panic!("as scripted") } else { Scripted::Done }));
    let config = Config { transactions: None, duration_ns: None, ..config() };
    let (sessions, control) = (open_all(opener.as_ref(), 2).unwrap(), Control::new(2));
    // Without an end of its own: that this returns at all is what is tested.
    let error = run(sessions, &opener, &config, &control, Tables::create(folder.path()).unwrap()).unwrap_err();
    assert!(matches!(error, EngineError::Panicked), "{error}");
}

#[test]
fn threads_stay_on_the_cpus_that_the_record_names() {
    static SEEN: Mutex<BTreeSet<Vec<usize>>> = Mutex::new(BTreeSet::new());
    let allowed = || {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect::<Vec<_>>()
    };
    let script = move |_| {
        SEEN.lock().unwrap().insert(allowed());
        Scripted::Done
    };
    let (before, threads) = (allowed(), allowed().len());
    let pinned = Config { pin_threads: true, ..config() };
    // Two threads a CPU.
    let outcomes = segment(4 * threads as u32, 2 * threads, &pinned, script).outcomes;
    let twice: Vec<usize> = before.iter().chain(&before).copied().collect();
    assert_eq!(outcomes.cpus, twice);
    let alone: BTreeSet<Vec<usize>> = before.iter().map(|&cpu| vec![cpu]).collect();
    assert_eq!(std::mem::take(&mut *SEEN.lock().unwrap()), alone);
    assert_eq!(allowed(), before, "of the threads that carry load only");
    assert!(segment(2, 1, &config(), script).outcomes.cpus.is_empty());
    assert_eq!(std::mem::take(&mut *SEEN.lock().unwrap()), BTreeSet::from([before]), "not asked for");
}

#[test]
fn a_record_that_cannot_be_written_ends_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    // It takes the header and, once nobody reads it, nothing more.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let transactions = TransactionWriter::create(&pipe).unwrap();
    drop(reader);
    let tables = Tables { transactions, ..Tables::create(folder.path()).unwrap() };
    let opener: Arc<dyn Opener> = Arc::new(MockOpener::new(|_| Scripted::Done));
    let config = Config { transactions: None, ..config() };
    let error = run(open_all(opener.as_ref(), 2).unwrap(), &opener, &config, &Control::new(1), tables).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
}
