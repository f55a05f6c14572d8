//! A private PostgreSQL with its pgbench for a test: its own user, its own folder, a Unix socket only, gone afterwards. System
//! clusters are never touched.

use plimsoll_target::postgres::{Address, Client};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PORT: u16 = 54_329;
const USER: &str = "tester";
const DATABASE: &str = "postgres";

fn newest_server() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let whole = |path: &PathBuf| path.join("bin/initdb").exists() && path.join("bin/pgbench").exists();
    versions.flatten().map(|entry| entry.path()).filter(whole).max_by_key(number).map(|path| path.join("bin"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn user_exists(name: &str) -> bool {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd.lines().any(|line| line.split(':').next() == Some(name))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running server.
pub(crate) struct Server {
    bin: PathBuf,
    user: Option<&'static str>,
    folder: TempDir,
}

impl Server {
    /// `None`, with the reason on standard error, if this machine cannot run one with pgbench beside it.
    pub(crate) fn start(more_settings: &str) -> Option<Self> {
        let skip = |reason: &str| {
            eprintln!("skipped: {reason}");
            None
        };
        let Some(bin) = newest_server() else { return skip("no PostgreSQL server under /usr/lib/postgresql") };
        let known = ["plimsoll", "postgres"].into_iter().find(|name| user_exists(name));
        let user = if is_root() { known } else { None };
        if is_root() && user.is_none() {
            return skip("no user plimsoll or postgres to run PostgreSQL as");
        }
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir_in("/var/tmp").unwrap();
        let server = Self { bin, user, folder };
        if let Some(user) = user {
            assert!(Command::new("chown").arg(user).arg(server.folder.path()).status().unwrap().success());
        }
        let data = server.data();
        server.must("initdb", &["-D", &data, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync"], "");
        let socket = server.folder.path().display();
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{socket}'\nport = {PORT}\nwal_level = minimal\n\
             max_wal_senders = 0\nfsync = off\nautovacuum = off\nmax_wal_size = 4GB\n{more_settings}\n"
        );
        let file = Path::new(&data).join("postgresql.conf");
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, before + &settings).unwrap();
        let log = server.folder.path().join("log").display().to_string();
        // Its output must not be a pipe that the server would hold open.
        let mut start = server.command("pg_ctl");
        let started = start.args(["-D", &data, "-w", "-l", &log, "start"]).stdout(Stdio::null()).status();
        assert!(started.unwrap().success(), "{}", std::fs::read_to_string(log).unwrap_or_default());
        Some(server)
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let program = self.bin.join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str], options: &str) -> Output {
        let host = self.folder.path().display().to_string();
        let mut command = self.command(program);
        command.env("PGHOST", host).env("PGPORT", PORT.to_string()).env("PGUSER", USER).env("PGDATABASE", DATABASE);
        command.args(arguments).env("PGOPTIONS", options).output().unwrap()
    }

    fn must(&self, program: &str, arguments: &[&str], options: &str) -> Output {
        let output = self.run(program, arguments, options);
        assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
        output
    }

    /// Runs pgbench with `arguments` and the server's `options` for its sessions, such as `-c search_path=theirs`, and gives
    /// its remarks.
    pub(crate) fn pgbench(&self, options: &str, arguments: &[&str]) -> String {
        text(&self.must("pgbench", arguments, options).stderr)
    }

    /// Runs pgbench, which may fail: whether it did not, and its remarks.
    pub(crate) fn try_pgbench(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.run("pgbench", arguments, "");
        (output.status.success(), text(&output.stderr))
    }

    /// True if its pgbench draws as ours does.
    pub(crate) fn has_pgbench_15(&self) -> bool {
        text(&self.must("pgbench", &["--version"], "").stdout).contains(") 15.")
    }

    /// Runs `sql` and gives psql's unaligned answer.
    pub(crate) fn sql(&self, sql: &str) -> String {
        text(&self.must("psql", &["-XAtqc", sql], "").stdout).trim().to_owned()
    }

    /// Puts a script where pgbench or psql can read it, and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn address(&self) -> Address {
        Address {
            host: self.folder.path().display().to_string(),
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.command("pg_ctl").args(["-D", &self.data(), "-m", "immediate", "-w", "stop"]).output();
    }
}
