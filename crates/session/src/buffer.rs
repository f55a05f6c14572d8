//! Memory that is handed to the kernel with an operation, and comes back with its completion.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Owned bytes. The first lies on a page's boundary, as files that are read and written past the page cache (O_DIRECT)
/// ask for.
#[derive(Debug)]
pub struct Buffer {
    /// Never made longer: that would move it off its boundary.
    bytes: Vec<u8>,
    start: usize,
    length: usize,
    fixed: Option<(Arc<Keeper>, u16)>,
}

/// Keeps the memory of buffers that are registered with a ring: it has to stay where it is for as long as the ring
/// lives, whoever lets go of the buffer before.
#[derive(Debug, Default)]
pub struct Keeper(Mutex<Vec<Vec<u8>>>);

impl Buffer {
    /// Where a buffer may begin, in bytes.
    pub const BOUNDARY: usize = 4096;

    /// So many bytes of zero.
    pub fn zeroed(length: usize) -> Self {
        let bytes = vec![0; length + Self::BOUNDARY];
        let start = bytes.as_ptr().align_offset(Self::BOUNDARY);
        Self { bytes, start, length, fixed: None }
    }

    /// Makes it shorter, or as long again as it was made.
    ///
    /// # Panics
    /// Where it was not made so long.
    #[inline]
    pub fn set_length(&mut self, length: usize) {
        assert!(length + Self::BOUNDARY <= self.bytes.len(), "no longer than it was made");
        self.length = length;
    }

    /// Its ring has registered it in place `index`; when it is dropped `keeper`, which lives as long as the ring, keeps
    /// its memory.
    pub fn fix(&mut self, keeper: &Arc<Keeper>, index: u16) {
        self.fixed = Some((Arc::clone(keeper), index));
    }

    /// Its place among those that the ring with this keeper has registered; `None` if it is not one of them.
    #[inline]
    pub fn fixed(&self, keeper: &Arc<Keeper>) -> Option<u16> {
        self.fixed.as_ref().filter(|(of, _)| Arc::ptr_eq(of, keeper)).map(|&(_, index)| index)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some((Keeper(kept), _)) = self.fixed.as_ref().map(|(keeper, index)| (keeper.as_ref(), index)) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.length]
    }
}

impl DerefMut for Buffer {
    #[inline]
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

    #[test]
    fn the_memory_of_a_registered_buffer_stays_where_it_is_when_the_buffer_is_dropped() {
        let (keeper, other) = (Arc::default(), Arc::default());
        let mut buffer = Buffer::zeroed(4_096);
        assert_eq!(buffer.fixed(&keeper), None);
        buffer.fix(&keeper, 7);
        buffer.fill(42);
        assert_eq!((buffer.fixed(&keeper), buffer.fixed(&other)), (Some(7), None), "of one ring alone");
        let (start, at) = (buffer.start, buffer.as_ptr().addr());
        drop(buffer);
        let kept = keeper.0.lock().unwrap();
        assert_eq!((kept.len(), kept[0][start..].as_ptr().addr(), kept[0][start]), (1, at, 42));
    }
}
