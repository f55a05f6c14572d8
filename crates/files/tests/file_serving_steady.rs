//! A line costs no allocation: what is allocated does not grow with the lines that were performed.
//!
//! One test alone in this file: every thread of the process is counted.

#![allow(clippy::unwrap_used)]

use plimsoll_files::{FileServing, FileWorkload, Finish, Sessions, Tree};
use plimsoll_record::Outcome;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn lines_cost_no_allocation() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let request = json!({"name": "file_serving", "seed": 9, "script": {"synthetic": {}}});
    let workload = Arc::new(FileServing::new(&serde_json::from_value(request).unwrap()).unwrap());
    let tree = Arc::new(Tree::create(folder.path(), workload.name()).unwrap());
    let sessions = Arc::clone(&workload).sessions(&tree, 1, Finish::new(|| {})).unwrap();
    let Sessions::Blocking(opener) = sessions else { panic!("its calls block") };
    let mut client = opener.open(0).unwrap();
    let mut perform = |lines: u64| {
        for index in 0..lines {
            client.begin(index);
            let ending = client.perform();
            assert_eq!(ending.outcome, Outcome::Done, "{ending:?}");
        }
    };
    let lines = 100_000;
    perform(1_000);
    let region = Region::new(ALLOCATOR);
    perform(lines);
    let change = region.change();
    assert_eq!(change.allocations + change.reallocations, 0, "in {lines} lines");
}
