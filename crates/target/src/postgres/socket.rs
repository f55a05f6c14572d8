//! Where a server listens, and the stream to it: TCP or a Unix socket, behind one type.

use super::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Where a server is and as whom to go there.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// A host name, or the directory of a Unix socket (it begins with `/`).
    pub host: String,
    /// The port; part of the socket's name on a Unix socket.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password, if the server will ask.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// Server settings of the session, sent with the connection request.
    pub settings: Vec<(String, String)>,
}

impl std::fmt::Debug for Address {
    /// Leaves the password out, so that no log or error can hold it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}/{}", self.user, self.place(), self.database)
    }
}

impl Address {
    fn is_unix(&self) -> bool {
        self.host.starts_with('/')
    }

    /// Host and port, or the socket's path.
    pub fn place(&self) -> String {
        if self.is_unix() {
            format!("{}/.s.PGSQL.{}", self.host.trim_end_matches('/'), self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The same server, another database.
    pub fn with_database(&self, database: &str) -> Self {
        Self { database: database.to_owned(), ..self.clone() }
    }

    /// The same, with more settings of the session.
    pub fn with_settings<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut address = self.clone();
        address.settings.extend(settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        address
    }
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, blocking.
    pub(super) fn connect(address: &Address) -> Result<Self, Error> {
        let connected = if address.is_unix() {
            UnixStream::connect(Path::new(&address.place())).map(Self::Unix)
        } else {
            TcpStream::connect((address.host.as_str(), address.port))
                .and_then(|stream| stream.set_nodelay(true).map(|()| Self::Tcp(stream)))
        };
        connected.map_err(|source| Error::Connect { address: address.place(), source })
    }

    /// The same connection under another descriptor.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    /// Ends the connection under all of its descriptors, on this side.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        }
    }

    /// Reading that has waited for `limit` fails.
    pub(super) fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
