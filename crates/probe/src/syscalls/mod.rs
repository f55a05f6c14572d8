//! The system calls of a target's processes, by kind and by what the file is to it; definitions in README.md.

mod calls;
mod maps;
mod self_test;
mod slices;
mod spread;

use crate::bpf::{CostMeter, Programs, Wanted, WatchedFileSystem, now_ns, with_tracefs};
use crate::folders::{Files, Known};
use crate::subject::Subject;
use crate::{Probe, Refusal};
pub use calls::Counted;
use calls::{CLASSES, KINDS};
use maps::{COLUMNS, Counts, LOST, Maps, NS_BUCKETS, Target};
use plimsoll_record::{CallTotals, Check, OtherCalls, ProbeReport, ProbeStatus, SystemCallsReport};
use slices::{Ends, Slices, Watched};
use spread::Spread;
use std::collections::BTreeMap;
use std::path::Path;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/syscalls.bpf.o"));

const NS: usize = 4;
const TIMED: usize = 5;
const LOST_EVENTS: &str = "events";
/// Behind those: calls of a kind that had not ended long after their slice, in the slices alone; slices that could not be opened.
const LOST_OF_SLICES: [&str; 2] = ["cut", "slices"];
/// Since the probe started, behind the columns of a row: for how long its calls were counted.
const WATCHED_NS: &str = "watched_ns";

type TotalsByClass = BTreeMap<String, BTreeMap<String, CallTotals>>;

/// Of all calls; of calls of a kind.
const ENTRIES: &str = "on_sys_enter";
const EXITS: &str = "on_sys_exit";
const OF_CALL: [&str; 2] = ["on_call_enters", "on_call_returns"];

/// The probe.
pub struct SystemCalls {
    // Declared first: programs are detached before their maps go.
    slices: Option<Slices>,
    _programs: Programs,
    maps: Maps,
    cost: CostMeter,
    checks: Vec<Check>,
    file_systems: Vec<WatchedFileSystem>,
    counted: Counted,
    first: Option<Counts>,
}

fn grown(now: &[i64], before: Option<&Vec<i64>>) -> Vec<u64> {
    let then = |at: usize| before.map_or(0, |before| before[at]);
    now.iter().enumerate().map(|(at, count)| (count - then(at)).max(0) as u64).collect()
}

/// What all calls of a number took, by the mean of those that were timed; where the segment has none, of all since the start.
fn time_of_all(grown: &[u64], since_start: &[i64]) -> u64 {
    let (ns, timed) = if grown[TIMED] > 0 {
        (grown[NS], grown[TIMED])
    } else {
        (since_start[NS].max(0) as u64, since_start[TIMED].max(1) as u64)
    };
    (u128::from(ns) * u128::from(grown[0]) / u128::from(timed)) as u64
}

/// Without the zeros at its end.
fn cut(histogram: &[u64]) -> Vec<u64> {
    let end = histogram.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    histogram[..end].to_vec()
}

/// `count` of the part `share` of the time, for all of it.
fn of_all_the_time(count: u64, share: f64) -> u64 {
    (count as f64 / share).round() as u64
}

fn totals(grown: &[u64]) -> CallTotals {
    let (columns, histograms) = grown.split_at(COLUMNS.len());
    let (ns, bytes) = histograms.split_at(NS_BUCKETS);
    CallTotals {
        count_se: None,
        count: columns[0],
        errors: columns[1],
        asked_bytes: columns[2],
        returned_bytes: columns[3],
        ns: columns[4],
        sequential: columns[5],
        ns_log2: cut(ns),
        bytes_log2: cut(bytes),
    }
}

