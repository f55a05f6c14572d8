//! Where the time of a server's processes goes: the waits of their threads, summed up by process.
//!
//! The fact that constrains it: a wait is handed over when its thread leaves its CPU again, so from one to the next a thread's time is one
//! wait and what it was on a CPU for after that. So the parts of a process add up to the time in which its threads were seen.

use super::records::{PREEMPTED, Wait};
use plimsoll_record::WorkerTime;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What is counted of a process.
#[derive(Debug, Default)]
struct Sums {
    of_program: bool,
    name: String,
    threads: u64,
    span_ns: i64,
    cpu_ns: i64,
    run_queue_ns: i64,
    missed: i64,
    waits: BTreeMap<String, (u64, i64)>,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.span_ns += other.span_ns;
        self.cpu_ns += other.cpu_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.missed += other.missed;
        for (bucket, (count, ns)) in other.waits {
            let sum = self.waits.entry(bucket).or_default();
            *sum = (sum.0 + count, sum.1 + ns);
        }
    }

    fn told(self, process: u32, processes: u64) -> WorkerTime {
        let positive = |ns: i64| ns.max(0) as u64;
        WorkerTime {
            process,
            role: if self.of_program { "program" } else { "server" }.to_owned(),
            name: self.name,
            processes,
            threads: self.threads,
            span_ns: positive(self.span_ns),
            cpu_ns: positive(self.cpu_ns),
            run_queue_ns: positive(self.run_queue_ns),
            missed: positive(self.missed),
            waits: self.waits.iter().map(|(bucket, (count, _))| (bucket.clone(), *count)).collect(),
            asleep_ns: self.waits.into_iter().map(|(bucket, (_, ns))| (bucket, positive(ns))).collect(),
        }
    }
}

/// The processes of a server.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// The last wait of each thread, with what it waited for.
    last: HashMap<u32, (Wait, String)>,
    processes: BTreeMap<u32, Sums>,
}

impl Workers {
    /// Takes a wait; those of a thread come in their order.
    pub(super) fn take(&mut self, wait: Wait, bucket: &str) {
        let process = self.processes.entry(wait.process).or_insert_with(|| Sums {
            of_program: wait.of_program,
            name: name_of(wait.process),
            ..Sums::default()
        });
        // A number that somebody else had before is a new thread: what lay between was nobody's time.
        let is_same = |before: &Wait| {
            before.process == wait.process && before.switches < wait.switches && before.runtime_ns <= wait.runtime_ns
        };
        let last = self.last.insert(wait.session, (wait, bucket.to_owned()));
        let Some((before, waited_for)) = last.filter(|(before, _)| is_same(before)) else {
            process.threads += 1;
            return;
        };
        process.span_ns += wait.left_ns - before.left_ns;
        process.cpu_ns += wait.left_ns - before.back_ns;
        process.run_queue_ns += before.run_queue_ns;
        process.missed += wait.switches - before.switches - 1;
        if before.place != PREEMPTED {
            let sum = process.waits.entry(waited_for).or_default();
            *sum = (sum.0 + 1, sum.1 + before.asleep_ns());
        }
    }

    /// What each process did; those that have ended are one of each name.
    pub(super) fn told(self) -> Vec<WorkerTime> {
        let mut ended: BTreeMap<(bool, String), (u64, Sums)> = BTreeMap::new();
        let mut told = Vec::new();
        for (process, sums) in self.processes {
            if Path::new("/proc").join(process.to_string()).exists() {
                told.push(sums.told(process, 1));
                continue;
            }
            let (of_program, name) = (sums.of_program, sums.name.clone());
            let (count, all) = ended
                .entry((of_program, name.clone()))
                .or_insert_with(|| (0, Sums { of_program, name, ..Sums::default() }));
            *count += 1;
            all.add(sums);
        }
        told.extend(ended.into_values().map(|(count, sums)| sums.told(0, count)));
        told
    }
}

/// What the kernel calls it; nothing where it is gone already.
fn name_of(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(session: u32, process: u32, left_ns: i64, back_ns: i64, run_queue_ns: i64, switches: i64) -> Wait {
        Wait { left_ns, back_ns, run_queue_ns, runtime_ns: 0, switches, session, place: 1, process, of_program: false }
    }

    #[test]
    fn the_parts_of_a_process_add_up_to_the_time_that_its_threads_were_seen() {
        let mut workers = Workers::default();
        let me = std::process::id();
        workers.take(wait(1, me, 0, 40, 10, 5), "page");
        workers.take(wait(1, me, 100, 130, 0, 6), "socket");
        workers.take(wait(2, me, 0, 7, 0, 1), "socket");
        // Not seen before: only with its next wait is anything known of its time.
        workers.take(Wait { place: PREEMPTED, ..wait(1, me, 150, 160, 10, 8) }, "run_queue");
        workers.take(wait(1, me, 200, 210, 0, 9), "socket");
        let told = workers.told();
        let [mine] = &told[..] else { panic!("{told:?}") };
        let asleep: u64 = mine.asleep_ns.values().sum();
        assert_eq!((mine.process, mine.threads, mine.span_ns), (me, 2, 200));
        assert_eq!((mine.cpu_ns, mine.run_queue_ns, asleep, mine.missed), (120, 20, 60, 1));
        assert_eq!(mine.cpu_ns + mine.run_queue_ns + asleep, mine.span_ns);
        assert_eq!((mine.asleep_ns["page"], mine.asleep_ns["socket"]), (30, 30));
    }

    #[test]
    fn a_number_that_another_thread_had_is_a_new_one() {
        let mut workers = Workers::default();
        let me = std::process::id();
        workers.take(wait(1, me, 0, 40, 10, 5), "page");
        workers.take(wait(1, me, 100, 130, 0, 6), "socket");
        // It has ended; long after that another one has its number.
        workers.take(wait(1, me, 1_000_000, 1_000_040, 0, 1), "page");
        workers.take(wait(1, me, 1_000_100, 1_000_130, 0, 2), "socket");
        let told = workers.told();
        assert_eq!((told[0].threads, told[0].span_ns, told[0].cpu_ns, told[0].missed), (2, 200, 120, 0));
    }

    #[test]
    fn processes_that_have_ended_are_one() {
        let mut workers = Workers::default();
        for process in [u32::MAX - 1, u32::MAX] {
            workers.take(wait(process, process, 0, 40, 10, 5), "page");
            workers.take(wait(process, process, 100, 130, 0, 6), "socket");
        }
        let told = workers.told();
        assert_eq!((told.len(), told[0].process, told[0].processes, told[0].span_ns), (1, 0, 2, 200));
    }
}
