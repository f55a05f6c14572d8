//! What `watch` tells of a server while it goes on: long statements seen while they last, short ones counted to the last one.
//! Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::{Agent, Server, must};

const OPEN: i64 = 64;
const HEADLESS: i64 = 128;
const MS: u64 = 1_000_000;
/// Works on a CPU alone: nothing is kept of what it makes.
const THINKS: &str = "SELECT sum(i) FROM (SELECT generate_series(1, 2000000000) AS i) AS made";

/// A session that is ended with the test.
struct Session(Child);

impl Session {
    /// Named `name`, with one statement or several in one message.
    fn start(server: &Server, name: &str, sql: &str) -> Self {
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
fn backend(server: &Server, name: &str) -> u64 {
    let asked = format!("SELECT pid FROM pg_stat_activity WHERE application_name = '{name}' AND state <> 'idle'");
    for _ in 0..200 {
        if let Ok(pid) = server.sql(&asked).parse() {
            return pid;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no session {name}");
}

fn watch(server: &Server, out: &Path, more: Value) -> Agent {
    let mut breakdown = json!({"data_directory": server.data(), "live": true});
    more.as_object().unwrap().iter().for_each(|(key, value)| breakdown[key] = value.clone());
    Agent::start("watch", &json!({"out": out, "interval_ms": 500, "probes": {"breakdown": breakdown}}))
}

/// Waits for a line of an event.
fn next(agent: &mut Agent, event: &str) -> Value {
    loop {
        let line = agent.line();
        if line["event"] == event {
            return line;
        }
    }
}

fn of(line: &Value, pid: u64) -> &Value {
    let found = line["processes"].as_array().unwrap().iter().find(|process| process["pid"] == pid);
    found.unwrap_or_else(|| panic!("no process {pid} in {line}"))
}

fn waits(process: &Value) -> u64 {
    process["waits"].as_array().unwrap().iter().map(|wait| wait["ns"].as_u64().unwrap()).sum()
}

/// CPU, run queue and waits.
fn sum(process: &Value) -> u64 {
    process["cpu_ns"].as_u64().unwrap() + process["run_queue_ns"].as_u64().unwrap() + waits(process)
}

fn column(out: &Path, table: &str, name: &str) -> Vec<i64> {
    let values = Table::read(&out.join(table)).unwrap().column(name).unwrap();
    values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
}

/// Stops the agent; every line it has said.
fn stop(mut agent: Agent) -> Vec<Value> {
    agent.tell("stop");
    let told = Instant::now();
    let said = agent.end();
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.result()["probes"]["breakdown"]["status"], "on", "{said:?}");
    said.lines
}

/// Sleeps, computes, waits for a lock that another holds; each for as long as the test.
struct Stuck {
    sleeper: u64,
    thinker: u64,
    holder: u64,
    waiter: u64,
    _sessions: [Session; 4],
}

impl Stuck {
    fn start(server: &Server) -> Self {
        server.sql("CREATE TABLE IF NOT EXISTS contended (a int)");
        let sleeper = Session::start(server, "sleeper", "SELECT pg_sleep(60)");
        let thinker = Session::start(server, "thinker", THINKS);
        let held = "BEGIN; LOCK TABLE contended; SELECT pg_sleep(60)";
        let holder = Session::start(server, "holder", held);
        let at_holder = backend(server, "holder");
        let waiter = Session::start(server, "waiter", "SELECT count(*) FROM contended");
        Self {
            sleeper: backend(server, "sleeper"),
            thinker: backend(server, "thinker"),
            holder: at_holder,
            waiter: backend(server, "waiter"),
            _sessions: [sleeper, thinker, holder, waiter],
        }
    }

    fn all(&self) -> [u64; 4] {
        [self.sleeper, self.thinker, self.holder, self.waiter]
    }

    /// What a line has to tell while all four go on.
    fn judge(&self, line: &Value, names: &BTreeMap<String, Value>) {
        let lasted = line["lasted_ns"].as_u64().unwrap();
        assert_eq!(line["watched_ns"], lasted);
        for pid in self.all() {
            let process = of(line, pid);
            assert!(sum(process).abs_diff(lasted) <= lasted / 50, "{pid}: {} of {lasted}: {process}", sum(process));
            assert_eq!((&process["what"], &process["transactions"]), (&Value::Null, &json!(0)), "{process}");
            assert!(process["now"]["transaction_ns"].as_u64().unwrap() >= lasted / 2, "{process}");
        }
        let on = |pid: u64| {
            let now = &of(line, pid)["now"];
            let name = names.get(&now["event"].to_string()).cloned().unwrap_or_default();
            (now["state"].clone(), name, now["bucket"].clone())
        };
        assert_eq!(on(self.sleeper), (json!("blocked"), json!("Timeout:PgSleep"), json!("other_wait")));
        assert_eq!(on(self.holder), on(self.sleeper));
        assert_eq!(on(self.waiter), (json!("blocked"), json!("Lock:relation"), json!("lock")));
        // The waiter looks after deadlocks meanwhile.
        assert!(of(line, self.sleeper)["now"]["since_ns"].as_u64().unwrap() >= lasted / 2);
        let thinks = of(line, self.thinker);
        assert_eq!(thinks["now"]["bucket"], Value::Null, "{thinks}");
        // Others use the machine, too: how much of it was a wait for a CPU is theirs to say.
        assert!(thinks["cpu_ns"].as_u64().unwrap() > 0 && waits(thinks) <= lasted / 50, "{thinks}");
    }
}

fn names(lines: &[Value]) -> BTreeMap<String, Value> {
    let of_line = |line: &Value| line["names"].as_object().cloned().unwrap_or_default();
    lines.iter().flat_map(of_line).collect()
}

/// Rows of a backend that are open at the end: flags, length, and sum of the parts.
fn open_row(out: &Path, pid: u64) -> (i64, i64, i64) {
    let of = |name| column(out, "breakdown.npy", name);
    let (pids, flags) = (of("backend_pid"), of("flags"));
    let is_it = |at: &usize| pids[*at] == pid as i64 && flags[*at] & OPEN != 0;
    let found: Vec<usize> = (0..pids.len()).filter(is_it).collect();
    assert_eq!(found.len(), 1, "rows of {pid} that are open");
    let at = found[0];
    let waits = column(out, "breakdown_waits.npy", "request").into_iter().zip(column(out, "breakdown_waits.npy", "ns"));
    let waited: i64 = waits.filter(|(request, _)| *request == at as i64).map(|(_, ns)| ns).sum();
    (flags[at], of("ended_ns")[at] - of("arrived_ns")[at], of("cpu_ns")[at] + of("run_queue_ns")[at] + waited)
}

#[test]
fn what_lasts_is_seen_while_it_lasts() {
    let Some(server) = Server::start() else { return };
    let out = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut agent = watch(&server, out.path(), json!({}));
    let first = next(&mut agent, "breakdown");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let stuck = Stuck::start(&server);
    next(&mut agent, "breakdown");
    let mut lines = vec![first];
    // The first of these has the begin of the statements in it.
    lines.extend((0..4).map(|_| next(&mut agent, "breakdown")));
    std::thread::sleep(Duration::from_millis(100));
    lines.push(next(&mut agent, "breakdown"));
    let all = stop(agent);
    let names = names(&all);
    lines[2..].iter().for_each(|line| stuck.judge(line, &names));
    for pid in stuck.all() {
        let (flags, lasted, parts) = open_row(out.path(), pid);
        assert_eq!(flags & HEADLESS, 0, "all of it was seen");
        assert_eq!(lasted, parts, "{pid}");
        assert!(lasted > 1_500 * MS as i64, "{pid}: {lasted}");
    }
}

#[test]
fn what_began_before_the_watch_is_seen_too() {
    let Some(server) = Server::start() else { return };
    let stuck = Stuck::start(&server);
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    let lines: Vec<Value> = (0..3).map(|_| next(&mut agent, "breakdown")).collect();
    // The waiter gets its lock.
    server.sql(&format!("SELECT pg_terminate_backend({})", stuck.holder));
    next(&mut agent, "breakdown");
    let all = stop(agent);
    let names = names(&all);
    lines.iter().for_each(|line| stuck.judge(line, &names));
    for pid in [stuck.sleeper, stuck.thinker] {
        let (flags, lasted, parts) = open_row(out.path(), pid);
        assert_eq!(flags & HEADLESS, HEADLESS, "{pid} began before");
        assert_eq!(lasted, parts, "{pid}");
    }
    let of_waiter = |line: &&Value| line["processes"].as_array().unwrap().iter().any(|p| p["pid"] == stuck.waiter);
    let told = all.iter().filter(|line| line["event"] == "breakdown").filter(of_waiter);
    let ended: u64 = told.map(|line| of(line, stuck.waiter)["transactions"].as_u64().unwrap()).sum();
    assert_eq!(ended, 1, "the waiter's");
}

#[test]
fn a_lock_wait_that_ends_has_its_holder() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE TABLE contended (a int)");
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    next(&mut agent, "watching");
    let _holder = Session::start(&server, "holder", "BEGIN; LOCK TABLE contended; SELECT pg_sleep(1.2); COMMIT");
    let holder = backend(&server, "holder");
    let _waiter = Session::start(&server, "waiter", "SELECT count(*) FROM contended; SELECT pg_sleep(1)");
    let waiter = backend(&server, "waiter");
    std::thread::sleep(Duration::from_millis(1_400));
    let all = stop(agent);
    let of = |name| column(out.path(), "breakdown_waits.npy", name);
    let owner = column(out.path(), "breakdown.npy", "backend_pid");
    let rows = of("request").into_iter().zip(of("wait").into_iter().zip(of("waker_pid")));
    let names = names(&all);
    let named = |wait: i64| names.get(&wait.to_string()) == Some(&json!("Lock:relation"));
    let of_waiter = rows.filter(|(request, (wait, _))| owner[*request as usize] == waiter as i64 && named(*wait));
    let wakers: Vec<i64> = of_waiter.map(|(_, (_, waker))| waker).collect();
    assert_eq!(wakers, [holder as i64]);
}

#[test]
fn short_transactions_are_counted_over_all_lines() {
    let Some(server) = Server::start() else { return };
    let bank = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": "tpcb_like"});
    must("populate", &json!({"target": server.target(), "workload": bank}));
    let (out, of_load) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut agent = watch(&server, out.path(), json!({}));
    next(&mut agent, "watching");
    let load = json!({"target": server.target(), "workload": bank, "clients": 8, "out": of_load.path(), "mode": "extended",
        "stop": {"transactions": 3_001}});
    let summary = must("load", &load);
    let lines = stop(agent);
    let of = |name| column(out.path(), "breakdown.npy", name);
    let pids = of("backend_pid");
    // A backend that ends its session is under way, too.
    let open = of("flags").into_iter().filter(|flags| flags & OPEN != 0).count();
    assert!(open < 9, "{open}");
    let mut rows: BTreeMap<i64, (u64, u64, i64)> = BTreeMap::new();
    let figures = of("flags").into_iter().zip(of("requests").into_iter().zip(of("cpu_ns")));
    for (pid, (flags, (requests, cpu_ns))) in pids.iter().zip(figures) {
        let sums = rows.entry(*pid).or_default();
        sums.0 += u64::from(flags & OPEN == 0);
        (sums.1, sums.2) = (sums.1 + requests as u64, sums.2 + cpu_ns);
    }
    let mut told: BTreeMap<i64, (u64, u64, i64)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["event"] == "breakdown") {
        for process in line["processes"].as_array().unwrap().iter().filter(|process| process["what"].is_null()) {
            let of = |name: &str| process[name].as_u64().unwrap();
            let sums = told.entry(of("pid") as i64).or_default();
            sums.0 += of("transactions");
            sums.1 += of("requests");
            sums.2 += of("cpu_ns") as i64;
        }
    }
    for pid in summary["backend_pids"].as_array().unwrap().iter().filter_map(Value::as_i64) {
        let (lines, rows) = (told[&pid], rows[&pid]);
        assert_eq!((lines.0, lines.1), (rows.0, rows.1), "{pid}");
        assert!(lines.2 >= rows.2 && lines.2 - rows.2 <= rows.2 / 50, "{pid}: CPU time {} of {}", lines.2, rows.2);
    }
    let transactions = |sums: &BTreeMap<i64, (u64, u64, i64)>| sums.values().map(|sums| sums.0).sum::<u64>();
    assert_eq!(transactions(&told), transactions(&rows));
    assert!(transactions(&rows) > 3_001);
}

#[test]
fn a_server_that_ends_is_told_of_and_the_watch_goes_on() {
    let Some(server) = Server::start() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    let first = next(&mut agent, "breakdown");
    assert!(first["server_ended"].is_null());
    assert!(
        first["processes"].as_array().unwrap().iter().all(|process| !process["what"].is_null()),
        "no client: {first}"
    );
    server.crash();
    next(&mut agent, "breakdown");
    let after = next(&mut agent, "breakdown");
    assert_eq!((&after["server_ended"], &after["processes"]), (&json!(true), &json!([])));
    let lines = stop(agent);
    let said = &lines.last().unwrap()["probes"]["breakdown"]["server_ended_ns"];
    assert!(said.as_i64().is_some_and(|ended_ns| ended_ns <= after["t_ns"].as_i64().unwrap()), "{said}");
}

#[test]
fn within_a_budget_the_line_tells_how_much_was_watched() {
    let Some(server) = Server::start() else { return };
    let _thinker = Session::start(&server, "thinker", THINKS);
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({"budget": 1e-7}));
    let lines: Vec<Value> = (0..8).map(|_| next(&mut agent, "breakdown")).collect();
    stop(agent);
    let of = |name: &str| lines.iter().map(|line| line[name].as_u64().unwrap()).collect::<Vec<_>>();
    let (lasted, watched) = (of("lasted_ns"), of("watched_ns"));
    assert!(lasted.iter().zip(&watched).all(|(lasted, watched)| watched <= lasted), "{lasted:?} {watched:?}");
    assert!(watched[2..].iter().sum::<u64>() < lasted[2..].iter().sum::<u64>() / 2, "{watched:?}");
}