/// Loads and attaches them; how calls are counted indeed.
fn start_programs(known: &Known, files: &Files, counted: Counted) -> Result<(Programs, Counted), Refusal> {
    let of_all = [ENTRIES, EXITS].map(|function| Wanted { function, tracepoint: None }).to_vec();
    let start = |counted: Counted, wanted: &[Wanted]| {
        let settings = calls::settings(known, files, counted)?;
        Programs::start(OBJECT, &settings, wanted, |programs| known.fill(programs, false))
    };
    if counted == Counted::Files {
        let of_call = calls::tracepoints().flat_map(|tracepoints| {
            let attached = |(function, name)| Wanted { function, tracepoint: Some(("syscalls", name)) };
            OF_CALL.into_iter().zip(tracepoints).map(attached)
        });
        let wanted: Vec<Wanted> = of_all.iter().copied().chain(of_call).collect();
        let is_known =
            |events: &Path| calls::tracepoints().flatten().all(|name| events.join("syscalls").join(name).is_dir());
        let by_call = with_tracefs(|events| is_known(events).then(|| start(counted, &wanted)).transpose());
        // What a kernel refuses here it may not refuse there.
        if let Ok(Some(programs)) = by_call {
            return Ok((programs, counted));
        }
    }
    let counted = if counted == Counted::Files { Counted::All } else { counted };
    Ok((start(counted, &of_all)?, counted))
}

impl SystemCalls {
    /// Loads, attaches and tests the probe.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(subject: &Subject, counted: Counted) -> Result<Self, Refusal> {
        let known = subject.files.known()?;
        let (mut programs, counted) = start_programs(&known, &subject.files, counted)?;
        let (maps, cost) = (Maps::of(&programs)?, programs.cost_meter()?);
        let mut target = Target::of(&programs)?;
        let of_slices = counted != Counted::All;
        let ends = of_slices.then(|| {
            Ok::<_, Refusal>(Ends { entries: programs.switch(&[ENTRIES])?, exits: programs.switch(&[EXITS])? })
        });
        let ends = ends.transpose()?;
        // The self-test is one slice, in which nothing is left out.
        target.tell(1, 0)?;
        let checks = self_test::run(&subject.files, &|| maps.counts(false))?;
        target.parent = subject.process;
        target.tell(0, 0)?;
        let slices = match ends {
            Some(ends) => Some(Slices::start(ends, Maps::of(&programs)?, target)?),
            None => None,
        };
        let file_systems = known.file_systems;
        Ok(Self { slices, _programs: programs, maps, cost, checks, file_systems, counted, first: None })
    }

    /// With `sampled`, what was counted and how it was spread stand for the rest of the time.
    fn call_totals(&self, now: &Counts, sampled: Option<(f64, &Spread)>) -> TotalsByClass {
        let mut by_class = TotalsByClass::new();
        for (&(class, kind), counts) in &now.by_class {
            let before = self.first.as_ref().and_then(|first| first.by_class.get(&(class, kind)));
            let seen = grown(counts, before);
            let totals = if let Some((share, spread)) = sampled {
                let all: Vec<u64> = seen.iter().map(|count| of_all_the_time(*count, share)).collect();
                let error = spread.standard_error((class, kind), share).map(|error| error.ceil() as u64);
                CallTotals { count_se: error, ..totals(&all) }
            } else {
                totals(&seen)
            };
            if totals.count > 0 {
                by_class.entry(CLASSES[class].to_owned()).or_default().insert(KINDS[kind].to_owned(), totals);
            }
        }
        by_class
    }

    /// Now, with how long the tracepoints of all calls were counted at, and how many calls a slice has lost by its end.
    fn counts(&self, with_others: bool) -> Counts {
        let at_ns = now_ns();
        let watched = self.watched();
        let mut counts = self.maps.counts(with_others);
        counts.lost.extend(watched.as_ref().map_or([0; 2], |watched| [watched.cut, watched.missed]));
        Counts { at_ns, watched_ns: watched.map_or(at_ns, |watched| watched.until(at_ns)), ..counts }
    }

    fn watched(&self) -> Option<Watched> {
        self.slices.as_ref().map(Slices::watched)
    }

    /// In which part of the segment the tracepoints of all calls were counted at.
    fn watched_share(&self, now: &Counts) -> f64 {
        let (at_ns, watched_ns) = self.first.as_ref().map_or((0, 0), |first| (first.at_ns, first.watched_ns));
        (now.watched_ns - watched_ns) as f64 / (now.at_ns - at_ns).max(1) as f64
    }

    /// What was counted stands for the rest of the time.
    fn other_calls(&self, now: &Counts, share: f64) -> BTreeMap<String, OtherCalls> {
        let all = |counted: u64| of_all_the_time(counted, share);
        let of = |(number, counts): (&usize, &Vec<i64>)| {
            let grown = grown(counts, self.first.as_ref().and_then(|first| first.others.get(number)));
            let calls =
                OtherCalls { count: all(grown[0]), errors: all(grown[1]), ns: all(time_of_all(&grown, counts)) };
            (grown[0] > 0).then(|| (calls::name_of(*number), calls))
        };
        now.others.iter().filter_map(of).collect()
    }
}

