//! The engine against scripted sessions: every transaction is in the record and in exactly one count.

#![allow(clippy::unwrap_used)]

use plimsoll_load::mock::{MockSession, Scripted};
use plimsoll_load::{Config, Control, Ended, Outcomes, run};
use plimsoll_record::{Table, TransactionWriter};
use plimsoll_schedule::Schedule;

const MS: i64 = 1_000_000;

fn config() -> Config {
    Config {
        first_index: 100,
        transactions: Some(5_000),
        duration_ns: None,
        schedule: Schedule::default(),
        kinds: 1,
        patience_ns: 50 * MS,
    }
}

fn segment(clients: usize, threads: usize, config: &Config, script: fn(u64) -> Scripted) -> (Outcomes, Table) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transactions.npy");
    let sessions = (0..clients).map(|_| MockSession::new(script).unwrap()).collect();
    let control = Control::new(threads);
    let outcomes = run(sessions, config, &control, TransactionWriter::create(&path).unwrap()).unwrap();
    assert!(outcomes.identity.holds(), "{:?}", outcomes.identity);
    let table = Table::read(&path).unwrap();
    assert_eq!(table.len() as u64 + outcomes.records_dropped, outcomes.identity.planned);
    (outcomes, table)
}

#[test]
fn every_index_is_taken_once_on_any_number_of_threads() {
    for (threads, clients) in [(1, 1), (1, 8), (2, 8), (3, 2)] {
        let (outcomes, table) = segment(clients, threads, &config(), |_| Scripted::Done);
        assert_eq!(outcomes.ended, Ended::Transactions);
        assert_eq!((outcomes.identity.done, outcomes.next_index), (5_000, 5_100));
        let mut indexes = table.column("index").unwrap();
        indexes.sort_unstable();
        assert!(indexes.into_iter().eq(100..5_100));
        assert_eq!(outcomes.latency_ns[0].len(), 5_000);
    }
}

#[test]
fn times_are_in_order_and_a_closed_loop_plans_from_the_end_before() {
    let (_, table) = segment(1, 1, &config(), |_| Scripted::Done);
    let [planned, start, end] = ["planned_ns", "start_ns", "end_ns"].map(|name| table.column(name).unwrap());
    assert!((0..table.len()).all(|i| planned[i] <= start[i] && start[i] <= end[i]));
    assert!((1..table.len()).all(|i| planned[i] == end[i - 1]));
}

#[test]
fn think_time_lies_between_transactions() {
    let config = Config { transactions: Some(10), schedule: Schedule::Closed { think_ms: 2.0 }, ..config() };
    let (_, table) = segment(1, 1, &config, |_| Scripted::Done);
    let [planned, end] = ["planned_ns", "end_ns"].map(|name| table.column(name).unwrap());
    assert!((1..table.len()).all(|i| planned[i] == end[i - 1] + i128::from(2 * MS)));
}

#[test]
fn failures_go_on_and_are_counted_by_reason() {
    let script = |index| match index % 10 {
        0 => Scripted::Failed("40001"),
        1 => Scripted::Failed("23505"),
        2 => Scripted::Skipped,
        _ => Scripted::Done,
    };
    let (outcomes, table) = segment(4, 2, &config(), script);
    let identity = outcomes.identity;
    assert_eq!((identity.done, identity.failed, identity.skipped, identity.lost), (3_500, 1_000, 500, 0));
    let mut errors: Vec<_> = outcomes.errors.iter().map(|e| (e.sqlstate.as_str(), e.count)).collect();
    errors.sort_unstable();
    assert_eq!(errors, [("23505", 500), ("40001", 500)]);
    let (index, error) = (table.column("index").unwrap(), table.column("error").unwrap());
    for (index, error) in index.iter().zip(error) {
        let reason = (error > 0).then(|| outcomes.errors[error as usize - 1].sqlstate.as_str());
        assert_eq!(reason, [Some("40001"), Some("23505")].get((index % 10) as usize).copied().flatten());
    }
}

#[test]
fn a_lost_connection_ends_its_part_only() {
    let (outcomes, table) =
        segment(3, 1, &config(), |index| if index == 500 { Scripted::Lost } else { Scripted::Done });
    assert_eq!((outcomes.identity.lost, outcomes.identity.done, outcomes.connections_lost), (1, 4_999, 1));
    assert_eq!(outcomes.ended, Ended::Transactions);
    assert_eq!(table.column("outcome").unwrap().iter().filter(|&&outcome| outcome == 3).count(), 1);
    assert_eq!(outcomes.reports.len(), 3, "the totals of a lost connection count too");
}

#[test]
fn when_all_connections_are_gone_the_segment_ends() {
    let (outcomes, _) = segment(3, 2, &config(), |index| if index >= 200 { Scripted::Lost } else { Scripted::Done });
    assert_eq!((outcomes.ended, outcomes.identity.lost), (Ended::ConnectionsLost, 3));
    assert_eq!(outcomes.next_index, 203);
}

#[test]
fn time_ends_a_segment() {
    let config = Config { transactions: None, duration_ns: Some(60 * MS), ..config() };
    let (outcomes, table) = segment(2, 1, &config, |_| Scripted::Done);
    assert_eq!(outcomes.ended, Ended::Seconds);
    let last = table.column("start_ns").unwrap().into_iter().max().unwrap();
    assert!(last - i128::from(outcomes.started_ns) < i128::from(61 * MS));
}

#[test]
fn a_skipping_plan_ends_too() {
    let config = Config { transactions: None, duration_ns: Some(20 * MS), ..config() };
    let (outcomes, _) = segment(1, 1, &config, |_| Scripted::Skipped);
    assert_eq!((outcomes.ended, outcomes.identity.done), (Ended::Seconds, 0));
}

#[test]
fn a_stop_lets_transactions_finish_and_silence_is_abandoned() {
    let folder = tempfile::tempdir().unwrap();
    let table = TransactionWriter::create(&folder.path().join("transactions.npy")).unwrap();
    let script = |index| if index == 103 { Scripted::Silent } else { Scripted::Done };
    let sessions = (0..2).map(|_| MockSession::new(script).unwrap()).collect();
    let control = Control::new(1);
    let config = Config { transactions: None, ..config() };
    let outcomes = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.identity().done < 1_000 {
                std::thread::yield_now();
            }
            control.stop();
        });
        run(sessions, &config, &control, table).unwrap()
    });
    assert_eq!(outcomes.ended, Ended::Told);
    assert!(outcomes.identity.holds());
    assert_eq!((outcomes.identity.lost, outcomes.errors[0].sqlstate.as_str()), (1, "XXABN"));
}
