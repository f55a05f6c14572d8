//! A private PostgreSQL for a test: its own user, its own folder, a Unix socket only, gone afterwards.
//!
//! The fact that constrains it: a system cluster may be on the machine, and is never touched.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Of its socket.
pub const PORT: u16 = 54_329;
/// Its superuser, whom it trusts.
pub const USER: &str = "tester";
/// Where sessions go.
pub const DATABASE: &str = "postgres";

/// What initdb is told besides the folder.
const INITDB: [&str; 8] = ["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync"];

/// A running server.
pub struct PrivateServer {
    bin: PathBuf,
    user: Option<&'static str>,
    folder: TempDir,
}

fn newest_with(programs: &[&str]) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let whole = |path: &PathBuf| programs.iter().all(|program| path.join("bin").join(program).exists());
    versions.flatten().map(|entry| entry.path()).filter(whole).max_by_key(number).map(|path| path.join("bin"))
}

fn user_exists(name: &str) -> bool {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd.lines().any(|line| line.split(':').next() == Some(name))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl PrivateServer {
    /// The newest that has `programs`, with settings of its own; None, with the reason on standard error, if this machine
    /// cannot run one.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(programs: &[&str], more_settings: &str) -> Option<Self> {
        let skip = |reason: &str| {
            eprintln!("skipped: {reason}");
            None
        };
        let Some(bin) = newest_with(programs) else {
            return skip(&format!("no PostgreSQL with {} under /usr/lib/postgresql", programs.join(" and ")));
        };
        let is_root = rustix::process::geteuid().is_root();
        let user = ["plimsoll", "postgres"].into_iter().find(|name| is_root && user_exists(name));
        if is_root && user.is_none() {
            return skip("no user plimsoll or postgres to run PostgreSQL as");
        }
        let folder = tempfile::Builder::new().prefix("plimsoll-test-").tempdir_in("/var/tmp").expect("a folder");
        let server = Self { bin, user, folder };
        if let Some(user) = user {
            let given = Command::new("chown").arg(user).arg(server.folder()).status();
            assert!(given.is_ok_and(|status| status.success()), "the folder cannot be given to {user}");
        }
        server.make(more_settings);
        server.go();
        Some(server)
    }

    /// A cluster as initdb makes it: a copy of the first one that was made, since initdb costs more than many a test.
    fn cluster(&self, data: &str) {
        let version = self.bin.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/private-server");
        let first = kept.join(format!("{version}-{}{}", self.user.unwrap_or("own"), INITDB.concat()));
        let copy =
            |from: &Path, to: &Path| Command::new("cp").arg("-a").args([from, to]).status().is_ok_and(|s| s.success());
        if first.exists() {
            assert!(copy(&first, Path::new(data)), "{} cannot be copied", first.display());
            return;
        }
        self.must("initdb", &[&["-D", data], &INITDB[..]].concat(), "");
        // Whole under a name of its own, then in its place at once; where another test was first, that one stays.
        let aside =
            std::fs::create_dir_all(&kept).and_then(|()| tempfile::tempdir_in(&kept)).expect("a folder in target");
        let whole = aside.path().join("data");
        assert!(copy(Path::new(data), &whole), "{data} cannot be copied");
        let _ = std::fs::rename(whole, &first);
    }

    fn make(&self, more_settings: &str) {
        let data = self.data();
        self.cluster(&data);
        let socket = self.folder().display();
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{socket}'\nport = {PORT}\nwal_level = minimal\n\
             max_wal_senders = 0\nfsync = off\njit = off\nautovacuum = off\nmax_wal_size = 4GB\n{more_settings}\n"
        );
        let file = Path::new(&data).join("postgresql.conf");
        let before = std::fs::read_to_string(&file).expect("initdb writes it");
        std::fs::write(&file, before + &settings).expect("settings are written");
    }

    /// Its data directory.
    #[must_use]
    pub fn data(&self) -> String {
        self.folder().join("data").display().to_string()
    }

    /// Its folder, which holds its socket, too.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A program of the server's package, run by the server's user in the server's folder.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let program = self.bin.join(program);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// The address as libpq's environment.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, String); 4] {
        let host = self.folder().display().to_string();
        [("PGHOST", host), ("PGPORT", PORT.to_string()), ("PGUSER", USER.into()), ("PGDATABASE", DATABASE.into())]
    }

    /// Runs a program to its end, with `options` for its sessions, such as `-c search_path=theirs`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(&self, program: &str, arguments: &[&str], options: &str) -> Output {
        let mut command = self.command(program);
        command.args(arguments).envs(self.environment()).env("PGOPTIONS", options);
        command.output().unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// The same for one that has to succeed.
    ///
    /// # Panics
    /// When it does not.
    pub fn must(&self, program: &str, arguments: &[&str], options: &str) -> Output {
        let output = self.run(program, arguments, options);
        assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
        output
    }

    /// Runs `sql` and gives psql's unaligned answer.
    ///
    /// # Panics
    /// When the server refuses it.
    pub fn sql(&self, sql: &str) -> String {
        text(&self.must("psql", &["-XAtqc", sql], "").stdout).trim().to_owned()
    }

    /// Starts it again after [`PrivateServer::crash`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn go(&self) {
        let log = self.folder().join("log").display().to_string();
        // Its output must not be a pipe that the server would hold open.
        let mut start = self.command("pg_ctl");
        let started = start.args(["-D", &self.data(), "-w", "-l", &log, "start"]).stdout(Stdio::null()).status();
        let did = started.is_ok_and(|status| status.success());
        assert!(did, "{}", std::fs::read_to_string(log).unwrap_or_default());
    }

    /// Stops it as a crash would.
    pub fn crash(&self) {
        let _ = self.command("pg_ctl").args(["-D", &self.data(), "-m", "immediate", "-w", "stop"]).output();
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.crash();
    }
}
