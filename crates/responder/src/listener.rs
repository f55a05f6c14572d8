//! Where a server finds the responder.

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A server connects for many clients at once; the kernel keeps as many as net.core.somaxconn allows.
const BACKLOG: i32 = 4_096;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A Unix socket, or a port of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// By its path.
    Unix(PathBuf),
    /// On a loopback address: FastCGI asks nobody who they are.
    Tcp(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let wrong =
            || format!("\"{text}\" is neither a path from / on nor a loopback address with a port (127.0.0.1:9000)");
        let address: SocketAddr = text.parse().map_err(|_| wrong())?;
        if address.ip().is_loopback() { Ok(Self::Tcp(address)) } else { Err(wrong()) }
    }
}

/// A socket that listens. Its path is removed with it.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    path: Option<PathBuf>,
    is_tcp: bool,
}

impl Listener {
    pub(crate) fn bound(to: &Listen) -> io::Result<Self> {
        let listener = match to {
            Listen::Unix(path) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
                bind_path(&socket, path)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
                Self { socket, path: Some(path.clone()), is_tcp: false }
            }
            Listen::Tcp(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket_with(family, SocketType::STREAM, FLAGS, None)?;
                set_socket_reuseaddr(&socket, true)?;
                bind(&socket, address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
                Self { socket, path: None, is_tcp: true }
            }
        };
        listen(&listener.socket, BACKLOG)?;
        Ok(listener)
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> Result<OwnedFd, Errno> {
        let connection = accept_with(&self.socket, FLAGS)?;
        if self.is_tcp {
            set_tcp_nodelay(&connection, true)?;
        }
        Ok(connection)
    }
}

/// Binds to a path, also where a process that was killed has left its socket.
fn bind_path(socket: &OwnedFd, path: &Path) -> io::Result<()> {
    let address = SocketAddrUnix::new(path)?;
    match bind(socket, &address) {
        Err(Errno::ADDRINUSE) => {}
        other => return Ok(other?),
    }
    let other = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let in_use = |why| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    match connect(&other, &address) {
        // So says the kernel of any file.
        Err(Errno::CONNREFUSED) if fs::symlink_metadata(path)?.file_type().is_socket() => fs::remove_file(path)?,
        Err(Errno::CONNREFUSED) => return in_use("it is there and is no socket"),
        Ok(()) => return in_use("another process listens there"),
        Err(error) => return Err(error.into()),
    }
    Ok(bind(socket, &address)?)
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_this_machine_alone() {
        assert_eq!("/run/x y/ü.sock".parse(), Ok(Listen::Unix(PathBuf::from("/run/x y/ü.sock"))));
        assert_eq!("[::1]:90".parse(), Ok(Listen::Tcp("[::1]:90".parse().unwrap())));
        for wrong in ["run/x", "0.0.0.0:9000", "192.0.2.1:9000", "127.0.0.1", "localhost:9000"] {
            assert!(wrong.parse::<Listen>().unwrap_err().starts_with(&format!("\"{wrong}\" is neither")), "{wrong}");
        }
    }

    #[test]
    fn what_a_kill_has_left_is_taken_over_and_what_somebody_uses_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let to = Listen::Unix(path.clone());
        let first = Listener::bound(&to).unwrap();
        let refused = Listener::bound(&to).unwrap_err().to_string();
        assert!(refused.ends_with("sock: another process listens there"), "{refused}");
        drop(first);
        assert!(!path.exists());
        // The standard library's leaves its path.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bound(&to).unwrap());
        fs::write(&path, "a file of somebody's").unwrap();
        assert!(Listener::bound(&to).is_err() && path.exists());
    }
}
