//! One non-blocking session: queue messages, send, receive, decode. Whoever drives it owns the waiting.
//!
//! Statements are encoded before the measured path ([`Statements`]); queueing one copies its bytes around the values.

use super::handshake::{self, blocking_message};
use super::socket::Socket;
use super::spare;
use super::statement::{Mode, Statements};
use super::values::Parameters;
use super::wire::{Frame, Inbox, ServerError};
use super::{Address, Error};
use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

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
    /// Without memory of its own while nothing is queued.
    out: BytesMut,
    sent: usize,
    backend_pid: u32,
    statements: Arc<Statements>,
    /// Statements that need no Parse; one whose Parse is queued counts as such until the server has refused it.
    prepared: Vec<bool>,
    /// Statements whose Parse is not yet answered.
    parsing: VecDeque<usize>,
    /// Where the length of an unfinished Query stands, in simple mode.
    query_length_at: Option<usize>,
    words: BytesMut,
    word_ends: Vec<usize>,
}

impl Connection {
    /// Opens a session and prepares `statements` where that is their way, blocking; from then on nothing blocks.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or refuses a statement.
    pub fn open(address: &Address, statements: &Arc<Statements>) -> Result<Self, Error> {
        let handshake::Welcome { socket, inbox, backend_pid, .. } = handshake::open(address)?;
        let mut connection = Self {
            socket,
            inbox,
            out: BytesMut::new(),
            sent: 0,
            backend_pid,
            statements: Arc::clone(statements),
            prepared: vec![true; statements.each.len()],
            parsing: VecDeque::new(),
            query_length_at: None,
            words: BytesMut::new(),
            word_ends: Vec::new(),
        };
        if statements.mode == Mode::Prepared {
            connection.prepare()?;
        }
        connection.socket.set_nonblocking(true)?;
        Ok(connection)
    }

    fn prepare(&mut self) -> Result<(), Error> {
        for (encoded, prepared) in self.statements.each.iter().zip(&mut self.prepared) {
            *prepared = !encoded.at_first_use;
            if *prepared {
                self.out.put_slice(&encoded.parse);
            }
        }
        if self.out.is_empty() {
            return Ok(());
        }
        frontend::sync(&mut self.out);
        self.socket.write_all(&self.out)?;
        self.out.clear();
        let mut asked = self.prepared.iter().enumerate().filter(|(_, prepared)| **prepared).map(|(place, _)| place);
        let (mut parsing, mut refused) = (asked.next(), None);
        loop {
            match blocking_message(&mut self.socket, &mut self.inbox)? {
                (b'Z', _) => return refused.map_or(Ok(()), Err),
                (b'1', _) => parsing = asked.next(),
                (b'E', body) => {
                    let error = ServerError::parse(&body);
                    refused = Some(match parsing {
                        Some(place) if !error.fatal => Error::Statement { place, error },
                        _ => error.into(),
                    });
                }
                _ => {}
            }
        }
    }

    /// The server's process that serves this session, 0 if it did not say.
    pub fn backend_pid(&self) -> u32 {
        self.backend_pid
    }

    #[inline]
    fn make_room(&mut self) {
        if self.out.capacity() == 0 {
            self.out = spare::take_queued();
        }
    }

    /// Queues statement number `statement`; `parameters` appends the value of each parameter, in the order of their numbers.
    #[inline]
    pub fn queue_statement(&mut self, statement: usize, parameters: impl FnOnce(&mut Parameters<'_>)) {
        self.make_room();
        if self.statements.mode == Mode::Simple {
            return self.queue_text(statement, parameters);
        }
        if !self.prepared[statement] {
            self.queue_parse(statement);
        }
        let encoded = &self.statements.each[statement];
        let length_at = self.out.len() + encoded.length_at;
        self.out.put_slice(&encoded.head);
        parameters(&mut Parameters::in_form(encoded.form, &mut self.out));
        let length = (self.out.len() - length_at + encoded.bind_tail) as u32;
        self.out.put_slice(&encoded.tail);
        self.out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }

    #[cold]
    fn queue_parse(&mut self, statement: usize) {
        self.out.put_slice(&self.statements.each[statement].parse);
        self.prepared[statement] = true;
        self.parsing.push_back(statement);
    }

    fn queue_text(&mut self, statement: usize, parameters: impl FnOnce(&mut Parameters<'_>)) {
        self.words.clear();
        self.word_ends.clear();
        parameters(&mut Parameters::in_sql(&mut self.words, &mut self.word_ends));
        if self.query_length_at.is_some() {
            self.out.put_u8(b';');
        } else {
            self.query_length_at = Some(self.out.len() + 1);
            self.out.put_slice(b"Q\0\0\0\0");
        }
        let encoded = &self.statements.each[statement];
        for (place, part) in encoded.parts.iter().enumerate() {
            self.out.put_slice(part);
            if let Some(&value) = encoded.order.get(place) {
                let from = value.checked_sub(1).map_or(0, |before| self.word_ends[before]);
                self.out.put_slice(&self.words[from..self.word_ends[value]]);
            }
        }
    }

    /// Queues the end of a round trip: the server answers what was queued and then says that it is ready.
    #[inline]
    pub fn queue_sync(&mut self) {
        self.make_room();
        match self.query_length_at.take() {
            None => self.out.put_slice(b"S\0\0\0\x04"),
            Some(length_at) => {
                self.out.put_u8(0);
                let length = (self.out.len() - length_at) as u32;
                self.out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// Queues SQL without parameters as a round trip of its own.
    ///
    /// # Panics
    /// When `sql` holds a zero byte.
    pub fn queue_simple(&mut self, sql: &str) {
        self.make_room();
        frontend::query(sql, &mut self.out).expect("SQL without a zero byte");
    }

    /// Forgets what was queued, of which nothing may have been sent.
    ///
    /// # Panics
    /// In tests, when some of it was sent, or a statement's Parse is forgotten with it.
    pub fn drop_queued(&mut self) {
        assert!(self.sent == 0 && self.parsing.is_empty(), "part of a request is on its way");
        self.query_length_at = None;
        self.out.clear();
    }

    /// True if the kernel has yet to take queued bytes.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.sent < self.out.len()
    }

    /// True if the kernel took any of the bytes queued since it last had taken all.
    #[inline]
    pub fn has_sent_part(&self) -> bool {
        self.sent > 0
    }

    /// Hands queued bytes to the kernel as far as it takes them.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn send(&mut self) -> io::Result<Sent> {
        self.inbox.rest();
        while self.has_unsent() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Part),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        spare::give_queued(std::mem::take(&mut self.out));
        self.sent = 0;
        Ok(Sent::All)
    }

    /// Takes what the kernel has received.
    ///
    /// # Errors
    /// When the connection is broken or closed by the server.
    #[inline]
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
    #[inline]
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, String> {
        let frame = self.inbox.frame()?;
        if !self.parsing.is_empty() {
            note_parsed(&mut self.parsing, &mut self.prepared, frame.map(|frame| frame.tag));
        }
        Ok(frame)
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
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Follows which Parses the server took: the unanswered ones of a round trip it did not.
#[cold]
#[inline]
fn note_parsed(parsing: &mut VecDeque<usize>, prepared: &mut [bool], tag: Option<u8>) {
    match tag {
        Some(b'1') => {
            parsing.pop_front();
        }
        Some(b'Z') => parsing.drain(..).for_each(|statement| prepared[statement] = false),
        _ => {}
    }
}
