//! `watch` with lines about what goes on, and sessions for it to tell of.

use super::{Agent, Server};
use plimsoll_record::Table;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

pub(crate) const OPEN: i64 = 64;
pub(crate) const HEADLESS: i64 = 128;
pub(crate) const MS: u64 = 1_000_000;
/// Works on a CPU alone: nothing is kept of what it makes.
pub(crate) const THINKS: &str = "SELECT sum(i) FROM (SELECT generate_series(1, 2000000000) AS i) AS made";

/// A session that is ended with the test.
pub(crate) struct Session(Child);

impl Session {
    /// Named `name`, with one statement or several in one message.
    pub(crate) fn start(server: &Server, name: &str, sql: &str) -> Self {
        let mut command = server.command("psql");
        command.args(["-XAtqc", sql]).envs(server.environment()).env("PGAPPNAME", name);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The backend of the session `name`, when it is at work.
pub(crate) fn backend(server: &Server, name: &str) -> u64 {
    let asked = format!("SELECT pid FROM pg_stat_activity WHERE application_name = '{name}' AND state <> 'idle'");
    for _ in 0..200 {
        if let Ok(pid) = server.sql(&asked).parse() {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no session {name}");
}

pub(crate) fn watch(server: &Server, out: &Path, more: Value) -> Agent {
    let mut breakdown = json!({"data_directory": server.data(), "live": true});
    more.as_object().unwrap().iter().for_each(|(key, value)| breakdown[key] = value.clone());
    Agent::start("watch", &json!({"out": out, "interval_ms": 500, "probes": {"breakdown": breakdown}}))
}

pub(crate) fn of(line: &Value, pid: u64) -> &Value {
    let found = line["processes"].as_array().unwrap().iter().find(|process| process["pid"] == pid);
    found.unwrap_or_else(|| panic!("no process {pid} in {line}"))
}

pub(crate) fn waits(process: &Value) -> u64 {
    process["waits"].as_array().unwrap().iter().map(|wait| wait["ns"].as_u64().unwrap()).sum()
}

/// CPU, run queue and waits.
pub(crate) fn sum(process: &Value) -> u64 {
    process["cpu_ns"].as_u64().unwrap() + process["run_queue_ns"].as_u64().unwrap() + waits(process)
}

pub(crate) fn column(out: &Path, table: &str, name: &str) -> Vec<i64> {
    let values = Table::read(&out.join(table)).unwrap().column(name).unwrap();
    values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
}

/// Stops the agent; every line it has said.
pub(crate) fn stop(mut agent: Agent) -> Vec<Value> {
    agent.tell("stop");
    let told = Instant::now();
    let said = agent.end();
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.result()["probes"]["breakdown"]["status"], "on", "{said:?}");
    no_more_than_time(&said.lines);
    said.lines
}

/// No process did more than its time, but for the wait for a CPU, which is told when it has ended if a transaction begins with it.
///
/// A line lasts from the end of one reading to the end of the next. What a process did while a reading before was held up is in
/// this line and its time in the one before: so lines are added up.
fn no_more_than_time(lines: &[Value]) {
    let (mut all_ns, mut before_ns, mut done) = (0, 0, BTreeMap::<u64, u64>::new());
    for line in lines.iter().filter(|line| line["event"] == "breakdown") {
        let lasted = line["lasted_ns"].as_u64().unwrap();
        all_ns += lasted;
        for process in line["processes"].as_array().unwrap() {
            let now = sum(process) - process["run_queue_ns"].as_u64().unwrap();
            assert!(now <= lasted + lasted / 50 + before_ns + MS, "{now} of {lasted} after {before_ns}: {process}");
            *done.entry(process["pid"].as_u64().unwrap()).or_default() += now;
        }
        before_ns = lasted;
    }
    // The first reading of all may have been held up, too.
    let most = all_ns + all_ns / 20 + 20 * MS;
    assert!(done.values().all(|&done| done <= most), "{done:?} of {all_ns}");
}

pub(crate) fn names(lines: &[Value]) -> BTreeMap<String, Value> {
    let of_line = |line: &Value| line["names"].as_object().cloned().unwrap_or_default();
    lines.iter().flat_map(of_line).collect()
}
