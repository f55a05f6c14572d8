//! What can go wrong between us and a server.

use super::wire::ServerError;
use std::io;

/// A failed exchange with the server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection can be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The server refused.
    #[error("the server says {0}")]
    Server(#[from] ServerError),
    /// The server refused to prepare a statement.
    #[error("the server says {error}")]
    Statement {
        /// Its place among those of the connection.
        place: usize,
        /// What the server said.
        error: ServerError,
    },
    /// The server said something that we do not understand.
    #[error("unexpected answer from the server: {0}")]
    Protocol(String),
}

impl Error {
    /// Whether the session can be used after it.
    pub fn leaves_session(&self) -> bool {
        matches!(self, Self::Server(error) if !error.fatal)
    }

    pub(crate) fn closed() -> Self {
        Self::Broken(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it"))
    }
}
