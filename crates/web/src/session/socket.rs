//! A TCP socket that never blocks.

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, connect, recv, send, shutdown, socket_with,
};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A socket.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// One that is not connected.
    pub(super) fn new(address: &SocketAddr) -> Result<Self, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        Ok(Self(socket_with(family, SocketType::STREAM, flags, None)?))
    }

    /// One that connects, with a receive buffer of its own size if that is given.
    pub(super) fn connecting(address: &SocketAddr, receive_bytes: Option<u32>) -> Result<Self, Errno> {
        let socket = Self::new(address)?;
        // A request is a single write: nothing is to wait for more.
        set_tcp_nodelay(&socket.0, true)?;
        if let Some(bytes) = receive_bytes {
            set_socket_recv_buffer_size(&socket.0, bytes as usize)?;
        }
        match connect(&socket.0, address) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        send(&self.0, bytes, SendFlags::NOSIGNAL)
    }

    pub(super) fn receive(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        recv(&self.0, bytes, RecvFlags::empty()).map(|(taken, _)| taken)
    }

    /// Whether nothing was received and the other side has not closed.
    pub(super) fn is_silent(&self) -> bool {
        let peeked = recv(&self.0, &mut [0u8; 1][..], RecvFlags::PEEK);
        peeked.is_err_and(|error| error == Errno::AGAIN)
    }

    /// Ends the connection; the descriptor stays.
    pub(super) fn hang_up(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
