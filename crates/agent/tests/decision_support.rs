//! decision_support through the agent: its tables are loaded, timed by phase and table, and checked.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{Server, agent, failed_checks, must};

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
    let ends: Vec<f64> = names.iter().map(|name| phases[name].1).collect();
    let begins: Vec<f64> = names[1..].iter().map(|name| phases[name].0).chain([seconds]).collect();
    assert_eq!(ends, begins, "each phase ends when the next one begins, the last one with the loading");

    let work = result["work"].as_array().unwrap();
    for phase in &names[1..] {
        let tables: BTreeMap<&str, &Value> =
            work.iter().filter(|one| one["phase"] == *phase).map(|one| (one["table"].as_str().unwrap(), one)).collect();
        assert_eq!(tables.len(), 8, "{phase}");
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
