//! Where the sessions of a load go, and what they share.

use super::asking::Origin;
use super::ledger::Ledger;
use super::tls::Security;
use super::trust::Trust;
use crate::web::Web;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How addresses begin, and the port that they mean.
const SCHEMES: [(&str, u16); 2] = [("http://", 80), (HTTPS, 443)];
const HTTPS: &str = "https://";

/// A server, by its address.
#[derive(Clone, Debug)]
pub struct Address {
    pub(super) origin: Origin,
    pub(super) socket: SocketAddr,
    pub(super) security: Option<Arc<Security>>,
}

impl Address {
    /// Of `http://host:port/prefix` or `https://host:port/prefix`; the name is looked up. Who answers by TLS is trusted as `trust` says.
    ///
    /// # Errors
    /// A sentence that begins with the field: `url`, or one of `tls`.
    pub fn of_url(url: &str, trust: &Trust) -> Result<Self, String> {
        let scheme = SCHEMES.iter().find(|(scheme, _)| url.starts_with(scheme));
        let &(scheme, port) = scheme.ok_or_else(|| format!("url: \"{url}\" does not begin with http:// or {HTTPS}"))?;
        let rest = &url[scheme.len()..];
        let (host, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let with_port = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        let unknown = |why: String| format!("url: \"{url}\": no server has the name \"{host}\" ({why})");
        let mut addresses = with_port.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let socket = addresses.next().ok_or_else(|| unknown("no address".to_owned()))?;
        let prefix = prefix.trim_end_matches('/');
        if prefix.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'?' || byte == b'#') {
            return Err(format!("url: \"{url}\": a path is without blanks, \"?\" and \"#\""));
        }
        let name = if has_port { host.rsplit_once(':').map_or(host, |(name, _)| name) } else { host };
        let security = (scheme == HTTPS).then(|| Security::new(name, trust)).transpose()?.map(Arc::new);
        Ok(Self { origin: Origin { host: host.to_owned(), prefix: prefix.to_owned() }, socket, security })
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
        let of_url = |url| Address::of_url(url, &Trust::default());
        let address = of_url("http://127.0.0.1:8080/a/b/").unwrap();
        assert_eq!((address.origin.host.as_str(), address.origin.prefix.as_str()), ("127.0.0.1:8080", "/a/b"));
        assert_eq!(address.socket.port(), 8080);
        let address = of_url("http://127.0.0.1").unwrap();
        assert_eq!((address.origin.prefix.as_str(), address.socket.port()), ("", 80));
        assert_eq!(of_url("http://[::1]:81").unwrap().socket.port(), 81);
        assert_eq!(of_url("http://[::1]").unwrap().socket.port(), 80);
        for (url, why) in [
            ("ftp://127.0.0.1", "does not begin with http://"),
            ("127.0.0.1", "does not begin"),
            ("http://:99999", "no server has the name"),
            ("http://127.0.0.1/a b", "without blanks"),
        ] {
            assert!(of_url(url).unwrap_err().contains(why), "{url}");
        }
    }
}
