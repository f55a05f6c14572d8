//! Between windows no thread of the load wakes up, and no window costs memory.
//!
//! One test alone in this file: every thread of the process is looked at.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::Config;
use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_schedule::Schedule;
use std::sync::Arc;
use std::time::Duration;
use support::windows::{Carry, in_windows};
use support::{MS, blocking, completion, config, controlled};

/// How often any thread but this one has waited so far.
fn waits() -> u64 {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap());
    let others = tasks.filter(|task| task.file_name().to_str() != Some(&own));
    let waits = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:").map(str::to_owned));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    others.map(|task| waits(std::fs::read_to_string(task.path().join("status")).unwrap())).sum()
}

#[test]
fn nobody_wakes_up_while_the_gate_is_closed() {
    let open = Schedule::Poisson { rate: 3_000.0, seed: 1, late_limit_ms: None };
    let drivers: [(Carry, usize); 3] = [(controlled, 2), (completion::<MockOpener>, 2), (blocking, 4)];
    for (schedule, driver) in [Schedule::default(), open].iter().flat_map(|one| drivers.map(|driver| (one, driver))) {
        let config = Config { transactions: None, schedule: schedule.clone(), reconnect: true, ..config() };
        let opener = Arc::new(MockOpener::new(|_| Scripted::DoneAfter(MS / 2)));
        let (segment, woken) = in_windows(driver, (&opener, 4), &config, |gate| {
            assert!(gate.window(50 * MS).done() > 4);
            // What is still on its way to the disk, and who still goes to sleep.
            std::thread::sleep(Duration::from_millis(300));
            let before = waits();
            std::thread::sleep(Duration::from_millis(500));
            waits() - before
        });
        assert_eq!(woken, 0, "{:?}", segment.outcomes.identity);
    }
}
