//! A body in chunks, in whatever pieces it arrives.

/// Digits of a chunk's length: more would not fit into a length.
const DIGITS_MAX: u8 = 15;
/// Bytes of extensions and trailers together.
const BESIDE_MAX: u32 = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In a chunk's length, with so many digits.
    Length(u8),
    /// After it, up to the line's end.
    Extension,
    Data,
    /// After the data: the line's end.
    DataEnd,
    /// In trailers; whether anything is on the line yet.
    Trailer(bool),
    Over,
}

/// Where in such a body the next byte is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunks {
    at: At,
    left: u64,
    beside: u32,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self { at: At::Length(0), left: 0, beside: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// Takes bytes until the body is over, hands its data to `body`, and gives how many were taken. `None` if this is no such body.
    pub(super) fn take(&mut self, bytes: &[u8], mut body: impl FnMut(&[u8])) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && self.at != At::Over {
            if self.at == At::Data {
                let length = self.left.min((bytes.len() - at) as u64) as usize;
                body(&bytes[at..at + length]);
                (at, self.left) = (at + length, self.left - length as u64);
                if self.left == 0 {
                    self.at = At::DataEnd;
                }
            } else {
                self.at = self.next(bytes[at])?;
                at += 1;
            }
        }
        Some(at)
    }

    fn next(&mut self, byte: u8) -> Option<At> {
        let of_length = |chunks: &Self| if chunks.left == 0 { At::Trailer(false) } else { At::Data };
        match (self.at, byte) {
            (At::Length(digits), _) if byte.is_ascii_hexdigit() && digits < DIGITS_MAX => {
                let digit = char::from(byte).to_digit(16)?;
                self.left = (self.left << 4) | u64::from(digit);
                Some(At::Length(digits + 1))
            }
            (At::Length(1..) | At::Extension, b'\n') => Some(of_length(self)),
            (At::Length(1..), b'\r' | b' ' | b'\t' | b';') | (At::Extension, _) => {
                self.beside += 1;
                (self.beside <= BESIDE_MAX).then_some(At::Extension)
            }
            (At::DataEnd, b'\r') => Some(At::DataEnd),
            (At::DataEnd, b'\n') => Some(At::Length(0)),
            (At::Trailer(false), b'\n') => Some(At::Over),
            (At::Trailer(true), b'\n') => Some(At::Trailer(false)),
            (At::Trailer(false), b'\r') => Some(At::Trailer(false)),
            (At::Trailer(_), _) => {
                self.beside += 1;
                (self.beside <= BESIDE_MAX).then_some(At::Trailer(true))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], size: usize) -> Option<(Vec<u8>, usize, bool)> {
        let (mut chunks, mut body, mut taken) = (Chunks::new(), Vec::new(), 0);
        for piece in text.chunks(size) {
            taken += chunks.take(piece, |data| body.extend_from_slice(data))?;
        }
        Some((body, taken, chunks.is_over()))
    }

    #[test]
    fn data_are_found_in_any_pieces() {
        let text = b"4\r\nWiki\r\n6;name=value\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n";
        for size in 1..=text.len() {
            let expected = b"Wikipedia in \r\n\r\nchunks.".to_vec();
            assert_eq!(read(text, size), Some((expected, text.len(), true)), "in pieces of {size}");
        }
    }

    #[test]
    fn what_follows_is_left() {
        assert_eq!(read(b"1\r\nx\r\n0\r\n\r\nHTTP", 100), Some((b"x".to_vec(), 11, true)));
    }

    #[test]
    fn what_is_cut_is_not_over_and_what_is_no_chunk_is_refused() {
        assert_eq!(read(b"5\r\nhel", 100), Some((b"hel".to_vec(), 6, false)));
        assert_eq!(read(b"5\r\nhello\r\n0\r\n", 100).map(|(_, _, over)| over), Some(false));
        for wrong in [&b"\r\n"[..], b"x\r\n", b"1\r\nab\r\n", b"fffffffffffffffff\r\n"] {
            assert_eq!(read(wrong, 100), None, "{wrong:?}");
        }
    }
}
