//! Tests of decision_support through the agent: requests, a loaded server, what a test left, and a lock that holds one up.

use super::{Server, must};
use plimsoll_record::Table;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

pub(crate) const QUERIES: usize = 22;

pub(crate) fn request(server: &Server, more: Value) -> Value {
    let workload = json!({"name": "decision_support", "scale_factor": 0.01, "seed": 11});
    let mut request = json!({"target": server.target(), "workload": workload});
    more.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
    request
}

pub(crate) fn plan(streams: &[u32]) -> Value {
    json!({"workload": {"name": "decision_support", "scale_factor": 0.01, "seed": 11}, "streams": streams})
}

/// A loaded server; `None` if this machine cannot run one.
pub(crate) fn loaded() -> Option<Server> {
    let server = Server::start()?;
    must("populate", &request(&server, json!({})));
    Some(server)
}

pub(crate) fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `queries` of queries.json.
pub(crate) fn entries(out: &Path) -> Vec<Value> {
    json_of(&out.join("queries.json"))["queries"].as_array().unwrap().clone()
}

pub(crate) fn texts<'a>(entries: &'a [Value], name: &str) -> Vec<&'a str> {
    entries.iter().map(|entry| entry[name].as_str().unwrap_or_else(|| panic!("{name} of {entry}"))).collect()
}

pub(crate) fn numbers(entries: &[Value], name: &str) -> Vec<i64> {
    entries.iter().map(|entry| entry[name].as_i64().unwrap_or_else(|| panic!("{name} of {entry}"))).collect()
}

pub(crate) fn column(out: &Path, name: &str) -> Vec<i64> {
    let values = Table::read(&out.join("transactions.npy")).unwrap().column(name).unwrap();
    values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
}

/// Planned, done, failed, skipped, lost.
pub(crate) fn counts(summary: &Value) -> [u64; 5] {
    ["planned", "done", "failed", "skipped", "lost"].map(|name| summary["identity"][name].as_u64().unwrap())
}

/// That queries.json, transactions.npy and the summary tell the same.
pub(crate) fn must_agree(out: &Path, summary: &Value) {
    let entries = entries(out);
    let planned = entries.len();
    assert_eq!(numbers(&entries, "index"), (0..planned as i64).collect::<Vec<_>>());
    assert_eq!((&summary["identity"]["planned"], &summary["next_index"]), (&json!(planned), &json!(planned)));
    assert_eq!(summary["rows"]["recorded"], json!(planned));
    let (indexes, kinds, outcomes) = (column(out, "index"), column(out, "kind"), column(out, "outcome"));
    let (starts, ends, pids) = (column(out, "start_ns"), column(out, "end_ns"), column(out, "backend_pid"));
    let (planned_ns, connections) = (column(out, "planned_ns"), column(out, "connection"));
    assert_eq!(indexes.len(), planned);
    for (row, index) in indexes.into_iter().enumerate() {
        let entry = &entries[index as usize];
        assert_eq!(summary["kinds"][kinds[row] as usize], entry["name"], "{entry}");
        let outcome = ["done", "failed", "skipped", "lost"][outcomes[row] as usize];
        let status = entry["status"].as_str().unwrap();
        assert_eq!(if status == "timed out" { "failed" } else { status }, outcome, "{entry}");
        assert_eq!((connections[row], pids[row] > 0), (entry["connection"].as_i64().unwrap(), true), "{entry}");
        assert_eq!(summary["backend_pids"][connections[row] as usize], pids[row], "{entry}");
        assert!(planned_ns[row] <= starts[row] && starts[row] <= ends[row], "{entry}");
        if status == "skipped" {
            assert_eq!((&entry["began_ns"], &entry["ended_ns"]), (&Value::Null, &Value::Null), "{entry}");
        } else {
            assert_eq!((&entry["began_ns"], &entry["ended_ns"]), (&json!(starts[row]), &json!(ends[row])), "{entry}");
        }
        assert_eq!(entry["error"].is_null(), ["done", "skipped"].contains(&status), "{entry}");
    }
}

/// That each session did one thing after the other, the queries in the order that `plan` tells.
pub(crate) fn must_be_in_order(entries: &[Value], streams: &[u32]) {
    let planned = must("plan", &plan(streams));
    for stream in planned["streams"].as_array().unwrap() {
        let mine: Vec<Value> = entries.iter().filter(|entry| entry["stream"] == stream["stream"]).cloned().collect();
        let queries: Vec<&Value> = mine.iter().filter(|one| one["name"].as_str().unwrap().starts_with('Q')).collect();
        assert_eq!(queries.len(), QUERIES);
        for (entry, query) in queries.iter().zip(stream["queries"].as_array().unwrap()) {
            assert_eq!(entry["name"], format!("Q{}", query["query"]));
            assert_eq!((&entry["title"], &entry["parameters"]), (&query["title"], &query["parameters"]));
        }
    }
    for session in entries.chunk_by(|one, next| one["connection"] == next["connection"]) {
        assert_eq!(numbers(session, "place"), (0..session.len() as i64).collect::<Vec<_>>());
        let (began, ended) = (numbers(session, "began_ns"), numbers(session, "ended_ns"));
        assert!(began.iter().zip(&ended).all(|(began, ended)| began < ended), "{session:?}");
        assert!(ended.iter().zip(&began[1..]).all(|(ended, next)| ended <= next), "{session:?}");
    }
}

/// The queries of stream 0 whose text has `word`.
pub(crate) fn queries_with(word: &str) -> Vec<String> {
    let planned = must("plan", &plan(&[0]));
    let queries = planned["streams"][0]["queries"].as_array().unwrap();
    let with = queries.iter().filter(|query| query["sql"].as_str().unwrap().contains(word));
    with.map(|query| format!("Q{}", query["query"])).collect()
}

/// A session that holds `lock` until it is ended.
pub(crate) struct Holder(pub(crate) Child);

impl Holder {
    pub(crate) fn new(server: &Server, lock: &str) -> Self {
        let hold = format!("BEGIN; LOCK TABLE plimsoll.{lock} MODE; SELECT pg_sleep(120)");
        let mut psql = server.command("psql");
        let child = psql.args(["-XAtqc", &hold]).envs(server.environment()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(server, 1, "query LIKE '%pg_sleep(120)' AND wait_event = 'PgSleep'");
        Self(child)
    }

    /// Ends the session, too, which would not see that its client is gone.
    pub(crate) fn release(mut self, server: &Server) {
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
        let _ = self.0.wait();
    }
}

/// Waits until there are `sessions` of which `what` holds.
pub(crate) fn wait_for(server: &Server, sessions: usize, what: &str) {
    let patience = Instant::now();
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {what}");
    while server.sql(&sql).parse::<usize>().unwrap() < sessions {
        assert!(patience.elapsed() < Duration::from_secs(60), "no {sessions} sessions: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
