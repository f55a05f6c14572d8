//! A blocking client, for administration and for queries that last: SQL in, rows of text or their number out, and COPY.

use super::handshake::{self, blocking_message};
use super::socket::Socket;
use super::wire::{HEADER_BYTES, Inbox, ServerError, command_tag, row_values};
use super::{Address, Canceller, Error};
use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use std::io::Write;
use std::time::Duration;

/// A row of text values; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// A blocking session.
#[derive(Debug)]
pub struct Client {
    address: Address,
    socket: Socket,
    inbox: Inbox,
    backend_pid: u32,
    secret: u32,
    requests: u64,
}

/// How much a query answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows.
    pub rows: u64,
    /// Bytes of the messages that brought them.
    pub bytes: u64,
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(address: &Address) -> Result<Self, Error> {
        let handshake::Welcome { socket, inbox, backend_pid, secret } = handshake::open(address)?;
        Ok(Self { address: address.clone(), socket, inbox, backend_pid, secret, requests: 0 })
    }

    /// From now on the connection counts as broken when the server is silent for `limit`, which is not zero.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn limit_silence(&self, limit: Duration) -> Result<(), Error> {
        Ok(self.socket.limit_reads(limit)?)
    }

    /// The server's process that serves this session, 0 if it did not say.
    pub fn backend_pid(&self) -> u32 {
        self.backend_pid
    }

    /// Requests sent so far; a COPY is one, with all of its rows.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// What ends, from another thread, whatever this session waits for.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn canceller(&self) -> Result<Canceller, Error> {
        Ok(Canceller::new(self.address.clone(), self.socket.try_clone()?, self.backend_pid, self.secret))
    }

    /// Where it went, for further sessions like this one.
    pub fn address(&self) -> &Address {
        &self.address
    }

    fn send(&mut self, write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<(), Error> {
        let mut out = BytesMut::new();
        write(&mut out)?;
        Ok(self.socket.write_all(&out)?)
    }

    fn ask(&mut self, sql: &str) -> Result<(), Error> {
        self.requests += 1;
        self.send(|out| frontend::query(sql, out))
    }

    /// Runs `sql` and counts what it answers, keeping none of it.
    ///
    /// # Errors
    /// When the server refuses or the connection breaks.
    pub fn answer(&mut self, sql: &str) -> Result<Answer, Error> {
        self.ask(sql)?;
        let mut answer = Answer::default();
        self.until_ready(|tag, body| {
            if tag == b'D' {
                answer.rows += 1;
                answer.bytes += (HEADER_BYTES + body.len()) as u64;
            }
            Ok(())
        })?;
        Ok(answer)
    }

    /// Runs `sql` (one or more statements) and gives the rows of all of them.
    ///
    /// # Errors
    /// When the server refuses or the connection breaks.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Error> {
        self.ask(sql)?;
        let mut rows = Vec::new();
        self.until_ready(|tag, body| {
            if tag == b'D' {
                let values = row_values(body).ok_or_else(|| Error::Protocol("a malformed row".to_owned()))?;
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                rows.push(values.into_iter().map(|value| value.map(text)).collect());
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Runs `sql` for its effect.
    ///
    /// # Errors
    /// When the server refuses or the connection breaks.
    pub fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.rows(sql).map(drop)
    }

    /// The integers of the first row of `sql`; NULL and text are refused.
    ///
    /// # Errors
    /// When the server refuses, the connection breaks or there is no row of integers.
    pub fn integers(&mut self, sql: &str) -> Result<Vec<i64>, Error> {
        let row = self.rows(sql)?.into_iter().next().ok_or_else(|| Error::Protocol(format!("no row from {sql}")))?;
        let parsed = |value: Option<String>| value.and_then(|text| text.parse().ok());
        let integers: Option<Vec<i64>> = row.into_iter().map(parsed).collect();
        integers.ok_or_else(|| Error::Protocol(format!("not integers from {sql}")))
    }

    /// Reads messages up to ReadyForQuery; an error of the server is given after it, so that the session stays usable.
    fn until_ready(&mut self, mut each: impl FnMut(u8, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut refused = None;
        loop {
            let (tag, body) = blocking_message(&mut self.socket, &mut self.inbox)?;
            match tag {
                b'Z' => return refused.map_or(Ok(()), |error: ServerError| Err(error.into())),
                b'E' => {
                    let error = ServerError::parse(&body);
                    if error.fatal {
                        return Err(error.into());
                    }
                    refused = Some(error);
                }
                _ => each(tag, &body)?,
            }
        }
    }

    /// Begins `sql`, a `COPY ... FROM STDIN (FORMAT binary)`.
    ///
    /// # Errors
    /// When the server refuses or the connection breaks.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Error> {
        self.ask(sql)?;
        loop {
            let (tag, body) = blocking_message(&mut self.socket, &mut self.inbox)?;
            match tag {
                b'G' => break,
                b'E' => {
                    let error = ServerError::parse(&body);
                    self.until_ready(|_, _| Ok(()))?;
                    return Err(error.into());
                }
                b'N' | b'S' => {}
                _ => return Err(Error::Protocol(format!("message '{}' to COPY", tag.escape_ascii()))),
            }
        }
        let mut copy = CopyIn { client: self, out: BytesMut::with_capacity(2 * COPY_MESSAGE_BYTES) };
        copy.begin_message();
        // The signature of COPY BINARY, no flags, no extension.
        copy.out.put_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        Ok(copy)
    }
}

/// Rows gather up to this size before they go out as one message.
const COPY_MESSAGE_BYTES: usize = 128 * 1024;

/// A COPY under way. Dropped unfinished, the connection must be dropped too (the server then rolls back).
#[derive(Debug)]
pub struct CopyIn<'a> {
    client: &'a mut Client,
    out: BytesMut,
}

impl CopyIn<'_> {
    fn begin_message(&mut self) {
        self.out.clear();
        self.out.put_u8(b'd');
        self.out.put_u32(0);
    }

    fn send_message(&mut self) -> Result<(), Error> {
        let length = (self.out.len() - 1) as u32;
        self.out[1..5].copy_from_slice(&length.to_be_bytes());
        self.client.socket.write_all(&self.out)?;
        self.begin_message();
        Ok(())
    }

    /// Lets `write` append rows, and sends when enough has gathered.
    ///
    /// # Errors
    /// When the connection breaks; the reason of a refusal comes from [`CopyIn::finish`].
    pub fn rows(&mut self, write: impl FnOnce(&mut BytesMut)) -> Result<(), Error> {
        write(&mut self.out);
        if self.out.len() >= COPY_MESSAGE_BYTES { self.send_message() } else { Ok(()) }
    }

    /// Ends the COPY and gives the number of rows that the server took.
    ///
    /// # Errors
    /// When the server refuses the rows or the connection breaks.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.out.put_i16(-1);
        self.send_message()?;
        self.client.send(|out| {
            frontend::copy_done(out);
            Ok(())
        })?;
        let mut copied = None;
        self.client.until_ready(|tag, body| {
            if tag == b'C' {
                let tag = String::from_utf8_lossy(command_tag(body));
                copied = tag.strip_prefix("COPY ").and_then(|count| count.parse().ok());
            }
            Ok(())
        })?;
        copied.ok_or_else(|| Error::Protocol("COPY without a count".to_owned()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.send(|out| {
            frontend::terminate(out);
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_server_that_falls_silent_is_left_after_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.1")).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
            // AuthenticationOk and ReadyForQuery, and no answer to anything after them.
            stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        });
        let address = Address {
            host: folder.path().display().to_string(),
            port: 1,
            user: "u".to_owned(),
            password: None,
            database: "d".to_owned(),
            settings: Vec::new(),
        };
        let mut client = Client::open(&address).unwrap();
        client.limit_silence(Duration::from_millis(50)).unwrap();
        assert!(matches!(client.run("SELECT 1"), Err(Error::Broken(_))));
        drop(client);
        server.join().unwrap();
    }
}
