//! One non-blocking session: queue messages, send, receive, decode. Whoever drives it owns the waiting.
//!
//! Statements are prepared once, before the measured path, and then run by Bind, Execute and Sync with binary parameters and
//! binary results. No Describe is sent: the caller knows the columns it asked for.

use super::handshake::{self, blocking_message};
use super::socket::Socket;
use super::wire::{Frame, Inbox, ServerError};
use super::{Address, Error};
use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// What became of the queued bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took all of them.
    All,
    /// The kernel's buffer is full; send again when the socket is writable.
    Part,
}

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// As many bytes as there was room for; the kernel may have more.
    Full,
    /// Fewer bytes than there was room for; all that was there, but the end of the stream may follow.
    Short,
    /// Nothing is there.
    Nothing,
}

/// A session that never blocks once it is open.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    inbox: Inbox,
    out: BytesMut,
    sent: usize,
    backend_pid: u32,
    names: Vec<String>,
}

impl Connection {
    /// Opens a session and prepares `statements` (SQL with `$1`...), blocking; from then on nothing blocks.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or refuses a statement.
    pub fn open(address: &Address, statements: &[&str]) -> Result<Self, Error> {
        let handshake::Welcome { socket, inbox, backend_pid } = handshake::open(address)?;
        let names = (0..statements.len()).map(|place| format!("s{place}")).collect();
        let mut connection = Self { socket, inbox, out: BytesMut::with_capacity(4096), sent: 0, backend_pid, names };
        connection.prepare(statements)?;
        connection.socket.set_nonblocking(true)?;
        Ok(connection)
    }

    fn prepare(&mut self, statements: &[&str]) -> Result<(), Error> {
        for (name, sql) in self.names.iter().zip(statements) {
            frontend::parse(name, sql, [], &mut self.out)?;
        }
        frontend::sync(&mut self.out);
        self.socket.write_all(&self.out)?;
        self.out.clear();
        let mut refused = None;
        loop {
            match blocking_message(&mut self.socket, &mut self.inbox)? {
                (b'Z', _) => return refused.map_or(Ok(()), |error: ServerError| Err(error.into())),
                (b'E', body) => refused = Some(ServerError::parse(&body)),
                _ => {}
            }
        }
    }

    /// The server's process that serves this session, 0 if it did not say.
    pub fn backend_pid(&self) -> u32 {
        self.backend_pid
    }

