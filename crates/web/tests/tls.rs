//! Clients that speak TLS: every answer right, on connections that are kept or not; whom they do not trust they do not ask, and say why.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::Config;
use plimsoll_session::Opener;
use plimsoll_web::{Address, Trust, Web, WebOpener};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::load::{TRANSACTIONS, config, served_at};
use support::server::{Framing, Server, Wrap, Wrong};
use support::{DIRECTORIES, SEED, parameters};

struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let (folder, key) = (tempfile::tempdir().unwrap(), KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn bundle(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A server's, with a certificate for `name` that ended in this year or is still good.
    fn config(&self, name: &str, ended: Option<i32>, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Some(year) = ended {
            (params.not_before, params.not_after) = (date_time_ymd(year - 1, 1, 1), date_time_ymd(year, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![params.signed_by(&key, &self.issuer).unwrap().into()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap().with_no_client_auth();
        Arc::new(builder.with_single_cert(chain, key).unwrap())
    }
}

/// A server's side, which says when it ends.
struct Secured(StreamOwned<ServerConnection, TcpStream>);

impl Read for Secured {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
    }
}

/// By TLS; every `one_in`th connection is closed before hands are shaken.
fn wrap(config: Arc<ServerConfig>, one_in: u64) -> Wrap {
    let taken = AtomicU64::new(0);
    Box::new(move |stream| {
        let is_closed = (taken.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(one_in);
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        (!is_closed).then(|| Box::new(Secured(StreamOwned::new(connection, stream))) as _)
    })
}

fn start(config: Arc<ServerConfig>, one_in: u64, framing: Framing) -> Server {
    Server::start_with(wrap(config, one_in), SEED, DIRECTORIES, 1024, framing, Wrong::Nothing, 1)
}

fn trust(ca: Option<&Path>, verify: bool) -> Trust {
    serde_json::from_value(json!({"ca": ca, "verify": verify})).unwrap()
}

fn small() -> Value {
    json!({"mix": {"static": 3, "dynamic": 1, "cgi": 1, "custom_ad": 3, "post": 2}, "classes": [30, 68, 2, 0]})
}

#[test]
fn every_answer_is_right_by_both_versions_and_whatever_its_framing() {
    let authority = Authority::new("one");
    for (version, framing) in [(&TLS13, Framing::Length), (&TLS12, Framing::Chunked), (&TLS13, Framing::Close)] {
        let server = start(authority.config("127.0.0.1", None, version), u64::MAX, framing);
        let trust = trust(Some(&authority.bundle()), true);
        let config = Config { transactions: Some(TRANSACTIONS / 2), ..config() };
        let url = format!("https://{}", server.address);
        let served = served_at(&url, &trust, 20, &config, small());
        let identity = served.outcomes.identity;
        assert_eq!((identity.done, served.wrong()), (TRANSACTIONS / 2, 0), "{:?}", served.outcomes.errors);
        assert_eq!(served.log_faults(&server), []);
        assert!(served.totals["received_bytes"] > 1_000_000);
    }
}

#[test]
fn a_line_speed_counts_the_bytes_of_the_connection() {
    let authority = Authority::new("one");
    let server = start(authority.config("127.0.0.1", None, &TLS13), u64::MAX, Framing::Length);
    let config = Config { transactions: Some(60), ..config() };
    let files = [0, 0, 1, 0, 0, 0, 0, 0, 0];
    // Of 31 KB, which such a line carries in an eighth of a second.
    let line = json!({"mix": {"static": 1}, "classes": [0, 0, 1, 0], "files": files, "line_bits_per_s": 2_000_000});
    let served =
        served_at(&format!("https://{}", server.address), &trust(Some(&authority.bundle()), true), 20, &config, line);
    assert_eq!(served.outcomes.identity.done, 60, "{:?}", served.outcomes.errors);
    let (bytes, ns) = (served.totals["line_bytes"] as f64, served.totals["line_ns"] as f64);
    let (plain, speed) = (served.totals["received_bytes"] as f64, bytes * 8e9 / ns);
    // What TLS adds is carried by the line, and no line is faster than it is.
    assert!(bytes > plain && bytes < plain * 1.1, "{bytes} of {plain}");
    assert!(speed <= 2_000_001.0, "{speed}");
}

/// What an opener says of a server.
fn refused(url: &str, trust: &Trust) -> Option<String> {
    let web = Arc::new(Web::new(parameters(json!({}))).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let opener = WebOpener::new(web, Address::of_url(url, trust).unwrap(), folder.path()).unwrap();
    opener.open(0).err().map(|failure| {
        assert_eq!(failure.code, "08006");
        failure.message
    })
}

#[test]
fn whom_nobody_vouches_for_is_not_asked_and_it_is_said_why() {
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let bundle = authority.bundle();
    let config = |name, ended| authority.config(name, ended, &TLS13);
    for (config, said) in [
        (config("127.0.0.1", None), None),
        (config("web.example", None), Some("its certificate is for web.example and not for 127.0.0.1")),
        (config("127.0.0.1", Some(2001)), Some("its certificate expired ")),
        (config("127.0.0.1", Some(2100)), Some("its certificate is not valid yet")),
        (other.config("127.0.0.1", None, &TLS13), Some("the issuer of its certificate is not among ")),
    ] {
        let server = start(config, u64::MAX, Framing::Length);
        let url = format!("https://{}", server.address);
        match (refused(&url, &trust(Some(&bundle), true)), said) {
            (None, None) => {}
            (Some(found), Some(said)) => assert!(found.contains(said), "{found}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(refused(&url, &trust(None, false)), None, "any certificate is taken");
    }
    let plain = Server::start(SEED, DIRECTORIES, 1024, Framing::Length, Wrong::Nothing, 1);
    let found = refused(&format!("https://{}", plain.address), &trust(Some(&bundle), true)).unwrap();
    assert!(found.contains("TLS: "), "{found}");
}

#[test]
fn what_cannot_be_trusted_names_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing"), folder.path().join("empty"));
    std::fs::write(&empty, "no certificate").unwrap();
    for (ca, said) in [(&missing, "No such file"), (&empty, "has no certificate that can be used")] {
        let refused = Address::of_url("https://127.0.0.1", &trust(Some(ca), true)).unwrap_err();
        assert!(refused.starts_with("tls.ca: ") && refused.contains(said), "{refused}");
    }
    assert!(Address::of_url("https://127.0.0.1", &trust(Some(&missing), false)).is_ok(), "it is not read");
}

#[test]
fn hands_that_are_not_shaken_fail_a_request_and_the_client_goes_on() {
    let authority = Authority::new("one");
    // The first connection is the opener's own.
    let server = start(authority.config("127.0.0.1", None, &TLS13), 10, Framing::Length);
    let config = Config { transactions: Some(500), ..config() };
    let more = json!({"mix": {"static": 1}, "classes": [1, 0, 0, 0], "persistent": 0.0});
    let served =
        served_at(&format!("https://{}", server.address), &trust(Some(&authority.bundle()), true), 4, &config, more);
    let identity = served.outcomes.identity;
    assert!(identity.failed > 20 && identity.done + identity.failed == 500, "{identity:?}");
    let errors = &served.outcomes.errors;
    assert!(
        errors.iter().all(|error| error.sqlstate == "08006" && error.message.contains("cannot be reached: ")),
        "{errors:?}"
    );
}
