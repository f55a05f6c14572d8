//! Where the sessions of a load go, and what they share.

use super::asking::Origin;
use super::ledger::Ledger;
use crate::web::Web;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const HTTP: &str = "http://";
const HTTP_PORT: u16 = 80;

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
pub(super) struct Site {
    pub(super) web: Arc<Web>,
    pub(super) address: Address,
    pub(super) ledger: Ledger,
    /// The last one that wanted to connect could not.
    pub(super) is_refused: AtomicBool,
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
