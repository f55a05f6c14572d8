//! What a session counts over its life.

use crate::answer::{FAULTS, Fault};
use plimsoll_record::{VERIFICATION_EXAMPLES_MAX, Verification, WrongAnswer};
use plimsoll_session::SessionReport;

const NS_PER_SECOND: u128 = 1_000_000_000;
/// A connection whose requests failed as often as one in so many does not conform.
const FAILED_ONE_IN: u64 = 100;

/// A session's counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) connections: u64,
    pub(super) received_bytes: u64,
    pub(super) posts: u64,
    /// With a line speed: bytes of whole answers, and how long their lines took from the first byte to the last.
    line_bytes: u64,
    line_ns: u64,
    transactions: u64,
    failed: u64,
    busy_ns: u64,
    verification: Verification,
    faults: [u64; FAULTS.len()],
    /// Requests that were begun, by the class of the file asked for.
    classes: [u64; CLASSES.len()],
}

/// Names of the classes, as totals count their requests.
const CLASSES: [&str; 4] = ["class0_requests", "class1_requests", "class2_requests", "class3_requests"];

impl Tally {
    /// A transaction has begun, for a file of this class.
    pub(super) fn began(&mut self, class: u8) {
        self.classes[usize::from(class)] += 1;
    }

    /// A transaction has ended that lasted so long.
    pub(super) fn ended(&mut self, is_done: bool, lasted_ns: i64) {
        self.transactions += 1;
        self.failed += u64::from(!is_done);
        self.busy_ns += lasted_ns.max(0) as u64;
    }

    /// A line has carried a whole answer.
    pub(super) fn carried(&mut self, bytes: u64, ns: i64) {
        self.line_bytes += bytes;
        self.line_ns += ns.max(0) as u64;
    }

    /// An answer was judged.
    pub(super) fn judged(&mut self, index: u64, fault: Option<&Fault>) {
        self.verification.checked += 1;
        let Some(fault) = fault else { return };
        self.faults[fault.number()] += 1;
        if matches!(fault, Fault::Status(_)) {
            // The server has said itself that it failed.
            return;
        }
        self.verification.wrong += 1;
        if self.verification.examples.len() < VERIFICATION_EXAMPLES_MAX {
            self.verification.examples.push(WrongAnswer { index, message: fault.to_string() });
        }
    }

    /// Whether the session's work was done at this speed, and with fewer than one error in a hundred.
    fn conforms(&self, bits_per_s: u64) -> bool {
        let speed = u128::from(self.received_bytes) * 8 * NS_PER_SECOND / u128::from(self.busy_ns.max(1));
        speed >= u128::from(bits_per_s) && self.failed * FAILED_ONE_IN < self.transactions
    }

    pub(super) fn report(self, conforming_bits_per_s: u64) -> SessionReport {
        let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut totals = vec![
            ("connections_opened", count(self.connections)),
            ("received_bytes", count(self.received_bytes)),
            ("posts_acknowledged", count(self.posts)),
            ("busy_ns", count(self.busy_ns)),
            ("line_bytes", count(self.line_bytes)),
            ("line_ns", count(self.line_ns)),
            ("clients_with_work", i64::from(self.transactions > 0)),
            ("clients_conforming", i64::from(self.conforms(conforming_bits_per_s))),
        ];
        totals.extend(FAULTS.into_iter().zip(self.faults.map(count)));
        totals.extend(CLASSES.into_iter().zip(self.classes.map(count)));
        SessionReport { requests: self.requests, verification: self.verification, totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforming_is_fast_enough_with_few_errors() {
        let conforms = |bytes, failed, transactions| {
            let tally =
                Tally { received_bytes: bytes, failed, transactions, busy_ns: 2_000_000_000, ..Tally::default() };
            let report = tally.report(320_000);
            report.totals.iter().find(|(name, _)| *name == "clients_conforming").unwrap().1
        };
        assert_eq!([conforms(80_000, 0, 5), conforms(79_999, 0, 5)], [1, 0]);
        assert_eq!([conforms(80_000, 1, 101), conforms(80_000, 1, 100), conforms(0, 0, 0)], [1, 0, 0]);
    }

    #[test]
    fn faults_are_counted_by_what_they_are() {
        let mut tally = Tally::default();
        tally.judged(1, None);
        tally.judged(2, Some(&Fault::Status(500)));
        tally.judged(3, Some(&Fault::Content(70)));
        let report = tally.report(1);
        assert_eq!((report.verification.checked, report.verification.wrong), (3, 1));
        assert_eq!(report.verification.examples[0].message, "byte 70 of the file differs");
        let total = |name| report.totals.iter().find(|(of, _)| *of == name).unwrap().1;
        assert_eq!([total("wrong_status"), total("wrong_content"), total("wrong_file")], [1, 1, 0]);
    }
}
