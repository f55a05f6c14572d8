//! What holds on a machine that lets threads run is asked again where it did not.
//!
//! The fact that constrains it: a test of times asks the machine, too, and other tests or neighbours may have both of its CPUs for
//! tens of milliseconds. Witnesses sleep beside the test and tell how much longer than asked they were kept. A test that fails
//! while none of them was kept has failed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ATTEMPTS: usize = 6;
const WITNESSES: usize = 2;
const NAP: Duration = Duration::from_millis(1);

/// Runs a test, and again if it failed while a thread that wanted to run was kept waiting for longer than `most`.
pub(crate) fn undisturbed(most: Duration, test: impl Fn()) {
    for attempt in 1..=ATTEMPTS {
        let (failed, kept) = witnessed(&test);
        let Err(panic) = failed else { return };
        if kept <= most || attempt == ATTEMPTS {
            eprintln!("attempt {attempt}: threads were kept waiting for {kept:?} at most");
            resume_unwind(panic);
        }
    }
}

/// How a test ended, and how long a thread was kept from running meanwhile at most.
fn witnessed(test: impl Fn()) -> (thread::Result<()>, Duration) {
    let (is_over, longest_ns) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = thread::scope(|scope| {
        for _ in 0..WITNESSES {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    thread::sleep(NAP);
                    let kept = began.elapsed().saturating_sub(NAP);
                    longest_ns.fetch_max(kept.as_nanos() as u64, Ordering::Relaxed);
                }
            });
        }
        let outcome = catch_unwind(AssertUnwindSafe(&test));
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    (outcome, Duration::from_nanos(longest_ns.into_inner()))
}
