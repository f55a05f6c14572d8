//! A connection's line speed, held by reading no faster.
//!
//! The fact that constrains it: a thread is woken late. When a read is due is therefore counted from the first byte of the answer
//! and not from the read before, so that lateness is made up and never adds up.

const NS_PER_SECOND: u128 = 1_000_000_000;
const BITS_A_BYTE: u128 = 8;

/// The line of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    bits_per_s: u64,
    since_ns: Option<i64>,
    bytes: u64,
}

impl Pace {
    pub(super) fn new(bits_per_s: u64) -> Self {
        Self { bits_per_s, since_ns: None, bytes: 0 }
    }

    /// The next answer begins with the next byte.
    pub(super) fn begin(&mut self) {
        (self.since_ns, self.bytes) = (None, 0);
    }

    /// So many bytes were read by `now_ns`.
    pub(super) fn read(&mut self, bytes: usize, now_ns: i64) {
        self.since_ns.get_or_insert(now_ns);
        self.bytes += bytes as u64;
    }

    /// Bytes so far, and since when.
    pub(super) fn carried(&self) -> Option<(u64, i64)> {
        self.since_ns.map(|since_ns| (self.bytes, since_ns))
    }

    /// When the line has carried what was read; what comes next may be read from then on.
    pub(super) fn due_ns(&self) -> i64 {
        let line_ns = u128::from(self.bytes) * BITS_A_BYTE * NS_PER_SECOND / u128::from(self.bits_per_s);
        self.since_ns.map_or(i64::MIN, |since_ns| since_ns.saturating_add(line_ns as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_does_not_add_up() {
        let mut pace = Pace::new(400_000);
        assert!(pace.due_ns() < 0, "nothing was read");
        let mut now_ns = 1_000_000_000;
        for _ in 0..100 {
            pace.read(1_460, now_ns);
            // Woken three milliseconds late each time.
            now_ns = pace.due_ns() + 3_000_000;
        }
        assert_eq!(pace.due_ns(), 1_000_000_000 + 146_000 * 8 * 2_500);
        pace.begin();
        assert_eq!(pace.carried(), None);
        pace.read(50_000, 7);
        assert_eq!(pace.carried(), Some((50_000, 7)));
        assert_eq!(pace.due_ns(), 1_000_000_007);
    }
}
