//! decision_support through the agent: its tables are loaded, timed by phase and table, refreshed and checked, also after a kill
//! of the server in a refresh function.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Agent, Server, agent, failed_checks, must};

const LINES: u64 = 60_175;

fn request(server: &Server, more: Value) -> Value {
    let workload = json!({"name": "decision_support", "scale_factor": 0.01});
    let mut request = json!({"target": server.target(), "workload": workload});
    more.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
    request
}

/// When something began and ended, in seconds.
fn span(of: &Value) -> (f64, f64) {
    (of["began_s"].as_f64().unwrap(), of["ended_s"].as_f64().unwrap())
}

#[test]
fn loading_is_timed_by_phase_and_table() {
    let Some(server) = Server::start() else { return };
    let said = agent("populate", &request(&server, json!({"parallel": 2})));
    assert_eq!(said.code, Some(0), "{said:?}");
    let result = said.result();
    let described = must("describe", &request(&server, json!({})));
    assert_eq!((&result["tables"], &described["tables"]["lineitem"]), (&described["tables"], &json!(LINES)));

    let names = ["tables", "rows", "vacuum", "indexes"];
    let phases: BTreeMap<&str, (f64, f64)> =
        result["phases"].as_array().unwrap().iter().map(|one| (one["phase"].as_str().unwrap(), span(one))).collect();
    assert_eq!(phases.len(), names.len());
    let seconds = result["seconds"].as_f64().unwrap();
    // A table is vacuumed when all rows are there and indexed after its own vacuum: only the last two overlap.
    let [tables, rows, vacuum, indexes] = names.map(|name| phases[name]);
    assert!(tables.1 <= rows.0 && rows.1 <= vacuum.0, "{phases:?}");
    assert!(vacuum.0 < indexes.0 && indexes.0 <= vacuum.1 && vacuum.1 < indexes.1, "{phases:?}");
    assert!(
        indexes.1 <= seconds && seconds - indexes.1 < 0.5,
        "the last one ends with the loading: {phases:?} {seconds}"
    );

    let work = result["work"].as_array().unwrap();
    for phase in &names[1..] {
        let tables: BTreeMap<&str, &Value> =
            work.iter().filter(|one| one["phase"] == *phase).map(|one| (one["table"].as_str().unwrap(), one)).collect();
        assert_eq!(tables.len(), 9, "{phase}");
        for (table, work) in tables {
            let ((began, ended), (first, last)) = (span(work), phases[phase]);
            assert!(first <= began && began < ended && ended <= last, "{phase} of {table}: {work}");
            let rows = if *phase == "rows" { result["tables"][table].clone() } else { Value::Null };
            assert_eq!(work["rows"], rows, "{phase} of {table}");
        }
    }
    let sent: u64 = work.iter().filter_map(|one| one["bytes"].as_u64()).sum();
    let progress = said.lines.iter().rfind(|line| line["event"] == "progress").unwrap();
    assert_eq!((&progress["done"], &progress["bytes"]), (&progress["total"], &json!(sent)));
    let by_table: u64 = result["table_bytes"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert_eq!(result["bytes"], json!(by_table));
}

#[test]
fn tables_are_checked_and_dropped_and_take_no_load() {
    let Some(server) = Server::start() else { return };
    must("populate", &request(&server, json!({})));
    let check = request(&server, json!({"segments": []}));
    assert_eq!(failed_checks(&must("check", &check)), [""; 0]);
    server.sql("DELETE FROM plimsoll.lineitem WHERE l_orderkey = 1 AND l_linenumber = 1");
    let failed = ["orders whose o_totalprice is not that of their lines", "lineitem: rows"];
    assert_eq!(failed_checks(&must("check", &check)), failed);
    let folder = tempfile::tempdir().unwrap();
    let load = agent("load", &request(&server, json!({"clients": 1, "out": folder.path()})));
    assert_eq!((load.code, load.errors.contains("workload.name")), (Some(2), true), "{load:?}");
    let mut wrong = request(&server, json!({}));
    wrong["workload"]["scale_factor"] = json!(0.015);
    let wrong = agent("populate", &wrong);
    assert_eq!((wrong.code, wrong.errors.contains("workload.scale_factor")), (Some(2), true), "{wrong:?}");
    assert_eq!(must("drop", &request(&server, json!({})))["existed"], true);
}

/// Function, set, orders and lines of each refresh function that was performed.
fn performed(result: &Value) -> Vec<(String, u64, u64, u64)> {
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap();
    let of = |one: &Value| {
        assert!(one["began_ns"].as_i64() < one["ended_ns"].as_i64(), "{one}");
        let function = one["function"].as_str().unwrap().to_owned();
        (function, number(one, "set"), number(one, "orders"), number(one, "lines"))
    };
    result["refreshes"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn sets_are_taken_in_turn_and_a_killed_one_again() {
    let Some(server) = Server::start() else { return };
    must("populate", &request(&server, json!({})));
    let check = request(&server, json!({"segments": []}));
    let first = performed(&must("refresh", &request(&server, json!({"times": 2}))));
    let sets: Vec<(&str, u64)> = first.iter().map(|(function, set, ..)| (function.as_str(), *set)).collect();
    assert_eq!(sets, [("RF1", 1), ("RF2", 1), ("RF1", 2), ("RF2", 2)]);
    assert!(first.iter().all(|&(_, _, orders, lines)| orders == 15 && (15..=105).contains(&lines)), "{first:?}");
    assert_eq!(failed_checks(&must("check", &check)), [""; 0]);

    // RF1 waits for the lock when its lines are in, RF2 when they are gone.
    for function in ["RF1", "RF2"] {
        let (orders, lines) =
            (server.sql("SELECT count(*) FROM plimsoll.orders"), "SELECT count(*) FROM plimsoll.lineitem");
        let before = server.sql(lines);
        let mut holder = server.command("psql");
        let hold = "BEGIN; LOCK TABLE plimsoll.orders IN SHARE MODE; SELECT pg_sleep(60)";
        let mut holder =
            holder.args(["-XAtqc", hold]).envs(server.environment()).stderr(Stdio::null()).spawn().unwrap();
        let waiting = |what: &str| {
            let sql = format!("SELECT count(*) FROM pg_locks WHERE relation = 'plimsoll.orders'::regclass AND {what}");
            let patience = Instant::now();
            while server.sql(&sql) == "0" {
                assert!(patience.elapsed() < Duration::from_secs(30), "nobody holds or waits: {what}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        waiting("mode = 'ShareLock' AND granted");
        let refresh = Agent::start("refresh", &request(&server, json!({"functions": [function]})));
        waiting("NOT granted");
        server.kill();
        let said = refresh.end();
        assert_eq!((said.code, said.lines[0]["set"].as_u64()), (Some(3), Some(3)), "{said:?}");
        let _ = holder.wait();
        server.go();
        assert_eq!((server.sql("SELECT count(*) FROM plimsoll.orders"), server.sql(lines)), (orders, before));
        assert_eq!(failed_checks(&must("check", &check)), [""; 0], "{function}");
        let again = performed(&must("refresh", &request(&server, json!({"functions": [function]}))));
        assert_eq!((again[0].0.as_str(), again[0].1), (function, 3));
        assert_eq!(failed_checks(&must("check", &check)), [""; 0], "{function}");
    }
}

#[test]
fn refresh_functions_that_cannot_be_are_refused() {
    let Some(server) = Server::start() else { return };
    for (more, field) in [
        (json!({"functions": ["RF3"]}), "functions"),
        (json!({"functions": []}), "functions"),
        (json!({"times": 0}), "times"),
        (json!({"workload": {"name": "wpi_orders", "size_bytes": 16 << 20, "seed": 1}}), "workload.name"),
    ] {
        let refused = agent("refresh", &request(&server, more.clone()));
        assert_eq!((refused.code, refused.errors.contains(field)), (Some(2), true), "{more}: {refused:?}");
    }
    let absent = agent("refresh", &request(&server, json!({})));
    assert_eq!((absent.code, absent.errors.contains("populate it first")), (Some(3), true), "{absent:?}");
}

#[test]
fn a_table_is_written_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lineitem.tbl");
    let workload = json!({"name": "decision_support", "scale_factor": 0.01});
    let request = |table: &str| json!({"workload": workload, "table": table, "out": file});
    let unknown = agent("generate", &request("lines"));
    assert_eq!((unknown.code, unknown.errors.contains("table"), file.exists()), (Some(2), true, false), "{unknown:?}");
    let generated = must("generate", &request("lineitem"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!((generated["rows"].as_u64(), generated["bytes"].as_u64()), (Some(LINES), Some(text.len() as u64)));
    assert_eq!(text.lines().count() as u64, LINES);
    let first = "1|1552|93|1|17|24710.35|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON|TRUCK|\
                 egular courts above the";
    assert_eq!(text.lines().next(), Some(first));
}

#[test]
fn a_refresh_set_is_written_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("set.tbl");
    let workload = json!({"name": "decision_support", "scale_factor": 0.01});
    let request = |table: &str, set: u64| json!({"workload": workload, "table": table, "set": set, "out": file});
    for (table, set, field) in [("customer", 1, "table"), ("orders", 0, "set"), ("orders", 1_000, "set")] {
        let refused = agent("generate", &request(table, set));
        assert_eq!((refused.code, refused.errors.contains(field)), (Some(2), true), "{refused:?}");
    }
    let generated = must("generate", &request("lineitem", 2));
    assert_eq!((&generated["set"], &generated["lines"]), (&json!(2), &generated["rows"]));
    must("generate", &request("refresh_key", 2));
    // 15 orders a set: the second deletes those of places 16 to 30, whose keys are in runs of eight with gaps of 24.
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().take(3).chain(text.lines().last()).collect::<Vec<_>>(), ["64", "65", "66", "102"]);
    assert_eq!(text.lines().count(), 15);

    let other = folder.path().join("other.tbl");
    let parts = json!([{"table": "region", "out": other}, {"table": "orders", "set": 2, "out": file}]);
    let said = agent("generate", &json!({"workload": workload, "parts": parts}));
    let told: Vec<_> = said.lines.iter().map(|line| (&line["table"], &line["rows"])).collect();
    assert_eq!(told, [(&json!("region"), &json!(5)), (&json!("orders"), &json!(15))], "{said:?}");
    assert_eq!(std::fs::read_to_string(&other).unwrap().lines().count(), 5);
    for more in [json!({"parts": []}), json!({"parts": parts, "table": "region"}), json!({"table": "region"})] {
        let mut request = json!({"workload": workload});
        more.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
        let refused = agent("generate", &request);
        assert_eq!((refused.code, refused.errors.contains("parts")), (Some(2), true), "{refused:?}");
    }
}

#[test]
fn a_watch_takes_the_series_of_the_host_where_it_is_asked_to() {
    let out = tempfile::tempdir().unwrap();
    let mut watching =
        Agent::start("watch", &json!({"out": out.path(), "interval_ms": 50, "host": true, "probes": {}}));
    assert_eq!(watching.line()["event"], "watching");
    watching.tell("stop");
    let said = watching.end();
    let watched = said.result();
    assert!(watched["samples"].as_u64() >= Some(2), "{watched}");
    assert!(out.path().join("host.npy").metadata().unwrap().len() > 128);
    assert!(!out.path().join("group.npy").exists());
}
