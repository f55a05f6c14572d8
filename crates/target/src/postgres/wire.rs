//! Decoding of the server's messages, without I/O: bytes go in by [`Inbox::space`], frames come out by [`Inbox::frame`].
//!
//! Every message is a tag byte, a length (big-endian, counting itself but not the tag) and a body.

use super::spare;
use std::fmt;

/// No message of an honest server in our use is larger; a longer length means that we lost the thread.
const BODY_BYTES_MAX: usize = 1 << 28;
/// Of a message: its tag and its length.
pub(super) const HEADER_BYTES: usize = 5;
const SPACE_BYTES_MIN: usize = 4096;

/// Received bytes that are not yet decoded. Grows to the largest message and stays there.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Empty while nothing is received or left.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What kind of message.
    pub tag: u8,
    /// Its content.
    pub body: &'a [u8],
}

impl Inbox {
    /// Where the next received bytes go; call [`Inbox::filled`] with how many came.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.is_empty() {
                self.buffer = spare::take_received(2 * SPACE_BYTES_MIN);
            }
        }
        if self.buffer.len() - self.end < SPACE_BYTES_MIN {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < SPACE_BYTES_MIN {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// `bytes` were put into the space.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// Lets go of the buffer, for others on this thread, if everything in it is decoded.
    #[inline]
    pub fn rest(&mut self) {
        if self.start == self.end && !self.buffer.is_empty() {
            spare::give_received(std::mem::take(&mut self.buffer));
        }
    }

    /// The next whole message, or `None` until more bytes come.
    ///
    /// # Errors
    /// A length that no message has.
    #[inline]
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, String> {
        let waiting = &self.buffer[self.start..self.end];
        let [tag, a, b, c, d, ..] = *waiting else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..=BODY_BYTES_MAX).contains(&length) {
            return Err(format!("a message '{}' of {length} bytes", tag.escape_ascii()));
        }
        let whole = length + 1;
        if waiting.len() < whole {
            return Ok(None);
        }
        let body = self.start + HEADER_BYTES..self.start + whole;
        self.start += whole;
        Ok(Some(Frame { tag, body: &self.buffer[body] }))
    }
}

/// An error as the server reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// True for FATAL and PANIC: the server ends the connection.
    pub fatal: bool,
    /// Five characters.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

impl std::error::Error for ServerError {}

impl ServerError {
    /// Decodes the body of an ErrorResponse; fields that are missing stay empty.
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self { fatal: false, sqlstate: String::new(), message: String::new() };
        for field in body.split(|&byte| byte == 0) {
            let Some((code, text)) = field.split_first() else { break };
            let text = String::from_utf8_lossy(text);
            match code {
                b'V' => error.fatal = text == "FATAL" || text == "PANIC",
                b'C' => error.sqlstate = text.into_owned(),
                b'M' => error.message = text.into_owned(),
                _ => {}
            }
        }
        error
    }
}

/// Splits the body of a DataRow, or a row of COPY BINARY, which has the same form: a count, then a length (-1: NULL) and
/// the bytes of each value. `None` if the body is malformed.
pub fn row_values(body: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut values = Vec::with_capacity(usize::from(u16::from_be_bytes(*count)));
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                values.push(Some(after.get(..length)?));
                rest = &after[length..];
            }
            Err(_) => {
                values.push(None);
                rest = after;
            }
        }
    }
    rest.is_empty().then_some(values)
}

/// Names of the columns in the body of a RowDescription. `None` if it is malformed.
pub fn column_names(body: &[u8]) -> Option<Vec<&[u8]>> {
    /// After its name, a column has its table, its place there, type, length, modifier and format.
    const REST_BYTES: usize = 18;
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut names = Vec::with_capacity(usize::from(u16::from_be_bytes(*count)));
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|&byte| byte == 0)?;
        names.push(&rest[..end]);
        rest = rest.get(end + 1 + REST_BYTES..)?;
    }
    rest.is_empty().then_some(names)
}

/// The command tag of a CommandComplete, without its closing zero.
pub fn command_tag(body: &[u8]) -> &[u8] {
    body.strip_suffix(b"\0").unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(inbox: &mut Inbox, bytes: &[u8]) {
        inbox.space()[..bytes.len()].copy_from_slice(bytes);
        inbox.filled(bytes.len());
    }

    /// As PostgreSQL 15.18 answers a bound `select 7::int4, null` in binary with Sync.
    const RECORDED: &[u8] =
        b"2\0\0\0\x04D\0\0\0\x12\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xffC\0\0\0\rSELECT 1\0Z\0\0\0\x05I";

    #[test]
    fn recorded_replies_decode_wherever_they_are_cut() {
        for cut in 0..=RECORDED.len() {
            let mut inbox = Inbox::default();
            let mut seen = Vec::new();
            for part in [&RECORDED[..cut], &RECORDED[cut..]] {
                feed(&mut inbox, part);
                while let Some(frame) = inbox.frame().unwrap() {
                    seen.push((frame.tag, frame.body.to_vec()));
                }
            }
            assert_eq!(seen.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), b"2DCZ");
            assert_eq!(row_values(&seen[1].1).unwrap(), [Some(&[0, 0, 0, 7][..]), None]);
            assert_eq!(command_tag(&seen[2].1), b"SELECT 1");
        }
    }

    #[test]
    fn column_names_decode() {
        let column = |name: &str| [name.as_bytes(), &[0; 19]].concat();
        let body = [&[0, 2][..], &column("a"), &column("b c")].concat();
        assert_eq!(column_names(&body).unwrap(), [&b"a"[..], b"b c"]);
        assert_eq!(column_names(&body[..body.len() - 1]), None);
    }

    #[test]
    fn errors_decode() {
        let body = b"SFEHLER\0VERROR\0C40001\0Mcould not serialize\0Fx.c\0\0";
        let expected = ServerError { fatal: false, sqlstate: "40001".into(), message: "could not serialize".into() };
        assert_eq!(ServerError::parse(body), expected);
        assert!(ServerError::parse(b"SFATAL\0VFATAL\0C57P01\0Mbye\0\0").fatal);
        // The first of the two is in the server's language.
        assert!(ServerError::parse("S致命错误\0VFATAL\0C57P01\0Mbye\0\0".as_bytes()).fatal);
        assert_eq!(ServerError::parse(b"").sqlstate, "");
    }

    #[test]
    fn a_message_larger_than_the_buffer_arrives() {
        let body = vec![7u8; 100_000];
        let mut message = vec![b'D'];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(&body);
        let mut inbox = Inbox::default();
        let mut rest = &message[..];
        while !rest.is_empty() {
            assert_eq!(inbox.frame().unwrap(), None);
            let space = inbox.space();
            let taken = space.len().min(rest.len());
            space[..taken].copy_from_slice(&rest[..taken]);
            inbox.filled(taken);
            rest = &rest[taken..];
        }
        assert_eq!(inbox.frame().unwrap(), Some(Frame { tag: b'D', body: &body }));
    }

    #[test]
    fn nonsense_is_an_error() {
        let mut inbox = Inbox::default();
        feed(&mut inbox, b"HTTP/1.1 400");
        assert!(inbox.frame().unwrap_err().contains("'H'"));
        assert_eq!(row_values(&[0, 1, 0, 0, 0, 9, 1]), None);
        assert_eq!(row_values(&[0, 0, 1]), None, "trailing bytes");
    }
}
