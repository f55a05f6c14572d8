//! The power and the throughput test of decision_support through the agent: all work is done in its order and recorded, what fails
//! or takes too long ends alone, and a test that is cut short accounts for the rest.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::{Agent, Server, agent, failed_checks, must};
use tempfile::tempdir;

const QUERIES: usize = 22;

fn request(server: &Server, more: Value) -> Value {
    let workload = json!({"name": "decision_support", "scale_factor": 0.01, "seed": 11});
    let mut request = json!({"target": server.target(), "workload": workload});
    more.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
    request
}

fn plan(streams: &[u32]) -> Value {
    json!({"workload": {"name": "decision_support", "scale_factor": 0.01, "seed": 11}, "streams": streams})
}

/// A loaded server; `None` if this machine cannot run one.
fn loaded() -> Option<Server> {
    let server = Server::start()?;
    must("populate", &request(&server, json!({})));
    Some(server)
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `queries` of queries.json.
fn entries(out: &Path) -> Vec<Value> {
    json_of(&out.join("queries.json"))["queries"].as_array().unwrap().clone()
}

fn texts<'a>(entries: &'a [Value], name: &str) -> Vec<&'a str> {
    entries.iter().map(|entry| entry[name].as_str().unwrap_or_else(|| panic!("{name} of {entry}"))).collect()
}

fn numbers(entries: &[Value], name: &str) -> Vec<i64> {
    entries.iter().map(|entry| entry[name].as_i64().unwrap_or_else(|| panic!("{name} of {entry}"))).collect()
}

fn column(out: &Path, name: &str) -> Vec<i64> {
    let values = Table::read(&out.join("transactions.npy")).unwrap().column(name).unwrap();
    values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
}

/// Planned, done, failed, skipped, lost.
fn counts(summary: &Value) -> [u64; 5] {
    ["planned", "done", "failed", "skipped", "lost"].map(|name| summary["identity"][name].as_u64().unwrap())
}

