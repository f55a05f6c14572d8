//! What the program hands over: the layout of profile.h.

const KERNEL_FRAMES: usize = 64;
const KERNEL_AT: usize = 48;
const STACK_AT: usize = KERNEL_AT + 8 * KERNEL_FRAMES;

/// One sample; what it shows lives in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    pub(crate) pid: u32,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// Only where calls leave a return address in a register.
    pub(crate) lr: u64,
    kernel: &'a [u8],
    stack: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> Sample<'a> {
    /// None if the bytes are none.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kernel_bytes, stack_bytes) = (half(bytes, 36)? as usize, half(bytes, 40)? as usize);
        Some(Self {
            ip: word(bytes, 0)?,
            sp: word(bytes, 8)?,
            fp: word(bytes, 16)?,
            lr: word(bytes, 24)?,
            pid: half(bytes, 32)?,
            kernel: bytes.get(KERNEL_AT..STACK_AT)?.get(..kernel_bytes)?,
            // The ring rounds up.
            stack: bytes.get(STACK_AT..)?.get(..stack_bytes)?,
        })
    }

    /// Addresses in the kernel, innermost first; none if it was outside.
    pub(crate) fn kernel(&self) -> impl Iterator<Item = u64> {
        self.kernel.chunks_exact(8).filter_map(|bytes| word(bytes, 0))
    }

    /// Whether the kernel's part may be longer than there is room for.
    pub(crate) fn kernel_is_full(&self) -> bool {
        self.kernel.len() == 8 * KERNEL_FRAMES
    }

    /// The word of the stack at an address; None beyond what was copied.
    pub(crate) fn on_stack(&self, address: u64) -> Option<u64> {
        word(self.stack, usize::try_from(address.checked_sub(self.sp)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_with_what_it_holds() {
        let mut bytes = vec![0; STACK_AT + 24];
        bytes[8..16].copy_from_slice(&1000_u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&77_u32.to_ne_bytes());
        bytes[36..40].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[40..44].copy_from_slice(&16_u32.to_ne_bytes());
        bytes[KERNEL_AT..KERNEL_AT + 8].copy_from_slice(&5_u64.to_ne_bytes());
        bytes[STACK_AT + 8..STACK_AT + 16].copy_from_slice(&9_u64.to_ne_bytes());
        let sample = Sample::decode(&bytes).unwrap();
        assert_eq!((sample.pid, sample.kernel().collect::<Vec<_>>()), (77, vec![5]));
        assert_eq!((sample.on_stack(1008), sample.on_stack(1016), sample.on_stack(992)), (Some(9), None, None));
        assert_eq!(Sample::decode(&bytes[..STACK_AT + 8]), None, "shorter than it says");
        assert_eq!(Sample::decode(&[]), None);
    }
}
