//! How fast the machine itself is while the load runs: three small pieces of work, the same each time, timed a few times a second
//! on each CPU. In a virtual machine neighbours take clock, units of a core, cache and memory, and no counter of steal tells.
//!
//! The fact that constrains it: what it finds is of the machine and not of the load, as far as that goes, so how much it does is
//! constant, its time is CPU time, and it takes two or three thousandths of each CPU at most ([README.md](README.md)).
//!
//! Cost: `cargo test -p plimsoll-probe -- --ignored cost`.

mod beat;
mod chain;
mod pages;
mod pieces;
mod self_test;
mod totals;

use crate::{Probe, Refusal};
use beat::{Beating, Times};
use chain::Chain;
use pieces::{ADDITIONS, MEMORY_BYTES, MEMORY_STEPS, MULTIPLICATIONS};
use plimsoll_record::{Check, Cost, MachineSpeedReport, ProbeReport, ProbeStatus, ProgramCost};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use totals::Totals;

const COLUMNS: [&str; 5] = ["cpu", "beats", "multiply_ns", "add_ns", "memory_ns"];
/// On a larger machine so many CPUs stand for all.
const CPUS_MAX: usize = 16;

/// The probe; its threads end with it.
#[derive(Debug)]
pub struct MachineSpeed {
    every: Duration,
    threads: Vec<Beating>,
    memory_bytes: usize,
    memory_page_bytes: usize,
    checks: Vec<Check>,
    absent: BTreeMap<String, String>,
    /// When the segment began, and what the threads had done before.
    began: Option<(Instant, Totals)>,
}

/// At most `most` of them, evenly spread.
fn spread(cpus: &[usize], most: usize) -> Vec<usize> {
    let count = cpus.len().min(most);
    (0..count).map(|place| cpus[place * cpus.len() / count]).collect()
}

impl MachineSpeed {
    /// Tests the pieces and starts a thread for each CPU, which does them once each `every`.
    ///
    /// # Errors
    /// The reason why figures could not be had, or would not be believed.
    pub fn start(every: Duration) -> Result<Self, Refusal> {
        let cpus = beat::cpus().map_err(|error| Refusal::from(format!("the CPUs of this process: {error}")))?;
        let cpus = spread(&cpus, CPUS_MAX);
        let chain =
            Chain::of(MEMORY_BYTES).map_err(|error| Refusal::from(format!("memory for its buffer: {error}")))?;
        let chain = Arc::new(chain);
        let checks = self_test::run(&chain)?;
        let (begin, count) = (Instant::now(), cpus.len() as u32);
        let mut threads = Vec::new();
        for ((place, cpu), at) in (0..).zip(cpus).zip(chain.begins(count as usize)) {
            // One after another, or they would find each other in the caches that they share.
            let times = Times { first: begin + every * place / count, every };
            let started = Beating::start(cpu, times, Arc::clone(&chain), at);
            threads.push(started.map_err(|error| Refusal::from(format!("no thread for CPU {cpu}: {error}")))?);
        }
        let mut absent = BTreeMap::new();
        threads.retain(|thread| match thread.is_pinned() {
            Ok(()) => true,
            Err(error) => {
                absent.insert(format!("cpu {}", thread.cpu), format!("no thread can be kept there: {error}"));
                false
            }
        });
        if threads.is_empty() {
            let reason = absent.into_values().next().unwrap_or_else(|| "there is none".to_owned());
            let remedy = "allow the agent sched_setaffinity, which a container's filter of system calls may refuse";
            return Err(Refusal::with_remedy(format!("no CPU to watch: {reason}"), remedy));
        }
        let (memory_bytes, memory_page_bytes) = (chain.bytes(), chain.page_bytes());
        Ok(Self { every, threads, memory_bytes, memory_page_bytes, checks, absent, began: None })
    }

    fn whole(&mut self) -> Totals {
        let mut whole = Totals::default();
        self.threads.iter_mut().for_each(|thread| whole.add(&thread.totals()));
        whole
    }

    /// What the threads took since the first sample: all of it is accounted for.
    fn cost(&mut self, now: &Totals) -> Cost {
        let (began, before) = self.began.unwrap_or((Instant::now(), *now));
        let segment_ns = began.elapsed().as_nanos() as u64;
        let (runs, run_ns) = (now.beats - before.beats, now.cpu_ns - before.cpu_ns);
        let programs = vec![ProgramCost { name: "beat".to_owned(), runs, run_ns }];
        Cost { run_ns, accounted_ns: segment_ns, segment_ns, programs }
    }
}

impl Probe for MachineSpeed {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let mut whole = Totals::default();
        for thread in &mut self.threads {
            let totals = thread.totals();
            let Totals { beats, multiply_ns, add_ns, memory_ns, .. } = totals;
            row(&[thread.cpu as u64, beats, multiply_ns, add_ns, memory_ns].map(|number| number as i64));
            whole.add(&totals);
        }
        self.began.get_or_insert_with(|| (Instant::now(), whole));
    }

    fn report(&mut self) -> Option<ProbeReport> {
        let now = self.whole();
        let before = self.began.map_or(now, |(_, before)| before);
        Some(ProbeReport::new(MachineSpeedReport {
            status: ProbeStatus::on("threads").without(self.absent.clone()),
            cpus: self.threads.iter().map(|thread| thread.cpu).collect(),
            every_ms: self.every.as_millis() as u64,
            multiplications: MULTIPLICATIONS,
            additions: ADDITIONS,
            memory_steps: MEMORY_STEPS,
            memory_bytes: self.memory_bytes as u64,
            memory_page_bytes: self.memory_page_bytes as u64,
            missed: now.missed - before.missed,
            checks: self.checks.clone(),
            cost: self.cost(&now),
        }))
    }
}

