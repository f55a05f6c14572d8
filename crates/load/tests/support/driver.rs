//! What holds of a segment whichever driver its sessions have.

use super::undisturbed::undisturbed;
use super::{MS, Segment, config, constant};
use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Ended};
use plimsoll_schedule::Schedule;
use std::sync::Arc;
use std::time::Duration;

/// A segment with so many sessions.
pub(crate) type Drive = fn(&Arc<MockOpener>, u32, &Config) -> Segment;

pub(crate) fn performs_all_that_is_planned(drive: Drive) {
    let script = |index: u64| match index % 5 {
        0 => Scripted::Failed("40001"),
        1 => Scripted::Skipped,
        2 => Scripted::DoneAfterRetries(300),
        3 => Scripted::DoneAfter(MS / 10),
        _ => Scripted::Done,
    };
    let config = Config { transactions: Some(2_000), duration_ns: None, ..config() };
    let segment = drive(&Arc::new(MockOpener::new(script)), 4, &config);
    let identity = segment.outcomes.identity;
    assert_eq!((identity.planned, identity.done, identity.failed, identity.skipped), (2_000, 1_200, 400, 400));
    assert_eq!(segment.outcomes.ended, Ended::Transactions);
    assert_eq!(segment.outcomes.errors[0].sqlstate, "40001");
    assert_eq!(segment.column("retries").into_iter().max(), Some(300), "counts do not saturate");
    assert_eq!(segment.outcomes.reports.len(), 4);
    assert_eq!(segment.outcomes.backend_pids.len(), 4);
    assert!(segment.outcomes.load_cpu_ns.user + segment.outcomes.load_cpu_ns.system > 0);
}

pub(crate) fn counts_from_the_plan(drive: Drive) {
    // Two sessions perform 200 a second, and 400 are asked for: what is due waits, and its wait counts.
    let config = Config { patience_ns: 5_000 * MS, ..constant(400.0, 500) };
    let segment = drive(&Arc::new(MockOpener::new(|_| Scripted::DoneAfter(10 * MS))), 2, &config);
    assert_eq!((segment.outcomes.identity.planned, segment.outcomes.ended), (200, Ended::Seconds));
    assert!(segment.latency_ns(0.99) > 300 * MS as u64, "{}", segment.latency_ns(0.99));
    let lag = segment.outcomes.lag_ns.value_at_quantile(0.99);
    assert!(lag > 300 * MS as u64, "{lag}");
}

pub(crate) fn starts_on_time(drive: Drive) {
    undisturbed(Duration::from_millis(2), || {
        let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(MS)));
        let segment = drive(&opener, 4, &constant(200.0, 500));
        assert_eq!(segment.outcomes.identity.done, 100);
        // Cores that others may be using, too: the median says that starts are on time, the rest is scheduling.
        let lag = segment.outcomes.lag_ns.value_at_quantile(0.5);
        assert!(lag < 2 * MS as u64, "{lag}");
    });
}

pub(crate) fn skips_what_is_too_late(drive: Drive) {
    undisturbed(Duration::from_millis(2), || {
        let schedule = Schedule::Constant { rate: 2_000.0, seed: 1, late_limit_ms: Some(20.0) };
        let config = Config { schedule, patience_ns: 5_000 * MS, ..constant(1.0, 300) };
        let segment = drive(&Arc::new(MockOpener::new(|_| Scripted::DoneAfter(4 * MS))), 2, &config);
        let identity = segment.outcomes.identity;
        assert_eq!(identity.planned, 600);
        assert!(identity.skipped > 200 && identity.done > 20, "{identity:?}");
        let (start, planned) = (segment.column("start_ns"), segment.column("planned_ns"));
        let kinds = segment.column("kind");
        let mut late = (0..kinds.len()).filter(|&row| kinds[row] == 255);
        assert!(late.all(|row| start[row] - planned[row] > 20 * MS), "only what was too late was skipped");
    });
}

pub(crate) fn pauses_from_the_end_or_from_when_it_was_due(drive: Drive) {
    undisturbed(Duration::from_millis(2), || {
        let config = Config { transactions: Some(10), duration_ns: None, ..config() };
        let of = |script: fn(u64) -> Scripted| {
            let segment = drive(&Arc::new(MockOpener::new(script)), 1, &config);
            let planned = segment.planned_by_index();
            let mut apart: Vec<_> = planned[1..].windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
            apart.sort_unstable();
            apart[apart.len() / 2]
        };
        // (Before the first transaction there is a pause, too.) The middle of them: one in which the thread was kept waiting says nothing.
        let after_the_end = of(|_| Scripted::DoneThenPaused(20 * MS));
        assert!((20 * MS..26 * MS).contains(&after_the_end), "{after_the_end}");
        let handed_in = of(|_| Scripted::HandedIn(15 * MS, 20 * MS));
        assert!((20 * MS..21 * MS).contains(&handed_in), "{handed_in}");
    });
}

pub(crate) fn opens_again_what_breaks(drive: Drive) {
    let config = Config { transactions: Some(100), duration_ns: None, reconnect: true, ..config() };
    let script = |index| if index % 20 == 10 { Scripted::Lost } else { Scripted::Done };
    let opener = Arc::new(MockOpener::new(script));
    let segment = drive(&opener, 2, &config);
    let outcomes = &segment.outcomes;
    assert_eq!((outcomes.identity.done, outcomes.identity.lost, outcomes.connections_lost), (95, 5, 5));
    assert_eq!(u64::from(opener.opened()), 2 + outcomes.reconnects);
    assert_eq!(outcomes.backend_pids.len() as u64, 2 + outcomes.reconnects);
}

pub(crate) fn ends_without_any_connection(drive: Drive) {
    let config = Config { transactions: Some(100), duration_ns: None, ..config() };
    let segment = drive(&Arc::new(MockOpener::new(|_| Scripted::Lost)), 2, &config);
    assert_eq!((segment.outcomes.identity.lost, segment.outcomes.ended), (2, Ended::ConnectionsLost));
}
