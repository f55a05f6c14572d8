//! What the programs hand over: the layouts of `struct wait`, and of `struct stack` (bpf/stack.bpf.h).

const RECORD_BYTES: usize = 56;
/// `UNKNOWN_PLACE`.
pub(super) const UNKNOWN_PLACE: u32 = u32::MAX;
/// In place of a stack's number: the thread was preempted, or woken before it was asleep.
pub(super) const PREEMPTED: u32 = 0;

/// A thread of the load, or of a server, was off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) left_ns: i64,
    pub(super) back_ns: i64,
    pub(super) run_queue_ns: i64,
    pub(super) runtime_ns: i64,
    pub(super) switches: i64,
    pub(super) session: u32,
    pub(super) place: u32,
    pub(super) process: u32,
    pub(super) of_program: bool,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

impl Wait {
    /// None if the bytes are no record.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..RECORD_BYTES)?;
        let ns = |at| i64::from_ne_bytes(number(bytes, at));
        let half = |at| u32::from_ne_bytes(number(bytes, at));
        Some(Self {
            left_ns: ns(0),
            back_ns: ns(8),
            run_queue_ns: ns(16),
            runtime_ns: ns(24),
            switches: ns(32),
            session: half(40),
            place: half(44),
            process: half(48),
            of_program: half(52) != 0,
        })
    }

    /// Asleep, without what it waited for a CPU after that.
    pub(super) fn asleep_ns(&self) -> i64 {
        self.back_ns - self.left_ns - self.run_queue_ns
    }
}

/// The addresses of a stack, innermost first.
pub(super) fn frames(key: &[u8]) -> Vec<u64> {
    let words = key.chunks_exact(8).map(|word| u64::from_ne_bytes(number(word, 0)));
    words.take_while(|address| *address > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_by_its_layout() {
        let mut bytes: Vec<u8> = [100_u64, 145, 5, 90, 6].iter().flat_map(|ns| ns.to_ne_bytes()).collect();
        bytes.extend([7_u32, 3, 8, 1].iter().flat_map(|half| half.to_ne_bytes()));
        let wait = Wait::decode(&bytes).unwrap();
        let (left_ns, back_ns, run_queue_ns, runtime_ns) = (100, 145, 5, 90);
        let of = (7, 3, 8, true);
        let (session, place, process, of_program) = of;
        let expected =
            Wait { left_ns, back_ns, run_queue_ns, runtime_ns, switches: 6, session, place, process, of_program };
        assert_eq!((wait, wait.asleep_ns()), (expected, 40));
        assert_eq!(Wait::decode(&bytes[1..]), None);
        let stack: Vec<u8> = [3_u64, 4, 0, 5].iter().flat_map(|address| address.to_ne_bytes()).collect();
        assert_eq!(frames(&stack), [3, 4]);
    }
}
