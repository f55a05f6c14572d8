//! A private PostgreSQL whose processes a test may stop and kill, and the agent as a process.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod live;
pub(crate) mod streams;

use plimsoll_private_server::{PORT, PrivateServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A request about pgbench's tables; `more`: its other keys.
pub(crate) fn bank(server: &Server, transaction: &str, more: Value) -> Value {
    let workload = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": transaction});
    let mut request = json!({"target": server.target(), "workload": workload});
    more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
    request
}

/// An agent that has not ended by then is killed, so that the test fails instead of hanging.
const HANGS_AFTER: Duration = Duration::from_secs(90);

/// A running server.
pub(crate) struct Server(PrivateServer);

impl Deref for Server {
    type Target = PrivateServer;

    fn deref(&self) -> &PrivateServer {
        &self.0
    }
}

impl Server {
    /// `None`, with the reason on standard error, if this machine cannot run one.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// The same with settings of its own.
    pub(crate) fn start_with(more_settings: &str) -> Option<Self> {
        PrivateServer::start(&["initdb"], more_settings).map(Self)
    }

    /// Ends every process of the server by SIGKILL, the first one included, and waits until none is left.
    pub(crate) fn kill(&self) {
        let first = self.first();
        // Those that it has forked are known once it forks no more.
        kill_process(first, Signal::STOP).unwrap();
        let all: Vec<Pid> = std::iter::once(first).chain(children(first)).collect();
        for &pid in &all {
            let _ = kill_process(pid, Signal::KILL);
        }
        // One that has ended and is not yet waited for has no command line any more.
        let is_running = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            line.is_ok_and(|line| !line.is_empty())
        };
        while all.iter().any(is_running) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // While nobody has waited for the first process its number is taken, and a server would not start over its locks.
        std::fs::remove_file(Path::new(&self.data()).join("postmaster.pid")).unwrap();
        std::fs::remove_file(self.folder().join(format!(".s.PGSQL.{PORT}.lock"))).unwrap();
    }

    /// Lets the server's process of this name stand still until it is killed.
    pub(crate) fn stop(&self, name: &str) {
        let is_it = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(name)
        };
        let found = children(self.first()).into_iter().find(is_it);
        kill_process(found.unwrap_or_else(|| panic!("no process {name}")), Signal::STOP).unwrap();
    }

    /// The server's first process.
    fn first(&self) -> Pid {
        let file = std::fs::read_to_string(Path::new(&self.data()).join("postmaster.pid")).unwrap();
        Pid::from_raw(file.lines().next().unwrap().parse().unwrap()).unwrap()
    }

    /// Lets every process of the server stand still for `duration`, its first one included. Gives how long it was from
    /// before the first stopped until the last went on.
    pub(crate) fn stand_still(&self, duration: Duration) -> Duration {
        let first = self.first();
        let begun = Instant::now();
        // Those that it has forked are known once it forks no more.
        let mut stopped = Stopped(Vec::new());
        stopped.stop(first);
        children(first).into_iter().for_each(|child| stopped.stop(child));
        std::thread::sleep(duration);
        drop(stopped);
        begun.elapsed()
    }

    /// Asks for passwords by `method` from now on, of everyone but `tester`.
    pub(crate) fn ask_passwords(&self, method: &str) {
        let hba = Path::new(&self.data()).join("pg_hba.conf");
        std::fs::write(hba, format!("local all tester trust\nlocal all all {method}\n")).unwrap();
        self.sql("SELECT pg_reload_conf()");
    }

    /// The `target` of a request.
    pub(crate) fn target(&self) -> Value {
        let host = self.folder();
        json!({"host": host, "port": PORT, "user": "tester", "dbname": "postgres", "admin_dbname": "template1"})
    }

    /// A request for this server: `more` is laid over target and workload.
    pub(crate) fn request(&self, more: Value) -> Value {
        let workload = json!({"name": "wpi_orders", "size_bytes": 16 << 20, "seed": 11});
        let mut request = json!({"target": self.target(), "workload": workload});
        merge(&mut request, more);
        request
    }
}

/// Processes that were stopped; they go on when it is dropped, after a failed test too.
struct Stopped(Vec<Pid>);

impl Stopped {
    fn stop(&mut self, pid: Pid) {
        // A process may have ended since it was looked for.
        if kill_process(pid, Signal::STOP).is_ok() {
            self.0.push(pid);
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in self.0.drain(..) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent_of = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything; after it the state and the parent.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    numbers.filter(|pid| parent_of(pid) == Some(parent.as_raw_nonzero().get())).filter_map(Pid::from_raw).collect()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

/// What an agent said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<Value>,
    pub(crate) errors: String,
}

impl std::fmt::Debug for Said {
    /// Its last words only: an agent may have said much.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {:?}, errors {:?}, last line {:?}", self.code, self.errors, self.lines.last())
    }
}

impl Said {
    /// The result line.
    pub(crate) fn result(&self) -> &Value {
        self.lines.last().unwrap_or_else(|| panic!("no result: {self:?}"))
    }
}

/// An agent under way.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    lines: Vec<Value>,
}

impl Agent {
    pub(crate) fn start(verb: &str, request: &Value) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_plimsoll-agent")), verb, request).unwrap()
    }

    /// By a command that runs the agent; `None` where there is no such program.
    pub(crate) fn start_by(mut command: Command, verb: &str, request: &Value) -> Option<Self> {
        command.arg(verb).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            spawned => spawned.unwrap(),
        };
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        writeln!(input, "{request}").unwrap();
        Some(Self { child, input: Some(input), output: BufReader::new(output), lines: Vec::new() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        self.lines.push(value.clone());
        value
    }

    /// Waits for the next line of an event.
    pub(crate) fn line_of(&mut self, event: &str) -> Value {
        loop {
            let line = self.line();
            if line["event"] == event {
                return line;
            }
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end, standard input still open.
    pub(crate) fn end(self) -> Said {
        let Self { child, input, output, mut lines } = self;
        let (ended, watched) = std::sync::mpsc::channel::<()>();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            if watched.recv_timeout(HANGS_AFTER) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        lines.extend(output.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        drop((input, ended));
        Said { code: status.code(), lines, errors: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

/// Runs a verb to its end.
pub(crate) fn agent(verb: &str, request: &Value) -> Said {
    Agent::start(verb, request).end()
}

/// Runs a verb that must succeed, and gives its result.
pub(crate) fn must(verb: &str, request: &Value) -> Value {
    let said = agent(verb, request);
    assert_eq!(said.code, Some(0), "{verb}: {said:?}");
    said.result().clone()
}

/// The names of the checks that are not ok.
pub(crate) fn failed_checks(checked: &Value) -> Vec<&str> {
    let checks = checked["checks"].as_array().unwrap();
    checks.iter().filter(|check| check["ok"] != true).map(|check| check["name"].as_str().unwrap()).collect()
}
