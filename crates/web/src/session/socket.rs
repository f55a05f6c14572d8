//! A TCP socket that never blocks.

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, connect, recv, send, shutdown, socket_with,
};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Bytes of the answer.
    pub(super) bytes: usize,
    /// Bytes of the connection.
    pub(super) wire: usize,
    /// There was no more; what comes later is told anew.
    pub(super) is_drained: bool,
    /// The other side has ended the connection.
    pub(super) is_over: bool,
}

/// Why a call did not do what it was to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Something has to arrive first.
    ToRead,
    /// What was sent before has to leave first.
    ToWrite,
    /// The connection is of no more use.
    Broken(String),
}

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

    pub(super) fn send(&self, bytes: &[u8]) -> Result<usize, Halt> {
        loop {
            match send(&self.0, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                sent => return sent.map_err(|error| halt(error, Halt::ToWrite)),
            }
        }
    }

    pub(super) fn receive(&self, bytes: &mut [u8]) -> Result<Received, Halt> {
        let length = bytes.len();
        loop {
            match recv(&self.0, &mut *bytes, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(halt(error, Halt::ToRead)),
                Ok((bytes, _)) => {
                    return Ok(Received { bytes, wire: bytes, is_drained: bytes < length, is_over: bytes == 0 });
                }
            }
        }
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

fn halt(error: Errno, to: Halt) -> Halt {
    if error == Errno::AGAIN { to } else { Halt::Broken(error.to_string()) }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
