//! The steady state does not allocate: what is allocated does not grow with the number of transactions.
//!
//! One test alone in this file: every thread of the process is counted.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::{MockOpener, Scripted};
use plimsoll_load::{Config, Control};
use plimsoll_schedule::Schedule;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use support::{completion, config, controlled};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn transactions_cost_no_allocation() {
    let open = Schedule::Poisson { rate: 50_000.0, seed: 1, late_limit_ms: None };
    let drivers = [controlled, completion];
    for (schedule, drive) in [Schedule::default(), open].iter().flat_map(|one| drivers.map(|drive| (one, drive))) {
        let config = Config { transactions: None, schedule: schedule.clone(), rows_max: 10_000, ..config() };
        let control = Control::new(2);
        let opener = Arc::new(MockOpener::new(|_| Scripted::Done));
        let (transactions, allocations) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let reach = |count: u64| {
                    while control.identity().done < count {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    control.identity().done
                };
                let before = reach(5_000);
                let region = Region::new(ALLOCATOR);
                let after = reach(before + 40_000);
                let change = region.change();
                control.stop();
                (after - before, change.allocations + change.reallocations)
            });
            drive(&opener, 8, &control, &config);
            watch.join().unwrap()
        });
        // The writer makes room for a second's rows once; the workers nothing.
        assert!(allocations < 100, "{allocations} allocations in {transactions} transactions");
    }
}
