//! TLS on a socket, without waiting.
//!
//! The fact that constrains it: whoever drives a session knows one descriptor and not what is said on it. So a send may wait for bytes to
//! arrive, and bytes that arrived may hold nothing of the answer.

use super::socket::{Halt, Received, Socket};
use super::trust::Trust;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, Error};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// Sessions that a client remembers, to go on with when it connects anew.
const SESSIONS: usize = 8;
/// Bytes of a read while hands are shaken.
const GREETING_BYTES: usize = 16_384;
const SECONDS_A_DAY: u64 = 86_400;

/// How the clients of a site speak TLS.
#[derive(Clone, Debug)]
pub(super) struct Security {
    config: ClientConfig,
    name: ServerName<'static>,
    source: String,
}

impl Security {
    pub(super) fn new(host: &str, trust: &Trust) -> Result<Self, String> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned());
        let name = name.map_err(|_| format!("url: \"{host}\" is no name that a certificate could have"))?;
        let config = trust.config().map_err(|why| format!("tls.{why}"))?;
        Ok(Self { config, name, source: trust.source() })
    }

    /// That of one client, whose sessions are its own.
    pub(super) fn of_client(&self) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Arc::new(config)
    }

    /// Whether hands can be shaken on a connection that blocks.
    pub(super) fn greet(&self, stream: &mut TcpStream) -> Result<(), String> {
        let connection = ClientConnection::new(self.of_client(), self.name.clone());
        let mut connection = connection.map_err(|error| self.words(&error))?;
        let done = connection.complete_io(stream);
        done.map(drop).map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(error) => self.words(error),
            None => format!("TLS: {error}"),
        })
    }

    /// What is wrong with the server, and what to do about it.
    fn words(&self, error: &Error) -> String {
        let certificate = match error {
            Error::InvalidCertificate(certificate) => certificate,
            Error::InvalidMessage(_) => {
                return format!("TLS: what it says is no TLS ({error}): is the address one of https?");
            }
            other => return format!("TLS: {other}"),
        };
        let advice = "a bundle is named by \"ca\"; \"verify\": false takes any certificate";
        match certificate {
            CertificateError::ExpiredContext { time, not_after } => {
                let days = time.as_secs().saturating_sub(not_after.as_secs()) / SECONDS_A_DAY;
                format!("TLS: its certificate expired {days} days ago; {advice}")
            }
            CertificateError::NotValidYetContext { .. } | CertificateError::NotValidYet => {
                "TLS: its certificate is not valid yet: is this machine's clock right?".to_owned()
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                let presented: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                let (name, presented) = (self.name.to_str(), presented.join(", "));
                format!("TLS: its certificate is for {presented} and not for {name}; {advice}")
            }
            CertificateError::UnknownIssuer => {
                format!("TLS: the issuer of its certificate is not among {}; {advice}", self.source)
            }
            other => format!("TLS: its certificate is not valid: {other}; {advice}"),
        }
    }
}

/// A name out of `DnsName("name")`, as rustls tells it.
fn bare(presented: &str) -> &str {
    let inside = presented.split_once('(').map_or(presented, |(_, rest)| rest.trim_end_matches(')'));
    inside.trim_matches('"')
}

/// A connection's TLS.
pub(super) struct Tls {
    security: Arc<Security>,
    connection: ClientConnection,
    /// Bytes of the request that were taken and have yet to reach the kernel.
    taken: usize,
}

/// The socket as rustls wants it.
struct Wire<'a> {
    socket: &'a Socket,
    /// As many may be read.
    left: usize,
}

fn blocked(halt: Halt) -> io::Error {
    match halt {
        Halt::ToRead | Halt::ToWrite => io::ErrorKind::WouldBlock.into(),
        Halt::Broken(why) => io::Error::other(why),
    }
}

impl Read for Wire<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = bytes.len().min(self.left);
        let received = self.socket.receive(&mut bytes[..length]).map_err(blocked)?;
        self.left -= received.bytes;
        Ok(received.bytes)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes).map_err(blocked)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn halt(error: &io::Error, to: Halt) -> Halt {
    if error.kind() == io::ErrorKind::WouldBlock { to } else { Halt::Broken(error.to_string()) }
}

impl Tls {
    pub(super) fn new(security: &Arc<Security>, config: &Arc<ClientConfig>) -> Result<Self, String> {
        let connection = ClientConnection::new(Arc::clone(config), security.name.clone());
        let connection = connection.map_err(|error| security.words(&error))?;
        Ok(Self { security: Arc::clone(security), connection, taken: 0 })
    }

    /// Sends bytes, the same ones until they are sent.
    pub(super) fn send(&mut self, socket: &Socket, bytes: &[u8]) -> Result<usize, Halt> {
        while self.connection.is_handshaking() {
            self.flush(socket)?;
            if self.connection.is_handshaking() && self.take_in(socket, GREETING_BYTES)? == 0 {
                return Err(Halt::Broken("TLS: it ended the connection before hands were shaken".to_owned()));
            }
        }
        if self.taken == 0 {
            self.taken = self.connection.writer().write(bytes).map_err(|error| Halt::Broken(error.to_string()))?;
        }
        self.flush(socket)?;
        Ok(std::mem::take(&mut self.taken))
    }

    pub(super) fn receive(&mut self, socket: &Socket, bytes: &mut [u8]) -> Result<Received, Halt> {
        if let Some(received) = self.plain(bytes)? {
            return Ok(received);
        }
        let wire = self.take_in(socket, bytes.len())?;
        let plain = self.plain(bytes)?;
        Ok(Received { wire, ..plain.unwrap_or(Received { bytes: 0, wire, is_drained: false, is_over: false }) })
    }

    /// Whether nothing of an answer was received and the other side has not closed. What TLS says beside that is taken in.
    pub(super) fn is_silent(&mut self, socket: &Socket) -> bool {
        loop {
            match self.take_in(socket, GREETING_BYTES) {
                Err(Halt::ToRead) => return true,
                Ok(1..) if matches!(self.plain(&mut [0]), Ok(None)) => {}
                _ => return false,
            }
        }
    }

    /// What was received and decrypted; `None` if there is nothing.
    fn plain(&mut self, bytes: &mut [u8]) -> Result<Option<Received>, Halt> {
        match self.connection.reader().read(bytes) {
            Ok(read) => Ok(Some(Received { bytes: read, wire: 0, is_drained: false, is_over: read == 0 })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(Halt::Broken("TLS: the connection ended and it was not said that it would".to_owned()))
            }
            Err(error) => Err(Halt::Broken(error.to_string())),
        }
    }

    /// Takes in what has arrived, up to so many bytes, and gives how many that were: 0 at the end of the connection.
    fn take_in(&mut self, socket: &Socket, bytes_max: usize) -> Result<usize, Halt> {
        let read = self.connection.read_tls(&mut Wire { socket, left: bytes_max });
        let read = read.map_err(|error| halt(&error, Halt::ToRead))?;
        if let Err(error) = self.connection.process_new_packets() {
            // It is told why, if it takes that.
            let _ = self.flush(socket);
            return Err(Halt::Broken(self.security.words(&error)));
        }
        Ok(read)
    }

    fn flush(&mut self, socket: &Socket) -> Result<(), Halt> {
        while self.connection.wants_write() {
            let written = self.connection.write_tls(&mut Wire { socket, left: 0 });
            written.map_err(|error| halt(&error, Halt::ToWrite))?;
        }
        Ok(())
    }
}