#[test]
fn a_reader_that_is_slow_loses_nothing_but_lines() {
    let Some(server) = Server::start_with("max_connections = 220") else { return };
    let (out, of_load) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bank = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": "select_only"});
    must("populate", &json!({"target": server.target(), "workload": bank}));
    let probes = json!({"breakdown": {"data_directory": server.data(), "live": true}});
    let mut agent = Agent::start("watch", &json!({"out": out.path(), "interval_ms": 10, "probes": probes}));
    next(&mut agent, "watching");
    // Nobody reads meanwhile, and a pipe holds some lines only.
    let load = json!({"target": server.target(), "workload": bank, "clients": 200, "out": of_load.path(),
        "stop": {"seconds": 3}, "schedule": {"kind": "constant", "rate": 2_000}});
    must("load", &load);
    let lines = stop(agent);
    let told: u64 = lines
        .iter()
        .filter_map(|line| line["processes"].as_array())
        .flatten()
        .map(|process| process["transactions"].as_u64().unwrap())
        .sum();
    let closed = column(out.path(), "breakdown.npy", "flags").into_iter().filter(|flags| flags & OPEN == 0).count();
    assert_eq!(told, closed as u64);
    let of = |name: &str| lines.iter().filter_map(|line| line[name].as_i64()).collect::<Vec<_>>();
    let made = of("lasted_ns").len();
    assert!(made < 290, "{made} lines of 300 that were due");
    let times: Vec<i64> =
        lines.iter().filter(|line| line["event"] == "breakdown").filter_map(|line| line["t_ns"].as_i64()).collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.eq(of("lasted_ns").into_iter().skip(1)), "each line tells of all since the one before");
}

