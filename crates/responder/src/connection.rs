//! One connection of a server, gone on with wherever it stands.

use crate::fastcgi::{Incoming, Next, Request};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const READ_BYTES: usize = 16_384;
/// What is kept of the memory that an answer took.
const KEPT_BYTES: usize = 65_536;

/// What has to happen before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Something arrives.
    ToRead,
    /// The server takes what was not sent.
    ToWrite,
    /// Nothing: it is over.
    Over,
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    incoming: Incoming,
    out: Vec<u8>,
    sent: usize,
    /// It is closed once `out` is sent.
    is_last: bool,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, incoming: Incoming::default(), out: Vec::new(), sent: 0, is_last: false }
    }

    /// Sends, answers and receives until it would block. `answer` appends the answer to a request.
    pub(crate) fn go_on(&mut self, answer: impl Fn(&Request, &mut Vec<u8>)) -> Waits {
        loop {
            match self.send() {
                Ok(()) if self.is_last => return Waits::Over,
                Ok(()) => {}
                Err(Errno::AGAIN) => return Waits::ToWrite,
                Err(_) => return Waits::Over,
            }
            match self.incoming.next(&mut self.out) {
                Ok(Next::More) if self.out.is_empty() => match self.receive() {
                    Ok(0) => return Waits::Over,
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Waits::ToRead,
                    Err(_) => return Waits::Over,
                },
                Ok(Next::More) => {}
                Ok(Next::Request(request)) => {
                    answer(&request, &mut self.out);
                    self.is_last = !request.keeps;
                }
                Ok(Next::Over) => self.is_last = true,
                Err(wrong) => {
                    eprintln!("plimsoll: a connection is ended: {wrong}");
                    return Waits::Over;
                }
            }
        }
    }

    fn send(&mut self) -> Result<(), Errno> {
        while self.sent < self.out.len() {
            match send(&self.socket, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        self.sent = 0;
        Ok(())
    }

    fn receive(&mut self) -> Result<usize, Errno> {
        let mut arrived = [0; READ_BYTES];
        let (bytes, _) = recv(&self.socket, &mut arrived, RecvFlags::empty())?;
        self.incoming.take(&arrived[..bytes]);
        Ok(bytes)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
