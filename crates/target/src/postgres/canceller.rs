//! Ends what a blocking session waits for, from another thread.
//!
//! The fact that constrains it: a request to cancel goes over a connection of its own, bears the number of the session's process and
//! the secret that the server gave with it, and has no answer. It meets whatever the session runs when it arrives: the
//! statement after the one that was meant, or none.

use super::socket::Socket;
use super::{Address, Error};
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::io::Write;

/// The way to end what a session waits for.
pub struct Canceller {
    address: Address,
    socket: Socket,
    backend_pid: u32,
    secret: u32,
}

impl std::fmt::Debug for Canceller {
    /// Leaves the secret out, with which anyone could cancel.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "canceller of process {} of {:?}", self.backend_pid, self.address)
    }
}

impl Canceller {
    pub(super) fn new(address: Address, socket: Socket, backend_pid: u32, secret: u32) -> Self {
        Self { address, socket, backend_pid, secret }
    }

    /// Asks the server to cancel what the session runs, and does not wait for it. The session is told by an error with SQLSTATE
    /// 57014; where it runs nothing, nothing happens.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn cancel(&self) -> Result<(), Error> {
        let mut out = BytesMut::new();
        frontend::cancel_request(self.backend_pid.cast_signed(), self.secret.cast_signed(), &mut out);
        Ok(Socket::connect(&self.address)?.write_all(&out)?)
    }

    /// Ends the connection on this side: who reads from it finds it closed.
    pub fn hang_up(&self) {
        // It may be closed already.
        let _ = self.socket.shutdown();
    }
}