impl Drop for MachineSpeed {
    fn drop(&mut self) {
        // All are told before the first is waited for.
        self.threads.iter().for_each(Beating::end);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const EVERY: Duration = Duration::from_millis(50);

    fn sampled(probe: &mut MachineSpeed) -> Vec<BTreeMap<&'static str, i64>> {
        let mut rows = Vec::new();
        probe.sample(&mut |row| rows.push(COLUMNS.into_iter().zip(row.iter().copied()).collect()));
        rows
    }

    #[test]
    fn many_cpus_are_stood_for_by_some_evenly_spread() {
        assert_eq!(spread(&[0, 2, 5], 16), [0, 2, 5]);
        assert_eq!(spread(&(0..64).collect::<Vec<_>>(), 16), (0..16).map(|place| place * 4).collect::<Vec<_>>());
        assert_eq!(spread(&(0..24).collect::<Vec<_>>(), 16)[13..], [19, 21, 22]);
        assert!(spread(&[], 16).is_empty());
    }

    #[test]
    fn each_cpu_beats_at_its_times_and_what_is_missed_is_counted() {
        let begin = Instant::now();
        let mut probe = MachineSpeed::start(EVERY).unwrap();
        let cpus: Vec<i64> = probe.threads.iter().map(|thread| thread.cpu as i64).collect();
        let (mut before, deadline) = (sampled(&mut probe), begin + Duration::from_secs(60));
        // A busy machine lets them wait; what was due is then missed and no beat the less is accounted for.
        while probe.threads.iter_mut().any(|thread| thread.totals().beats < 10) && Instant::now() < deadline {
            std::thread::sleep(EVERY);
            let now = sampled(&mut probe);
            assert_eq!(now.iter().map(|row| row["cpu"]).collect::<Vec<_>>(), cpus);
            for (earlier, later) in before.iter().zip(&now) {
                assert!(COLUMNS.iter().all(|column| earlier[column] <= later[column]), "{earlier:?} {later:?}");
                let more = |column: &str| later[column] - earlier[column];
                let work = ["multiply_ns", "add_ns", "memory_ns"];
                assert!(work.iter().all(|column| (more(column) > 0) == (more("beats") > 0)), "{earlier:?} {later:?}");
            }
            before = now;
        }
        for thread in &mut probe.threads {
            let totals = thread.totals();
            let due = begin.elapsed().as_nanos() / EVERY.as_nanos() + 1;
            assert!(totals.beats >= 10, "{totals:?}");
            assert!(u128::from(totals.beats + totals.missed) <= due, "{totals:?} of {due}");
            assert!(totals.multiply_ns + totals.add_ns + totals.memory_ns <= totals.cpu_ns, "{totals:?}");
        }
        let report = serde_json::to_value(probe.report().unwrap()).unwrap();
        assert_eq!((&report["status"], &report["every_ms"]), (&"on".into(), &50.into()));
        assert_eq!(report["cpus"], serde_json::json!(cpus));
        assert_eq!((&report["memory_bytes"], &report["memory_steps"]), (&(8 << 20).into(), &1500.into()));
        assert_eq!(report["checks"].as_array().unwrap().len(), 3);
        let cost = &report["cost"];
        assert!(cost["run_ns"].as_u64().unwrap() > 0, "{cost}");
        assert_eq!(cost["run_ns"], cost["programs"][0]["run_ns"]);
    }

    #[test]
    fn what_was_done_before_the_first_sample_is_not_of_the_segment() {
        let mut probe = MachineSpeed::start(EVERY).unwrap();
        while probe.whole().beats < 3 {
            std::thread::sleep(EVERY);
        }
        let report = serde_json::to_value(probe.report().unwrap()).unwrap();
        assert_eq!((&report["cost"]["run_ns"], &report["missed"]), (&0.into(), &0.into()));
    }

    #[test]
    fn its_threads_end_with_it_and_do_not_wait_for_their_next_beat() {
        let hour = Duration::from_secs(3600);
        drop(MachineSpeed::start(hour).unwrap()); // or this would take an hour
    }

    #[test]
    #[ignore = "prints what beats cost"]
    fn cost() {
        let mut probe = MachineSpeed::start(Duration::from_millis(250)).unwrap();
        let first = sampled(&mut probe);
        std::thread::sleep(Duration::from_secs(20));
        for (first, last) in first.iter().zip(sampled(&mut probe)) {
            let each = |column| (last[column] - first[column]) as f64 / (last["beats"] - first["beats"]) as f64 / 1e3;
            let [multiply, add, memory] = ["multiply_ns", "add_ns", "memory_ns"].map(each);
            println!("CPU {}: {multiply:.1} us, {add:.1} us, {memory:.1} us a beat", last["cpu"]);
        }
        let (whole, threads) = (probe.whole(), probe.threads.len());
        let cost = probe.cost(&whole);
        let share = cost.run_ns as f64 / cost.segment_ns as f64 / threads as f64;
        println!("{:.3} % of each CPU", share * 100.0);
        assert!(share < 0.01, "{share}");
    }
}
