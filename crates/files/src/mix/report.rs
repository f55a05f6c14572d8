//! What a session has seen over its life.

use plimsoll_record::{VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_session::SessionReport;

/// Counts of one session.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) verification: Verification,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) system_calls: u64,
    /// Files that an operation found closed.
    pub(super) opened: u64,
    pub(super) created: u64,
    pub(super) removed: u64,
}

impl Report {
    /// An answer of operation `index` was wrong.
    #[cold]
    pub(super) fn wrong(&mut self, index: u64, message: &str) {
        self.verification.wrong += 1;
        if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
            self.verification.examples.push(WrongAnswer { index, message: message.to_owned() });
        }
    }

    /// As the engine takes it. Entries of a ring are no system calls: several are handed over in one.
    pub(super) fn session(self, counts_calls: bool) -> SessionReport {
        let total = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut totals = vec![
            ("bytes_read", total(self.bytes_read)),
            ("bytes_written", total(self.bytes_written)),
            ("files_opened", total(self.opened)),
            ("files_created", total(self.created)),
            ("files_removed", total(self.removed)),
        ];
        if counts_calls {
            totals.push(("system_calls", total(self.system_calls)));
        }
        SessionReport { requests: self.system_calls, verification: self.verification, totals }
    }
}
