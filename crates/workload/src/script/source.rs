//! A script's text while it is read: where we are, and what is wrong there.

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Bytes before the place.
    pub(super) at: usize,
    pub(super) message: String,
}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes before this place.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Skips spaces within a line, and backslashes that carry it on.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.rest().as_bytes() {
                [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                _ => return,
            }
        }
    }

    /// Takes bytes as long as `wanted` says; what it says of a byte beyond ASCII must not depend on the byte.
    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|&byte| wanted(byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// The next word of a meta command: up to a space, the line's end or a backslash that carries the line on.
    pub(super) fn word(&mut self) -> Option<(usize, &'a str)> {
        self.skip_blanks();
        let (start, rest) = (self.at, self.rest());
        let mut length = 0;
        while let Some(byte) = rest.as_bytes().get(length) {
            let continued = rest[length..].starts_with("\\\n") || rest[length..].starts_with("\\\r\n");
            if byte.is_ascii_whitespace() || *byte == 0x0b || continued {
                break;
            }
            length += rest[length..].chars().next().map_or(1, char::len_utf8);
        }
        self.at += length;
        (length > 0).then(|| (start, &rest[..length]))
    }

    /// Skips the rest of a meta command: its line, with those that a backslash joins to it.
    pub(super) fn skip_command(&mut self) {
        while self.word().is_some() {}
        self.at += usize::from(!self.rest().is_empty());
    }
}

/// The number, from 1, of the line that holds the byte at `at`.
pub(super) fn line(text: &str, at: usize) -> u32 {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() as u32 + 1
}
