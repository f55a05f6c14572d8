//! The end of an open loop: what was due before it and never begun is skipped, one by one, and counted.
//!
//! The fact that constrains it: the plan does not shrink because the server was slow. It runs when no worker does, so that it
//! sees every index that any of them took.

use crate::clock::monotonic_ns;
use crate::outcomes::Ended;
use crate::recording::recorder::RowSink;
use crate::recording::tally::Counts;
use crate::shared::{Claim, Shared};
use plimsoll_record::{Outcome, Transaction};
use plimsoll_schedule::Open;
use std::sync::atomic::Ordering;

/// What a settled segment amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settled {
    /// The first index after the segment.
    pub(crate) next_index: u64,
    /// How many were planned; `None` if the count of those taken is all there is to say.
    pub(crate) planned: Option<u64>,
    /// The mean rate of the plan.
    pub(crate) planned_rate: f64,
}

/// Accounts for the rest of `plan`. `taken_below`: every index that a worker began or skipped is below it.
pub(crate) fn settle(
    shared: &Shared,
    plan: &Open,
    ended: Ended,
    taken_below: u64,
    counts: &Counts,
    sink: &mut RowSink,
) -> Settled {
    let config = &shared.config;
    // Where the segment was cut short, the plan ends there.
    let window = shared.control.newest_window();
    let mut end_ns = shared.end_ns.min(window.plan_ns(shared.control.stop_ns()));
    if ended == Ended::ConnectionsLost {
        end_ns = end_ns.min(window.plan_ns(monotonic_ns()));
    }
    let mut next_index = taken_below.max(config.first_index);
    let mut skip = |claim: Claim| {
        counts.took_one();
        counts.ended_one(Outcome::Skipped);
        sink.push_waiting(Transaction::unbegun(claim.index, window.clock_ns(claim.due_ns), monotonic_ns()));
        next_index = next_index.max(claim.index + 1);
    };
    while let Some(claim) = shared.returned.take() {
        // A worker may have begun a later one a moment after the segment was stopped; then this one was planned, too.
        if claim.due_ns < end_ns || claim.index < taken_below {
            skip(claim);
        }
    }
    let mut walker = plan.clone();
    for index in shared.next_index.0.load(Ordering::Relaxed)..config.limit() {
        let due_ns = shared.started_ns.saturating_add(walker.due_ns(index));
        if due_ns >= end_ns {
            break;
        }
        skip(Claim { index, due_ns });
    }
    let whole = matches!(ended, Ended::Seconds | Ended::Transactions);
    let limit = config.transactions.unwrap_or(u64::MAX);
    let planned = whole.then(|| config.duration_ns.map_or(limit, |duration| plan.planned_within(duration).min(limit)));
    let last_ns = match ended {
        Ended::Transactions => walker.due_ns(next_index),
        _ => end_ns.saturating_sub(shared.started_ns),
    };
    Settled { next_index, planned, planned_rate: plan.mean_rate(last_ns) }
}