/// That queries.json, transactions.npy and the summary tell the same.
fn must_agree(out: &Path, summary: &Value) {
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
fn must_be_in_order(entries: &[Value], streams: &[u32]) {
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

#[test]
fn a_power_test_is_done_in_its_order_and_accounted_for() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let more = json!({"test": "power", "timeout_seconds": 600, "out": out, "sample": {"interval_ms": 20}});
    let summary = must("streams", &request(&server, more));
    assert_eq!((counts(&summary), &summary["ended_by"]), ([24, 24, 0, 0, 0], &json!("transactions")), "{summary}");
    assert_eq!(summary, {
        let mut written = json_of(&out.join("summary.json"));
        written["event"] = json!("summary");
        written
    });
    must_agree(out, &summary);

    let entries = entries(out);
    assert_eq!((entries.len(), texts(&entries, "name")[0], texts(&entries, "name")[23]), (24, "RF1", "RF2"));
    assert!(entries.iter().all(|entry| entry["stream"] == 0 && entry["status"] == "done"), "{entries:?}");
    must_be_in_order(&entries, &[0]);
    let whole = json_of(&out.join("queries.json"));
    assert_eq!((&whole["began_ns"], &whole["ended_ns"]), (&entries[0]["began_ns"], &entries[23]["ended_ns"]));
    assert!(summary["started_ns"].as_i64() <= whole["began_ns"].as_i64());
    assert_eq!((&whole["test"], &whole["streams"], &whole["explained"]), (&json!("power"), &json!(1), &json!(false)));
    for (entry, function) in [(&entries[0], "RF1"), (&entries[23], "RF2")] {
        let orders = entry["orders"].as_u64().unwrap();
        assert_eq!((entry["set"].as_u64(), orders, &entry["bytes"]), (Some(1), 15, &Value::Null), "{entry}");
        assert_eq!(entry["rows"].as_u64().unwrap(), orders + entry["lines"].as_u64().unwrap(), "{entry}");
        let sql = format!("SELECT taken FROM plimsoll.refresh_sets WHERE function = '{function}'");
        assert_eq!(server.sql(&sql), "1");
    }
    let one = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap();
    assert_eq!((one("Q1")["rows"].as_u64(), one("Q6")["rows"].as_u64()), (Some(4), Some(1)));
    // A message has 5 bytes before its row, and the row 2 before its values.
    let bytes_and_rows = |entry: &Value| (entry["bytes"].as_u64().unwrap(), entry["rows"].as_u64().unwrap());
    assert!(entries[1..23].iter().map(bytes_and_rows).all(|(bytes, rows)| bytes >= 7 * rows));

    // The limit of time is set and lifted beside the work.
    let of_work: i64 = column(out, "requests").iter().sum();
    assert_eq!(summary["requests_sent"].as_i64(), Some(of_work + 2));
    assert!(summary["health"]["samples"].as_u64().unwrap() >= 2, "{}", summary["health"]);
    assert!(Table::read(&out.join("server.npy")).unwrap().column("xact_commit").unwrap().len() >= 2);
    assert_eq!(failed_checks(&must("check", &request(&server, json!({"segments": []})))), [""; 0]);
}

#[test]
fn a_throughput_test_runs_its_streams_at_once_and_takes_new_sets_each_time() {
    let Some(server) = loaded() else { return };
    for round in 0..2 {
        let folder = tempdir().unwrap();
        let out = folder.path();
        let more = json!({"test": "throughput", "streams": 2, "out": out});
        // Each session comes to this table, and waits there for the others.
        let holder = Holder::new(&server, "orders IN ACCESS EXCLUSIVE");
        let test = Agent::start("streams", &request(&server, more));
        wait_for(&server, 3, "wait_event_type = 'Lock' AND backend_type = 'client backend'");
        holder.release(&server);
        let said = test.end();
        assert_eq!((said.code, counts(said.result())), (Some(0), [48, 48, 0, 0, 0]), "{said:?}");
        must_agree(out, said.result());
        let entries = entries(out);
        must_be_in_order(&entries, &[1, 2]);
        let refreshing = &entries[2 * QUERIES..];
        assert_eq!(texts(refreshing, "name"), ["RF1", "RF2", "RF1", "RF2"]);
        assert!(refreshing.iter().all(|entry| entry["stream"].is_null() && entry["connection"] == 2));
        let first = 2 * round + 1;
        assert_eq!(numbers(refreshing, "set"), [first, first, first + 1, first + 1]);
        // So each began before any of the others had ended.
        let sessions = entries.chunk_by(|one, next| one["connection"] == next["connection"]);
        let spans: Vec<(i64, i64)> = sessions
            .map(|session| (numbers(session, "began_ns")[0], *numbers(session, "ended_ns").last().unwrap()))
            .collect();
        assert_eq!(spans.len(), 3);
        let (last_begun, first_ended) = (spans.iter().map(|span| span.0).max(), spans.iter().map(|span| span.1).min());
        assert!(last_begun < first_ended, "{spans:?}");
        let whole = json_of(&out.join("queries.json"));
        assert_eq!(whole["began_ns"].as_i64(), spans.iter().map(|span| span.0).min());
        assert_eq!(whole["ended_ns"].as_i64(), spans.iter().map(|span| span.1).max());
        assert_eq!(failed_checks(&must("check", &request(&server, json!({"segments": []})))), [""; 0]);
    }
    let folder = tempdir().unwrap();
    let more = json!({"test": "throughput", "streams": 3, "refresh": false, "out": folder.path()});
    assert_eq!(counts(&must("streams", &request(&server, more))), [66, 66, 0, 0, 0]);
    assert_eq!(server.sql("SELECT string_agg(taken::text, ' ') FROM plimsoll.refresh_sets"), "4 4");
}

/// The queries of stream 0 whose text has `word`.
fn queries_with(word: &str) -> Vec<String> {
    let planned = must("plan", &plan(&[0]));
    let queries = planned["streams"][0]["queries"].as_array().unwrap();
    let with = queries.iter().filter(|query| query["sql"].as_str().unwrap().contains(word));
    with.map(|query| format!("Q{}", query["query"])).collect()
}

#[test]
fn a_query_that_fails_ends_alone() {
    let Some(server) = loaded() else { return };
    server.sql("ALTER TABLE plimsoll.supplier RENAME TO vendor");
    let with = queries_with("supplier");
    assert!((5..15).contains(&with.len()), "{with:?}");
    let folder = tempdir().unwrap();
    let out = folder.path();
    let summary = must("streams", &request(&server, json!({"test": "power", "out": out})));
    let failed = with.len() as u64;
    assert_eq!(counts(&summary), [24, 24 - failed, failed, 0, 0], "{summary}");
    must_agree(out, &summary);
    for entry in entries(out) {
        let fails = with.iter().any(|name| entry["name"] == *name);
        assert_eq!(entry["status"], if fails { "failed" } else { "done" }, "{entry}");
        let error = entry["error"].as_str().unwrap_or_default();
        assert_eq!(error.contains("relation \"supplier\" does not exist"), fails, "{entry}");
        assert_eq!(entry["rows"].is_null(), fails, "{entry}");
    }
    assert_eq!((&summary["errors"][0]["sqlstate"], &summary["errors"][0]["count"]), (&json!("42P01"), &json!(failed)));
}

/// A session that holds `lock` until it is ended.
struct Holder(Child);

impl Holder {
    fn new(server: &Server, lock: &str) -> Self {
        let hold = format!("BEGIN; LOCK TABLE plimsoll.{lock} MODE; SELECT pg_sleep(120)");
        let mut psql = server.command("psql");
        let child = psql.args(["-XAtqc", &hold]).envs(server.environment()).stderr(Stdio::null()).spawn().unwrap();
        wait_for(server, 1, "query LIKE '%pg_sleep(120)' AND wait_event = 'PgSleep'");
        Self(child)
    }

    /// Ends the session, too, which would not see that its client is gone.
    fn release(mut self, server: &Server) {
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
        let _ = self.0.wait();
    }
}

/// Waits until there are `sessions` of which `what` holds.
fn wait_for(server: &Server, sessions: usize, what: &str) {
    let patience = Instant::now();
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {what}");
    while server.sql(&sql).parse::<usize>().unwrap() < sessions {
        assert!(patience.elapsed() < Duration::from_secs(60), "no {sessions} sessions: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_query_that_takes_too_long_is_cancelled_alone() {
    let Some(server) = loaded() else { return };
    let with = queries_with("lineitem");
    assert!((10..22).contains(&with.len()), "{with:?}");
    let holder = Holder::new(&server, "lineitem IN ACCESS EXCLUSIVE");
    let folder = tempdir().unwrap();
    let out = folder.path();
    let more = json!({"test": "power", "refresh": false, "timeout_seconds": 0.5, "out": out});
    let said = agent("streams", &request(&server, more));
    holder.release(&server);
    assert_eq!(said.code, Some(0), "{said:?}");
    must_agree(out, said.result());
    for entry in entries(out) {
        let late = with.iter().any(|name| entry["name"] == *name);
        // On a busy machine the others may take as long.
        assert!(entry["status"] == "timed out" || (!late && entry["status"] == "done"), "{entry}");
        if entry["status"] == "timed out" {
            let taken = entry["ended_ns"].as_i64().unwrap() - entry["began_ns"].as_i64().unwrap();
            assert!(taken >= 500_000_000, "{entry}");
        }
    }
    assert_eq!(said.result()["errors"][0]["sqlstate"], "57014");
    // It takes seconds, so that there were lines that say what it is at.
    let at =
        said.lines.iter().filter(|line| line["event"] == "progress").flat_map(|line| line["at"].as_array().unwrap());
    let at: Vec<&Value> = at.collect();
    assert!(!at.is_empty() && at.iter().all(|one| one["stream"] == 0 && one["began_ns"].is_i64()), "{at:?}");
    assert!(at.iter().any(|one| with.iter().any(|name| one["name"] == *name)), "{at:?}");
}

#[test]
fn a_test_that_is_cut_short_accounts_for_the_rest() {
    let Some(server) = loaded() else { return };
    let check = request(&server, json!({"segments": []}));
    // RF1 waits for the lock when its lines are in. It is told to stop, or the server is killed.
    for (how, code, ended_by, status, error) in [
        ("signal", 4, "signal", "failed", "canceling statement due to user request"),
        ("line", 0, "told", "failed", "canceling statement due to user request"),
        ("input", 4, "input_closed", "failed", "canceling statement due to user request"),
        ("kill", 3, "connections_lost", "lost", "the connection broke"),
    ] {
        let mut holder = Holder::new(&server, "orders IN SHARE");
        let folder = tempdir().unwrap();
        let out = folder.path();
        let mut test = Agent::start("streams", &request(&server, json!({"test": "power", "out": out})));
        wait_for(&server, 1, "wait_event_type = 'Lock' AND query LIKE 'COPY orders%'");
        match how {
            "signal" => {
                let pid = rustix::process::Pid::from_raw(test.pid() as i32).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
            "line" => test.tell("stop"),
            "input" => test.close_input(),
            _ => server.kill(),
        }
        let said = test.end();
        assert_eq!(said.code, Some(code), "{how}: {said:?}");
        if how == "kill" {
            server.go();
            let _ = holder.0.wait();
        } else {
            holder.release(&server);
        }
        let summary = json_of(&out.join("summary.json"));
        assert_eq!(summary["ended_by"], ended_by, "{how}");
        let [failed, lost] = if status == "lost" { [0, 1] } else { [1, 0] };
        assert_eq!(counts(&summary), [24, 0, failed, 23, lost], "{how}");
        must_agree(out, &summary);
        let entries = entries(out);
        assert_eq!((entries[0]["set"].as_i64(), entries[0]["status"].as_str()), (Some(1), Some(status)), "{how}");
        assert!(entries[0]["error"].as_str().unwrap().contains(error), "{how}: {}", entries[0]);
        assert!(entries[1..].iter().all(|entry| entry["status"] == "skipped"), "{how}");
        assert_eq!(failed_checks(&must("check", &check)), [""; 0], "{how}");
    }
    // The set is still there to be taken.
    let folder = tempdir().unwrap();
    let summary = must("streams", &request(&server, json!({"test": "power", "out": folder.path()})));
    assert_eq!(counts(&summary), [24, 24, 0, 0, 0], "{summary}");
    assert_eq!(entries(folder.path())[0]["set"], 1);
    assert_eq!(failed_checks(&must("check", &check)), [""; 0]);
}

#[test]
fn plans_are_written_and_are_no_results() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let more = json!({"test": "throughput", "streams": 2, "refresh": false, "explain": true, "out": out});
    let summary = must("streams", &request(&server, more));
    must_agree(out, &summary);
    assert_eq!(
        (&summary["facts"]["explain"], &json_of(&out.join("queries.json"))["explained"]),
        (&json!(true), &json!(true))
    );
    let entries = entries(out);
    assert_eq!(entries.len(), 2 * QUERIES);
    for entry in entries {
        assert_eq!((&entry["rows"], &entry["bytes"]), (&Value::Null, &Value::Null), "{entry}");
        let name = format!("plans/{}-{}.json", entry["stream"], entry["name"].as_str().unwrap());
        assert_eq!(entry["plan"], name);
        let plan = json_of(&out.join(name));
        assert!(plan[0]["Execution Time"].as_f64().unwrap() > 0.0, "{plan}");
        assert!(plan[0]["Plan"]["Shared Hit Blocks"].is_u64(), "{plan}");
    }
    assert_eq!(std::fs::read_dir(out.join("plans")).unwrap().count(), 2 * QUERIES);
}

/// Each piece of work is one row of the breakdown: a query is a request, a refresh function a transaction of several.
#[cfg(feature = "bpf")]
#[test]
fn each_piece_of_work_has_its_breakdown() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let probes = json!({"breakdown": {"data_directory": server.data()}});
    let more = json!({"test": "throughput", "streams": 2, "timeout_seconds": 600, "out": out, "probes": probes});
    let summary = must("streams", &request(&server, more));
    assert_eq!(counts(&summary), [48, 48, 0, 0, 0], "{summary}");
    let probe = &summary["probes"]["breakdown"];
    assert_eq!(probe["status"], "on", "{probe}");
    let of = |name: &str| -> Vec<i64> {
        let values = Table::read(&out.join("breakdown.npy")).unwrap().column(name).unwrap();
        values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
    };
    let (pids, arrived, requests) = (of("backend_pid"), of("arrived_ns"), of("requests"));
    let (backends, starts, ends) = (column(out, "backend_pid"), column(out, "start_ns"), column(out, "end_ns"));
    let sent = column(out, "requests");
    // A row may begin with the answer before it (a request that the backend never waited for), so they are paired in their order.
    let mut rows: Vec<usize> = (0..pids.len()).filter(|row| backends.contains(&pids[*row])).collect();
    let mut works: Vec<usize> = (0..backends.len()).collect();
    rows.sort_by_key(|row| (pids[*row], arrived[*row]));
    works.sort_by_key(|work| (backends[*work], starts[*work]));
    assert_eq!(rows.len(), works.len());
    for (row, work) in rows.into_iter().zip(works) {
        assert_eq!((pids[row], requests[row]), (backends[work], sent[work]), "work {work}");
        assert!(arrived[row] <= ends[work], "work {work}");
    }
    let of_streams: i64 = (0..pids.len()).filter(|row| backends.contains(&pids[*row])).map(|row| requests[row]).sum();
    assert_eq!(summary["requests_sent"].as_i64(), Some(of_streams));
}

#[test]
fn wrong_requests_name_the_field() {
    let Some(server) = Server::start() else { return };
    let folder = tempdir().unwrap();
    for (more, field) in [
        (json!({"test": "load"}), "test"),
        (json!({"test": "power", "streams": 2}), "streams"),
        (json!({"test": "throughput"}), "streams"),
        (json!({"test": "throughput", "streams": 0}), "streams"),
        (json!({"test": "throughput", "streams": 1_000}), "streams"),
        (json!({"test": "power", "timeout_seconds": 0}), "timeout_seconds"),
        (json!({"test": "power", "timeout": 1}), "timeout"),
        (json!({"test": "power", "out": folder.path().join("none")}), "out"),
        (json!({"test": "power", "sample": {"interval_ms": 1}}), "sample.interval_ms"),
        (json!({"test": "power", "workload": {"name": "bank", "scale": 1, "seed": 1}}), "workload.name"),
    ] {
        let mut all = request(&server, json!({"out": folder.path()}));
        more.as_object().unwrap().iter().for_each(|(name, value)| all[name] = value.clone());
        let refused = agent("streams", &all);
        assert_eq!((refused.code, refused.errors.contains(field)), (Some(2), true), "{more}: {refused:?}");
    }
    let absent = agent("streams", &request(&server, json!({"test": "power", "out": folder.path()})));
    assert_eq!((absent.code, absent.errors.contains("populate it first")), (Some(3), true), "{absent:?}");
    assert!(!folder.path().join("transactions.npy").exists(), "bad input starts nothing");
}