impl Probe for SystemCalls {
    fn columns(&self) -> Vec<&'static str> {
        ["class", "call"].into_iter().chain(COLUMNS).chain([WATCHED_NS]).collect()
    }

    /// Classes and kinds of which nothing was counted yet have no row.
    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let counts = self.counts(self.first.is_none());
        let watched_ns = if self.counted == Counted::Slices { counts.watched_ns } else { counts.at_ns };
        for (&(class, kind), found) in &counts.by_class {
            let place = [class as i64, kind as i64];
            row(&place.iter().chain(&found[..COLUMNS.len()]).chain(&[watched_ns]).copied().collect::<Vec<i64>>());
        }
        self.cost.sampled(false);
        if self.first.is_none() {
            if let Some(slices) = &self.slices {
                slices.restart();
            }
            self.first = Some(counts);
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        let now = self.counts(true);
        // Before its first sample, or where no slice has begun, there is nothing that a sum could stand for.
        let share = Some(self.watched_share(&now)).filter(|share| self.first.is_some() && *share > 0.0);
        let watched = self.watched();
        let sampled = watched.as_ref().filter(|_| self.counted == Counted::Slices);
        let sampled = sampled.map(|watched| Some((share?, &watched.spread)));
        let by_class = match sampled {
            None => self.first.is_some().then(|| self.call_totals(&now, None)),
            Some(sampled) => sampled.map(|sampled| self.call_totals(&now, Some(sampled))),
        };
        let lost_since = grown(&now.lost, self.first.as_ref().map(|first| &first.lost));
        let mut lost: BTreeMap<String, u64> =
            LOST.into_iter().chain(LOST_OF_SLICES).map(str::to_owned).zip(lost_since).collect();
        lost.insert(LOST_EVENTS.to_owned(), self.cost.missed(|_| true));
        let programs = if self.counted == Counted::Files { "tracepoint, tp_btf" } else { "tp_btf" };
        Some(ProbeReport::new(SystemCallsReport {
            status: ProbeStatus::on(programs),
            classes: CLASSES.map(str::to_owned).to_vec(),
            calls: KINDS.map(str::to_owned).to_vec(),
            file_systems: self.file_systems.iter().map(|one| one.shown.clone()).collect(),
            checks: self.checks.clone(),
            call_totals: by_class.unwrap_or_default(),
            calls_share: sampled.and(share),
            other_calls: share.map(|share| self.other_calls(&now, share)).unwrap_or_default(),
            others_share: self.slices.as_ref().and(share),
            lost,
            cost: self.cost.cost(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::maps::NUMBERS;
    use super::*;

    #[test]
    fn totals_are_growth_with_histograms_cut_at_their_ends() {
        let mut now = vec![0; NUMBERS];
        (now[0], now[4], now[COLUMNS.len() + 9], now[COLUMNS.len() + NS_BUCKETS + 14]) = (7, 5_000, 7, 6);
        let mut before = vec![0; NUMBERS];
        (before[0], before[4], before[COLUMNS.len() + 9]) = (2, 1_000, 2);
        let found = totals(&grown(&now, Some(&before)));
        assert_eq!((found.count, found.ns), (5, 4_000));
        assert_eq!((found.ns_log2.len(), found.ns_log2[9]), (10, 5));
        assert_eq!((found.bytes_log2.len(), found.bytes_log2[14]), (15, 6));
        assert!(cut(&[0, 0]).is_empty());
    }

    #[test]
    fn the_time_of_calls_that_are_timed_in_part_stands_for_all() {
        assert_eq!(time_of_all(&[100, 0, 0, 0, 8_000, 80], &[900, 0, 0, 0, 9, 9]), 10_000);
        assert_eq!(time_of_all(&[3, 0, 0, 0, 0, 0], &[900, 0, 0, 0, 7_200, 72]), 300);
        assert_eq!(time_of_all(&[3, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0]), 0);
    }
}
