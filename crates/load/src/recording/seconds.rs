//! Histograms by second: filled by the workers, merged and written beside the rows.
//!
//! The fact that constrains it: they go on however long a segment lasts, in a fixed amount of memory. A worker fills one set
//! and hands it over when its second is past; if the writer is so far behind that no empty set is left, the worker goes on
//! with the one it has, and a few seconds are counted as one. No count is ever lost.

use crate::recording::buckets::Coarse;
use crate::recording::tally::{lag_ns, latency_ns};
use plimsoll_record::{Outcome, SecondsWriter, Transaction};
use std::collections::VecDeque;
use std::io;

const NS_PER_SECOND: i64 = 1_000_000_000;
/// Seconds that wait for the other workers' share before they are written.
const SECONDS_HELD: u32 = 2;
/// Sets that circulate for each worker: what it fills, what is on its way, what is held.
pub(crate) const SETS_A_WORKER: usize = 6;

/// The histograms of one second. Coarse ones: a set has to be small enough to be merged in no time.
#[derive(Debug)]
pub(crate) struct SecondSet {
    second: u32,
    latency: Vec<Coarse>,
    lag: Coarse,
}

impl SecondSet {
    pub(crate) fn new(kinds: usize) -> Box<Self> {
        Box::new(Self { second: 0, latency: (0..kinds).map(|_| Coarse::new()).collect(), lag: Coarse::new() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lag.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u32, u64) {
        (self.second, self.lag.histogram().len())
    }

    #[inline]
    pub(crate) fn add(&mut self, row: &Transaction) {
        if row.outcome == Outcome::Done {
            self.latency[usize::from(row.kind)].add(latency_ns(row));
        }
        self.lag.add(lag_ns(row));
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.latency.iter_mut().zip(&other.latency) {
            mine.merge(theirs);
        }
        self.lag.merge(&other.lag);
    }

    pub(crate) fn empty(mut self: Box<Self>) -> Box<Self> {
        self.latency.iter_mut().for_each(Coarse::clear);
        self.lag.clear();
        self
    }
}

/// A worker's second under way.
#[derive(Debug)]
pub(crate) struct Second {
    pub(crate) set: Box<SecondSet>,
    started_ns: i64,
    ends_ns: i64,
}

impl Second {
    pub(crate) fn new(set: Box<SecondSet>, started_ns: i64) -> Self {
        Self { set, started_ns, ends_ns: started_ns + NS_PER_SECOND }
    }

    #[inline]
    pub(crate) fn is_past(&self, now_ns: i64) -> bool {
        now_ns >= self.ends_ns
    }

    /// Goes on with the second of `now_ns`; what is in the set, if it was not changed for an empty one, counts with it.
    pub(crate) fn begin(&mut self, now_ns: i64) {
        let second = (now_ns - self.started_ns).max(0) / NS_PER_SECOND;
        self.set.second = u32::try_from(second).unwrap_or(u32::MAX);
        self.ends_ns = self.started_ns + (second + 1) * NS_PER_SECOND;
    }
}

/// The writer's side: holds the newest seconds until every worker has had the time to bring its share.
#[derive(Debug)]
pub(crate) struct Merger {
    latency: SecondsWriter,
    lag: SecondsWriter,
    /// In the order of their seconds.
    held: VecDeque<Box<SecondSet>>,
}

impl Merger {
    pub(crate) fn new(latency: SecondsWriter, lag: SecondsWriter) -> Self {
        Self { latency, lag, held: VecDeque::new() }
    }

    /// Takes a set, and gives those that are empty again to `emptied`.
    pub(crate) fn take(&mut self, set: Box<SecondSet>, mut emptied: impl FnMut(Box<SecondSet>)) -> io::Result<()> {
        let newest = self.held.back().map_or(0, |held| held.second).max(set.second);
        let place = self.held.partition_point(|held| held.second < set.second);
        match self.held.get_mut(place).filter(|held| held.second == set.second) {
            Some(held) => {
                held.merge(&set);
                emptied(set.empty());
            }
            None => self.held.insert(place, set),
        }
        while self.held.front().is_some_and(|held| held.second.saturating_add(SECONDS_HELD) < newest) {
            if let Some(set) = self.held.pop_front() {
                self.write(&set)?;
                emptied(set.empty());
            }
        }
        Ok(())
    }

    fn write(&mut self, set: &SecondSet) -> io::Result<()> {
        for (kind, buckets) in (0..=u8::MAX).zip(&set.latency).filter(|(_, buckets)| !buckets.is_empty()) {
            self.latency.second(set.second, kind, &buckets.histogram())?;
        }
        self.lag.second(set.second, 0, &set.lag.histogram())?;
        self.latency.flush()?;
        self.lag.flush()
    }

    /// Writes what is held and completes the files.
    pub(crate) fn close(mut self) -> io::Result<()> {
        for set in std::mem::take(&mut self.held) {
            self.write(&set)?;
        }
        self.latency.close()?;
        self.lag.close()?;
        Ok(())
    }
}
