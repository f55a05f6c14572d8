//! A short text that costs no memory.

use std::fmt;

/// Up to so many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<const BYTES_MAX: usize> {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl<const BYTES_MAX: usize> Default for Text<BYTES_MAX> {
    fn default() -> Self {
        Self { bytes: [0; BYTES_MAX], length: 0 }
    }
}

impl<const BYTES_MAX: usize> Text<BYTES_MAX> {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<const BYTES_MAX: usize> fmt::Write for Text<BYTES_MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
