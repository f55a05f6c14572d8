//! A segment against scripted sessions, its record read back, and what must hold of every one.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod driver;
pub(crate) mod files;
pub(crate) mod undisturbed;
pub(crate) mod windows;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{
    Config, Control, Ended, EngineError, Outcomes, Tables, open_all, run, run_blocking, run_completion,
};
use plimsoll_record::Table;
use plimsoll_schedule::Schedule;
use plimsoll_session::{BlockingOpener, CompletionOpener, Opener};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) const MS: i64 = 1_000_000;

pub(crate) fn config() -> Config {
    Config {
        first_index: 100,
        transactions: Some(5_000),
        duration_ns: None,
        schedule: Schedule::default(),
        kinds: 1,
        // Longer than a busy machine takes for anything: only a test with something silent in it names less.
        patience_ns: 60_000 * MS,
        reconnect: false,
        rows_max: u64::MAX,
        sample_one_in: 100,
        pin_threads: false,
        own_descriptors: false,
        dealt: Vec::new(),
    }
}

/// For so many milliseconds at `rate` a second.
pub(crate) fn constant(rate: f64, ms: i64) -> Config {
    let schedule = Schedule::Constant { rate, seed: 1, late_limit_ms: None };
    Config { transactions: None, duration_ns: Some(ms * MS), schedule, ..config() }
}

/// A segment that has ended, and what it left behind.
pub(crate) struct Segment {
    pub(crate) outcomes: Outcomes,
    pub(crate) table: Table,
    pub(crate) latency_seconds: Table,
    pub(crate) lag_seconds: Table,
}

impl Segment {
    pub(crate) fn column(&self, name: &str) -> Vec<i64> {
        self.table.column(name).unwrap().into_iter().map(|value| value as i64).collect()
    }

    /// planned - start of the segment, in the order of the indexes.
    pub(crate) fn planned_by_index(&self) -> Vec<(u64, i64)> {
        let started_ns = self.outcomes.started_ns;
        let rows = self.column("index").into_iter().zip(self.column("planned_ns"));
        let mut rows: Vec<_> = rows.map(|(index, planned)| (index as u64, planned - started_ns)).collect();
        rows.sort_unstable();
        rows
    }

    /// planned-to-end of done transactions at `quantile`.
    pub(crate) fn latency_ns(&self, quantile: f64) -> u64 {
        self.outcomes.latency_ns[0].value_at_quantile(quantile)
    }
}

pub(crate) fn segment(
    clients: u32,
    threads: usize,
    config: &Config,
    script: impl Fn(u64) -> Scripted + Send + Sync + 'static,
) -> Segment {
    controlled(&Arc::new(MockOpener::new(script)), clients, &Control::new(threads), config)
}

pub(crate) fn controlled(opener: &Arc<MockOpener>, clients: u32, control: &Arc<Control>, config: &Config) -> Segment {
    let sessions = open_all(opener.as_ref(), clients).unwrap();
    let opener: Arc<dyn Opener> = Arc::clone(opener) as Arc<dyn Opener>;
    recorded(config, control, |tables| run(sessions, &opener, config, control, tables))
}

/// The same with sessions that block.
pub(crate) fn blocking(opener: &Arc<MockOpener>, clients: u32, control: &Arc<Control>, config: &Config) -> Segment {
    let opener: Arc<dyn BlockingOpener> = Arc::clone(opener) as Arc<dyn BlockingOpener>;
    let sessions = (0..clients).map(|number| opener.open(number).unwrap()).collect();
    recorded(config, control, |tables| run_blocking(sessions, Some(&opener), config, control, tables))
}

/// The same with sessions that complete.
pub(crate) fn completion<O: CompletionOpener + 'static>(
    opener: &Arc<O>,
    clients: u32,
    control: &Arc<Control>,
    config: &Config,
) -> Segment {
    let opener: Arc<dyn CompletionOpener> = Arc::clone(opener) as Arc<dyn CompletionOpener>;
    let sessions = (0..clients).map(|number| opener.open(number).unwrap()).collect();
    recorded(config, control, |tables| run_completion(sessions, &opener, config, control, tables))
}

fn recorded(config: &Config, control: &Control, run: impl FnOnce(Tables) -> Result<Outcomes, EngineError>) -> Segment {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = run(Tables::create(folder.path()).unwrap()).unwrap();
    let read = |name: &str| Table::read(&folder.path().join(name)).unwrap();
    let [table, latency_seconds, lag_seconds] =
        ["transactions.npy", "latency_seconds.npy", "lag_seconds.npy"].map(read);
    let segment = Segment { outcomes, table, latency_seconds, lag_seconds };
    holds(&segment, config, control.window().is_some());
    segment
}

/// What must hold however a segment went.
fn holds(segment: &Segment, config: &Config, in_windows: bool) {
    let Segment { outcomes, table, latency_seconds, lag_seconds } = segment;
    let identity = outcomes.identity;
    assert!(identity.holds(), "{identity:?}");
    assert_eq!(identity.planned + outcomes.left_out, outcomes.next_index - config.first_index);
    assert_eq!(table.len() as u64, outcomes.rows.recorded);
    let indexes: BTreeSet<u64> = segment.column("index").into_iter().map(|index| index as u64).collect();
    assert_eq!(indexes.len(), table.len(), "no index twice");
    let all = config.first_index..outcomes.rows.all_below_index;
    let missing = all.end - all.start - indexes.range(all).count() as u64;
    assert!((outcomes.records_dropped..=outcomes.records_dropped + outcomes.left_out).contains(&missing), "{missing}");
    let sum = |table: &Table| table.column("count").unwrap().iter().sum::<i128>() as u64;
    assert_eq!(sum(latency_seconds), identity.done);
    assert_eq!(sum(lag_seconds), outcomes.lag_ns.len());
    let times = segment.column("planned_ns").into_iter().zip(segment.column("start_ns")).zip(segment.column("end_ns"));
    assert!(times.clone().all(|((planned, start), end)| planned <= start && start <= end));
    if let (Some(mut open), Some(duration_ns)) = (config.schedule.open(config.first_index), config.duration_ns) {
        for (index, planned) in segment.planned_by_index() {
            assert!(in_windows || planned == open.due_ns(index), "no plan is moved");
        }
        if outcomes.ended == Ended::Seconds {
            assert_eq!(identity.planned, open.planned_within(duration_ns));
        }
    }
}
