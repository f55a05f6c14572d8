//! A private PostgreSQL with its pgbench.

use plimsoll_private_server::{DATABASE, PORT, PrivateServer, USER};
use plimsoll_target::postgres::{Address, Client};
use std::fs::Permissions;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running server.
pub(crate) struct Server(PrivateServer);

impl Deref for Server {
    type Target = PrivateServer;

    fn deref(&self) -> &PrivateServer {
        &self.0
    }
}

impl Server {
    /// `None`, with the reason on standard error, if this machine cannot run one with pgbench beside it.
    pub(crate) fn start(more_settings: &str) -> Option<Self> {
        PrivateServer::start(&["initdb", "pgbench"], more_settings).map(Self)
    }

    /// Runs pgbench with `arguments` and the server's `options` for its sessions, such as `-c search_path=theirs`, and gives
    /// its remarks.
    pub(crate) fn pgbench(&self, options: &str, arguments: &[&str]) -> String {
        text(&self.0.must("pgbench", arguments, options).stderr)
    }

    /// Runs pgbench, which may fail: whether it did not, and its remarks.
    pub(crate) fn try_pgbench(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.0.run("pgbench", arguments, "");
        (output.status.success(), text(&output.stderr))
    }

    /// True if its pgbench draws as ours does.
    pub(crate) fn has_pgbench_15(&self) -> bool {
        text(&self.0.must("pgbench", &["--version"], "").stdout).contains(") 15.")
    }

    /// Puts a script where pgbench or psql can read it, and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.folder().join(name);
        std::fs::write(&path, text).unwrap();
        // The server's user reads it, whatever the umask.
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path.display().to_string()
    }

    pub(crate) fn address(&self) -> Address {
        Address {
            host: self.0.folder().display().to_string(),
            port: PORT,
            user: USER.to_owned(),
            password: None,
            database: DATABASE.to_owned(),
            settings: Vec::new(),
        }
    }

    /// A session of an administrator, inside `schema`.
    pub(crate) fn client(&self, schema: &str) -> Client {
        Client::open(&self.address().with_settings([("search_path", schema)])).unwrap()
    }
}