    /// Queues prepared statement number `statement`; `parameters` appends each value to [`Parameters`].
    pub fn queue_statement(&mut self, statement: usize, count: u16, parameters: impl FnOnce(&mut Parameters<'_>)) {
        let out = &mut self.out;
        message(out, b'B', |out| {
            out.put_u8(0);
            out.put_slice(self.names[statement].as_bytes());
            out.put_u8(0);
            out.put_slice(&[0, 1, 0, 1]);
            out.put_u16(count);
            parameters(&mut Parameters(out));
            out.put_slice(&[0, 1, 0, 1]);
        });
        message(out, b'E', |out| out.put_slice(&[0, 0, 0, 0, 0]));
    }

    /// Queues the end of a round trip: the server answers what was queued and then says that it is ready.
    pub fn queue_sync(&mut self) {
        frontend::sync(&mut self.out);
    }

    /// Queues SQL without parameters as a round trip of its own.
    ///
    /// # Panics
    /// When `sql` holds a zero byte.
    pub fn queue_simple(&mut self, sql: &str) {
        frontend::query(sql, &mut self.out).expect("SQL without a zero byte");
    }

    /// True if the kernel has yet to take queued bytes.
    pub fn has_unsent(&self) -> bool {
        self.sent < self.out.len()
    }

    /// True if the kernel took any of the bytes queued since it last had taken all.
    pub fn has_sent_part(&self) -> bool {
        self.sent > 0
    }

    /// Hands queued bytes to the kernel as far as it takes them.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send(&mut self) -> io::Result<Sent> {
        while self.has_unsent() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Part),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Takes what the kernel has received.
    ///
    /// # Errors
    /// When the connection is broken or closed by the server.
    pub fn receive(&mut self) -> io::Result<Received> {
        loop {
            let space = self.inbox.space();
            let room = space.len();
            match self.socket.read(space) {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
                Ok(bytes) => {
                    self.inbox.filled(bytes);
                    return Ok(if bytes == room { Received::Full } else { Received::Short });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next whole message of the server, `None` until more is received.
    ///
    /// # Errors
    /// When the bytes are not the protocol.
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, String> {
        self.inbox.frame()
    }

    /// Says goodbye if the kernel takes it at once, and closes.
    pub fn close(mut self) {
        self.out.clear();
        self.sent = 0;
        frontend::terminate(&mut self.out);
        let _ = self.send();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Writes a message with its length filled in afterwards.
fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    sized(out, true, body);
}

/// Writes a 32-bit length and what `body` writes; `inclusive` counts the length's own four bytes.
fn sized(out: &mut BytesMut, inclusive: bool, body: impl FnOnce(&mut BytesMut)) {
    let place = out.len();
    out.put_u32(0);
    body(out);
    let length = out.len() - place - if inclusive { 0 } else { 4 };
    out[place..place + 4].copy_from_slice(&(length as u32).to_be_bytes());
}

/// Binary values, each with its length: the form of a Bind's parameters, of a result row and of a COPY BINARY row.
#[derive(Debug)]
pub struct Parameters<'a>(pub(super) &'a mut BytesMut);

impl<'a> Parameters<'a> {
    /// Appends values to `out`.
    pub fn to(out: &'a mut BytesMut) -> Self {
        Self(out)
    }

    /// A bigint.
    #[inline]
    pub fn bigint(&mut self, value: i64) {
        self.0.put_u32(8);
        self.0.put_i64(value);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i32) {
        self.0.put_u32(4);
        self.0.put_i32(value);
    }

    /// A date: days since 2000-01-01.
    #[inline]
    pub fn date(&mut self, days: i32) {
        self.integer(days);
    }

    /// A timestamp: microseconds since 2000-01-01 00:00.
    #[inline]
    pub fn timestamp(&mut self, microseconds: i64) {
        self.bigint(microseconds);
    }

    /// A text.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        self.0.put_u32(value.len() as u32);
        self.0.put_slice(value);
    }

    /// A bigint[] of one dimension.
    pub fn bigint_array(&mut self, values: &[i64]) {
        self.array(20, values.len(), |inner| values.iter().for_each(|&value| inner.bigint(value)));
    }

    /// An integer[] of one dimension.
    pub fn integer_array(&mut self, values: &[i32]) {
        self.array(23, values.len(), |inner| values.iter().for_each(|&value| inner.integer(value)));
    }

    /// `element` is the type's object identifier, fixed in the server's catalogue.
    fn array(&mut self, element: u32, length: usize, values: impl FnOnce(&mut Parameters<'_>)) {
        sized(self.0, false, |out| {
            // One dimension, no NULL, the element's type, how many, the first has subscript 1.
            [1, 0, element, length as u32, 1].iter().for_each(|&word| out.put_u32(word));
            values(&mut Parameters(out));
        });
    }
}

/// Appends a row of COPY BINARY (and so the body of the DataRow that would return it).
#[inline]
pub fn put_row(out: &mut BytesMut, columns: u16, values: impl FnOnce(&mut Parameters<'_>)) {
    out.put_u16(columns);
    values(&mut Parameters(out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::wire::row_values;

    #[test]
    fn rows_have_the_form_that_the_server_sends() {
        let mut out = BytesMut::new();
        put_row(&mut out, 3, |row| {
            row.bigint(7);
            row.text(b"ab");
            row.integer_array(&[5, 6]);
        });
        let values = row_values(&out).unwrap();
        assert_eq!(values[0], Some(&[0, 0, 0, 0, 0, 0, 0, 7][..]));
        assert_eq!(values[1], Some(&b"ab"[..]));
        assert_eq!(values[2].unwrap().len(), 20 + 2 * 8);
    }
}
