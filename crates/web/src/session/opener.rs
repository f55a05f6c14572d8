//! Where the sessions of a load go, and what they share.

use super::asking::Origin;
use super::client::WebSession;
use super::ledger::Ledger;
use crate::web::Web;
use plimsoll_session::{Failure, Opener, Session};
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HTTP: &str = "http://";
const HTTP_PORT: u16 = 80;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A server, by its address.
#[derive(Clone, Debug)]
pub struct Address {
    pub(super) origin: Origin,
    pub(super) socket: SocketAddr,
}

impl Address {
    /// Of `http://host:port/prefix`; the name is looked up.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn of_url(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix(HTTP).ok_or_else(|| format!("\"{url}\" does not begin with {HTTP}"))?;
        let (host, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let with_port = if has_port { host.to_owned() } else { format!("{host}:{HTTP_PORT}") };
        let unknown = |why: String| format!("\"{url}\": no server has the name \"{host}\" ({why})");
        let mut addresses = with_port.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let socket = addresses.next().ok_or_else(|| unknown("no address".to_owned()))?;
        let prefix = prefix.trim_end_matches('/');
        if prefix.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'?' || byte == b'#') {
            return Err(format!("\"{url}\": a path is without blanks, \"?\" and \"#\""));
        }
        Ok(Self { origin: Origin { host: host.to_owned(), prefix: prefix.to_owned() }, socket })
    }
}

/// What the sessions of a load share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) web: Arc<Web>,
    pub(super) address: Address,
    pub(super) ledger: Ledger,
    /// The last one that wanted to connect could not.
    pub(super) is_refused: AtomicBool,
}

/// Opens the sessions of a load on a web server. Each connects when it has something to ask.
#[derive(Debug)]
pub struct WebOpener(Arc<Shared>);

impl WebOpener {
    /// To the server at `address`; which POSTs it answers is kept in `folder`.
    ///
    /// # Errors
    /// When the ledger cannot be made.
    pub fn new(web: Arc<Web>, address: Address, folder: &Path) -> io::Result<Self> {
        let (ledger, is_refused) = (Ledger::create(folder)?, AtomicBool::new(false));
        Ok(Self(Arc::new(Shared { web, address, ledger, is_refused })))
    }

    /// Closes the ledger; every session has been closed.
    ///
    /// # Errors
    /// Why it is not complete.
    pub fn close(&self) -> Result<(), String> {
        self.0.ledger.close()
    }
}

impl Opener for WebOpener {
    /// Sees that there is a server before the first session, and after one that could not connect.
    fn open(&self, number: u32) -> Result<Box<dyn Session>, Failure> {
        let Shared { address, is_refused, .. } = self.0.as_ref();
        let broken = |error: io::Error| Failure {
            code: Failure::BROKEN.to_owned(),
            message: format!("{} cannot be reached: {error}", address.origin.host),
        };
        if number == 0 || is_refused.load(Ordering::Relaxed) {
            TcpStream::connect_timeout(&address.socket, CONNECT_WITHIN).map_err(broken)?;
            is_refused.store(false, Ordering::Relaxed);
        }
        Ok(Box::new(WebSession::new(Arc::clone(&self.0)).map_err(broken)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_wrong_ones_say_why() {
        let address = Address::of_url("http://127.0.0.1:8080/a/b/").unwrap();
        assert_eq!((address.origin.host.as_str(), address.origin.prefix.as_str()), ("127.0.0.1:8080", "/a/b"));
        assert_eq!(address.socket.port(), 8080);
        let address = Address::of_url("http://127.0.0.1").unwrap();
        assert_eq!((address.origin.prefix.as_str(), address.socket.port()), ("", 80));
        assert_eq!(Address::of_url("http://[::1]:81").unwrap().socket.port(), 81);
        for (url, why) in [
            ("https://127.0.0.1", "does not begin with http://"),
            ("127.0.0.1", "does not begin"),
            ("http://:99999", "no server has the name"),
            ("http://127.0.0.1/a b", "without blanks"),
        ] {
            assert!(Address::of_url(url).unwrap_err().contains(why), "{url}");
        }
    }
}
