//! Who asks a test again: only where a witness was kept waiting.

#![allow(clippy::unwrap_used)]

mod support;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::undisturbed::undisturbed;

#[test]
fn a_test_that_fails_on_a_quiet_machine_fails() {
    let asked = AtomicU64::new(0);
    let failed = catch_unwind(|| {
        undisturbed(Duration::from_secs(3_600), || {
            asked.fetch_add(1, Ordering::Relaxed);
            panic!("as it should");
        });
    });
    assert!(failed.is_err());
    assert_eq!(asked.into_inner(), 1);
}

#[test]
fn a_test_that_was_disturbed_is_asked_again() {
    let asked = AtomicU64::new(0);
    undisturbed(Duration::ZERO, || {
        thread::sleep(Duration::from_millis(10));
        assert!(asked.fetch_add(1, Ordering::Relaxed) == 2, "not the third time yet");
    });
    assert_eq!(asked.into_inner(), 3);
}
