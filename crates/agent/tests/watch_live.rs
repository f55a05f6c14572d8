//! What `watch` tells of a server while it goes on: long statements are seen while they last.
//! Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use support::Server;
use support::live::{HEADLESS, MS, OPEN, Session, THINKS, backend, column, names, of, stop, sum, waits, watch};

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
    let first = agent.line_of("breakdown");
    // 0.8 s on a machine that does nothing else; what is asked is that nobody waits for something that never comes.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let stuck = Stuck::start(&server);
    agent.line_of("breakdown");
    let mut lines = vec![first];
    // The first of these has the begin of the statements in it.
    lines.extend((0..4).map(|_| agent.line_of("breakdown")));
    std::thread::sleep(Duration::from_millis(100));
    lines.push(agent.line_of("breakdown"));
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
    let lines: Vec<Value> = (0..3).map(|_| agent.line_of("breakdown")).collect();
    // The waiter gets its lock.
    server.sql(&format!("SELECT pg_terminate_backend({})", stuck.holder));
    agent.line_of("breakdown");
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
    agent.line_of("watching");
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
fn what_a_client_copies_in_is_one_transaction() {
    let Some(server) = Server::start() else { return };
    server.sql("CREATE TABLE copied (a int)");
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    agent.line_of("watching");
    let slowly = "\\copy copied FROM PROGRAM 'for i in 1 2 3 4; do echo $i; sleep 0.3; done'";
    let _session = Session::start(&server, "copier", slowly);
    let copier = backend(&server, "copier") as i64;
    // 1.2 s and whatever a busy machine takes to start four programs; then its end is told.
    let patience = Instant::now();
    while server.sql("SELECT count(*) FROM copied") != "4" {
        assert!(patience.elapsed() < Duration::from_secs(60), "nothing is copied");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
    let lines = stop(agent);
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
