//! A message of RPC as far as it was kept, and the reader of its XDR.
//!
//! The fact that constrains it: what is written and read makes up nearly all of a capture and is never looked at. Of a long
//! message its beginning and its end are kept, and what lies between has a length and no bytes.

/// Bytes kept of a message's beginning. A multiple of four, so that no word of XDR lies across its end.
pub(crate) const HEAD_BYTES: usize = 4096;
/// Bytes kept of its end.
pub(crate) const TAIL_BYTES: usize = 512;

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) head: &'a [u8],
    pub(crate) tail: &'a [u8],
    pub(crate) length: usize,
}

/// What is asked for is not there: beyond the end, or not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing;

pub(crate) type Read<T> = Result<T, Missing>;

/// Reads a message from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Xdr<'a> {
    message: Message<'a>,
    at: usize,
}

impl<'a> Xdr<'a> {
    pub(crate) fn new(message: Message<'a>) -> Self {
        Self { message, at: 0 }
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let Message { head, tail, length, .. } = self.message;
        let end = self.at.checked_add(count).filter(|&end| end <= length).ok_or(Missing)?;
        let tail_at = length - tail.len().min(length);
        let taken = if end <= head.len() {
            head.get(self.at..end)
        } else {
            self.at.checked_sub(tail_at).and_then(|at| tail.get(at..end - tail_at))
        };
        self.at = end;
        taken.ok_or(Missing)
    }

    /// Goes on behind the next `count` bytes, kept or not.
    pub(crate) fn skip(&mut self, count: usize) -> Read<()> {
        self.at = self.at.checked_add(count).filter(|&end| end <= self.message.length).ok_or(Missing)?;
        Ok(())
    }

    pub(crate) fn u32(&mut self) -> Read<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| Missing)?))
    }

    pub(crate) fn u64(&mut self) -> Read<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    pub(crate) fn bool(&mut self) -> Read<bool> {
        Ok(self.u32()? != 0)
    }

    /// Bytes with their number before them, not above `most`.
    pub(crate) fn opaque(&mut self, most: usize) -> Read<&'a [u8]> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(Missing);
        }
        let bytes = self.take(count)?;
        self.skip(padding(count))?;
        Ok(bytes)
    }

    /// The number of bytes that follow, and past them.
    pub(crate) fn skip_opaque(&mut self) -> Read<u32> {
        let count = self.u32()?;
        self.skip((count as usize).checked_add(padding(count as usize)).ok_or(Missing)?)?;
        Ok(count)
    }

    /// Text with its length before it.
    pub(crate) fn text(&mut self) -> Read<String> {
        Ok(String::from_utf8_lossy(self.opaque(1024)?).into_owned())
    }
}

/// Bytes to the next word of XDR.
fn padding(count: usize) -> usize {
    count.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_head_and_tail_is_passed_over_and_not_read() {
        let tail = [0, 0, 0, 9];
        let message = Message { first_ns: 0, last_ns: 0, head: &[0, 0, 1, 1], tail: &tail, length: 4 + 260 + 4 };
        let mut xdr = Xdr::new(message);
        assert_eq!(xdr.skip_opaque(), Ok(257));
        assert_eq!(xdr.u32(), Ok(9));
        assert_eq!(xdr.u32(), Err(Missing));
        let mut xdr = Xdr::new(message);
        xdr.skip(4).unwrap();
        assert_eq!(xdr.u32(), Err(Missing));
    }

    #[test]
    fn a_length_beyond_all_is_not_believed() {
        let message = Message { first_ns: 0, last_ns: 0, head: &[0xff; 8], tail: &[], length: 8 };
        assert_eq!(Xdr::new(message).skip_opaque(), Err(Missing));
        assert_eq!(Xdr::new(message).opaque(usize::MAX), Err(Missing));
    }
}