#[test]
fn what_a_client_copies_in_is_one_transaction() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE TABLE copied (a int)");
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    next(&mut agent, "watching");
    let slowly = "\\copy copied FROM PROGRAM 'for i in 1 2 3 4; do echo $i; sleep 0.3; done'";
    let _session = Session::start(&server, "copier", slowly);
    let copier = backend(&server, "copier") as i64;
    std::thread::sleep(Duration::from_millis(1_500));
    let lines = stop(agent);
    assert_eq!(server.sql("SELECT count(*) FROM copied"), "4");
    let of = |name| column(out.path(), "breakdown.npy", name);
    let (pids, arrived, ended) = (of("backend_pid"), of("arrived_ns"), of("ended_ns"));
    let lasted: Vec<i64> = (0..pids.len()).filter(|at| pids[*at] == copier).map(|at| ended[at] - arrived[at]).collect();
    let long = lasted.iter().filter(|ns| **ns > 1_000 * MS as i64).count();
    assert_eq!(long, 1, "{lasted:?}");
    let waited = lines.iter().filter_map(|line| line["processes"].as_array()).flatten();
    let of_copier = waited.filter(|process| process["pid"] == copier).flat_map(|p| p["waits"].as_array().unwrap());
    let client = of_copier.filter(|wait| wait["bucket"] == "client").map(|wait| wait["ns"].as_u64().unwrap());
    assert!(client.sum::<u64>() > 1_000 * MS, "{lasted:?}");
}
