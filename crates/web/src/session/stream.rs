//! A connection's bytes, as they are or by TLS.

use super::site::Address;
use super::socket::{Halt, Received, Socket};
use super::tls::{Security, Tls};
use rustls::ClientConfig;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The connection of a client, and how it makes the next one.
pub(super) struct Stream {
    address: SocketAddr,
    socket: Socket,
    security: Option<(Arc<Security>, Arc<ClientConfig>)>,
    tls: Option<Tls>,
}

impl Stream {
    /// One that is not connected.
    pub(super) fn new(address: &Address) -> io::Result<Self> {
        let security = address.security.as_ref().map(|security| (Arc::clone(security), security.of_client()));
        Ok(Self { address: address.socket, socket: Socket::new(&address.socket)?, security, tls: None })
    }

    /// Connects on another descriptor; the connection before is closed.
    pub(super) fn connect(&mut self, receive_bytes: Option<u32>) -> Result<(), String> {
        self.socket = Socket::connecting(&self.address, receive_bytes).map_err(|error| error.to_string())?;
        self.tls = self.security.as_ref().map(|(security, config)| Tls::new(security, config)).transpose()?;
        Ok(())
    }

    /// Sends bytes, the same ones until they are sent, and gives how many that were.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize, Halt> {
        match &mut self.tls {
            None => self.socket.send(bytes),
            Some(tls) => tls.send(&self.socket, bytes),
        }
    }

    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> Result<Received, Halt> {
        match &mut self.tls {
            None => self.socket.receive(bytes),
            Some(tls) => tls.receive(&self.socket, bytes),
        }
    }

    /// Whether nothing of an answer was received and the other side has not closed.
    pub(super) fn is_silent(&mut self) -> bool {
        match &mut self.tls {
            None => self.socket.is_silent(),
            Some(tls) => tls.is_silent(&self.socket),
        }
    }

    /// Ends the connection; the descriptor stays.
    pub(super) fn hang_up(&self) {
        self.socket.hang_up();
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
