//! Memory that is handed to the kernel with an operation, and comes back with its completion.

use std::ops::{Deref, DerefMut};

/// Owned bytes. The first lies on a page's boundary, as files that are read and written past the page cache (O_DIRECT) ask for.
#[derive(Debug)]
pub struct Buffer {
    /// Never made longer: that would move it off its boundary.
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Where a buffer may begin, in bytes.
    pub const BOUNDARY: usize = 4096;

    /// So many bytes of zero.
    pub fn zeroed(length: usize) -> Self {
        let bytes = vec![0; length + Self::BOUNDARY];
        let start = bytes.as_ptr().align_offset(Self::BOUNDARY);
        Self { bytes, start, length }
    }

    /// Makes it shorter, or as long again as it was made.
    ///
    /// # Panics
    /// Where it was not made so long.
    pub fn set_length(&mut self, length: usize) {
        assert!(length + Self::BOUNDARY <= self.bytes.len(), "no longer than it was made");
        self.length = length;
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_on_a_boundary_and_have_the_length_asked_for() {
        for length in [0, 1, 4_095, 4_096, 1_000_000] {
            let mut buffer = Buffer::zeroed(length);
            assert!(buffer.as_ptr().addr().is_multiple_of(Buffer::BOUNDARY));
            buffer.fill(7);
            assert_eq!((buffer.len(), buffer.iter().map(|&byte| usize::from(byte)).sum()), (length, 7 * length));
            buffer.set_length(length / 2);
            assert_eq!(buffer.len(), length / 2);
            buffer.set_length(length);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }
}
