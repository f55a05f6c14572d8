//! A load of file_serving by the agent: laid out, performed to its end, recorded, checked, dropped.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::path::Path;
use support::{agent, failed_checks, must};

/// Three files of a client, one of them with an error in between.
const SCRIPT: &str = r#"Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1" 0x1 0x2 1 NT_STATUS_OK
Close 1 NT_STATUS_OK
NTCreateX "\clients\client1\a" 0x40 0x2 2 NT_STATUS_OK
WriteX 2 0 65536 65536 NT_STATUS_OK
ReadX 2 100 61440 61440 NT_STATUS_OK
Close 2 NT_STATUS_OK
NTCreateX "\clients\client1\b" 0x40 0x1 3 NT_STATUS_OBJECT_NAME_NOT_FOUND
Rename "\clients\client1\a" "\clients\client1\b" NT_STATUS_OK
"#;
const LINES: u64 = 10;

fn request(folder: &Path, workload: Value, more: Value) -> Value {
    let mut of = json!({"name": "file_serving", "seed": 3});
    workload.as_object().unwrap().iter().for_each(|(key, value)| of[key] = value.clone());
    let mut request = json!({"target": {"kind": "files", "folder": folder}, "workload": of});
    more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
    request
}

/// A folder of the files, one of records, and the load file.
fn ready() -> (tempfile::TempDir, Value) {
    let place = tempfile::tempdir().unwrap();
    for name in ["files", "out"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
    }
    let script = place.path().join("client.txt");
    std::fs::write(&script, SCRIPT).unwrap();
    (place, json!({"loadfile": script}))
}

fn column(out: &Path, name: &str) -> Vec<i64> {
    let table = Table::read(&out.join("transactions.npy")).unwrap();
    table.column(name).unwrap().into_iter().map(|value| value as i64).collect()
}

#[test]
fn clients_perform_their_passes_and_the_segment_ends() {
    let (place, script) = ready();
    let (files, out) = (place.path().join("files"), place.path().join("out"));
    let workload = json!({"script": script, "passes": 5});
    let asked = |more| request(&files, workload.clone(), more);
    let populated = must("populate", &asked(json!({})));
    assert_eq!((&populated["event"], &populated["bytes"]), (&json!("populated"), &json!(0)));

    let summary = must("load", &asked(json!({"clients": 3, "out": out, "stop": {"seconds": 30}})));
    let performed = 3 * 5 * LINES;
    assert_eq!((&summary["identity"]["planned"], &summary["identity"]["done"]), (&json!(performed), &json!(performed)));
    assert_eq!(summary["by_kind"]["NTCreateX"]["done"], 3 * 5 * 3);
    assert_eq!(summary["by_kind"]["Rename"]["done"], 3 * 5);
    let totals = &summary["totals"];
    assert_eq!((&totals["bytes_written"], &totals["bytes_read"]), (&json!(15 * 65_536), &json!(15 * 61_440)));
    assert_eq!((&summary["verification"]["checked"], &summary["verification"]["wrong"]), (&json!(15), &json!(0)));
    assert_eq!((&summary["facts"]["lines"], &summary["facts"]["generation"]), (&json!(LINES), &json!("4.0")));
    let kinds: Vec<&str> = summary["kinds"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    let (write, bytes) = (kinds.iter().position(|kind| *kind == "WriteX").unwrap() as i64, column(&out, "bytes"));
    let of_writes = column(&out, "kind").into_iter().zip(bytes).filter(|(kind, _)| *kind == write);
    assert_eq!(of_writes.map(|(_, bytes)| bytes).collect::<Vec<_>>(), [65_536; 15]);

    let checked = must("check", &asked(json!({"segments": [out.join("summary.json")]})));
    assert_eq!(failed_checks(&checked), [""; 0], "{checked}");
    std::fs::write(files.join("data/clients/client2/b"), "planted").unwrap();
    let checked = must("check", &asked(json!({"segments": [out.join("summary.json")]})));
    assert_eq!(failed_checks(&checked), ["bytes left in files"]);
    assert_eq!(must("drop", &asked(json!({})))["existed"], true);
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0);
}

#[test]
fn clients_with_tables_of_descriptors_of_their_own_perform_the_same() {
    let (place, script) = ready();
    let out = place.path().join("out");
    let told: Vec<Value> = ["shared", "own"]
        .iter()
        .map(|tables| {
            let files = place.path().join("files").join(tables);
            std::fs::create_dir(&files).unwrap();
            let workload = json!({"script": script, "passes": 4, "descriptor_tables": tables});
            let asked = |more| request(&files, workload.clone(), more);
            must("populate", &asked(json!({})));
            // Which clients ask for it before one has made it is chance; each looks for its name in other case: 3 or 4 calls more.
            std::fs::create_dir(files.join("data/clients")).unwrap();
            let summary = must("load", &asked(json!({"clients": 3, "out": out, "stop": {"seconds": 60}})));
            let checked = must("check", &asked(json!({"segments": [out.join("summary.json")]})));
            assert_eq!(failed_checks(&checked), [""; 0], "{checked}");
            summary
        })
        .collect();
    let counts = |summary: &Value| {
        let mut of_kinds = summary["by_kind"].clone();
        of_kinds.as_object_mut().unwrap().values_mut().for_each(|kind| *kind = kind["done"].clone());
        (of_kinds, summary["identity"].clone(), summary["totals"].clone(), summary["verification"].clone())
    };
    assert_eq!(counts(&told[0]), counts(&told[1]));
    assert_eq!(told[1]["identity"]["done"], 3 * 4 * LINES);
    let tables: Vec<&Value> = told.iter().map(|summary| &summary["facts"]["descriptor_table"]).collect();
    assert_eq!(tables, ["one of all clients", "one of each client"]);

    let other = request(&place.path().join("files"), json!({"script": script, "descriptor_tables": "none"}), json!({}));
    let said = agent("populate", &other);
    assert!(said.code == Some(2) && format!("{said:?}").contains("descriptor_tables"), "{said:?}");
}

#[test]
fn what_a_warm_up_has_moved_is_accounted_for_and_is_in_no_other_segment() {
    let (place, script) = ready();
    let (files, warmup, measure) = (place.path().join("files"), place.path().join("out"), place.path().join("measure"));
    std::fs::create_dir(&measure).unwrap();
    let asked = |more| request(&files, json!({"script": script.clone()}), more);
    must("populate", &asked(json!({})));
    let mut summaries = Vec::new();
    for (out, lines, first) in [(&warmup, 37, 0), (&measure, 23, 37)] {
        let stop = json!({"transactions": lines});
        let summary = must("load", &asked(json!({"clients": 2, "out": out, "stop": stop, "first_index": first})));
        assert_eq!((&summary["identity"]["done"], &summary["totals"]["lines_passed"]), (&json!(lines), &json!(lines)));
        let written = summary["by_kind"]["WriteX"]["done"].as_u64().unwrap() * 65_536;
        assert_eq!(summary["totals"]["bytes_written"], written, "what came before is none of it");
        summaries.push(out.join("summary.json"));
    }
    let check = || must("check", &asked(json!({"segments": summaries})));
    assert_eq!(failed_checks(&check()), [""; 0], "{}", check());
    assert!(check().to_string().contains("bytes written in segment 1"), "{}", check());
    // A line of the warm-up that was lost from its account.
    let mut told: Value = serde_json::from_slice(&std::fs::read(&summaries[0]).unwrap()).unwrap();
    for (part, name) in [("identity", "planned"), ("identity", "done"), ("totals", "bytes_written")] {
        told[part][name] = json!(told[part][name].as_u64().unwrap() - 1);
    }
    std::fs::write(&summaries[0], told.to_string()).unwrap();
    assert_eq!(failed_checks(&check()), ["lines performed in segment 1", "bytes written in segment 1"]);
}

#[test]
fn an_open_loop_goes_on_until_its_end() {
    let (place, script) = ready();
    let (files, out) = (place.path().join("files"), place.path().join("out"));
    let asked = |more| request(&files, json!({"script": script.clone()}), more);
    must("populate", &asked(json!({})));
    let schedule = json!({"kind": "poisson", "rate": 500, "seed": 2});
    let load = json!({"clients": 4, "out": out, "stop": {"seconds": 2}, "schedule": schedule});
    let summary = must("load", &asked(load));
    let identity = &summary["identity"];
    assert_eq!((&identity["done"], &summary["ended_by"]), (&identity["planned"], &json!("seconds")));
    assert!(identity["done"].as_u64().unwrap() > 800, "{identity}");
    let checked = must("check", &asked(json!({"segments": [out.join("summary.json")]})));
    assert_eq!(failed_checks(&checked), [""; 0], "{checked}");
}

#[test]
fn a_wrong_load_file_is_refused_by_its_line() {
    let (place, script) = ready();
    std::fs::write(place.path().join("client.txt"), format!("{SCRIPT}Frobnicate 1 NT_STATUS_OK\n")).unwrap();
    let said = agent("describe", &request(&place.path().join("files"), json!({"script": script}), json!({})));
    let told = format!("{said:?}");
    assert_eq!(said.code, Some(2), "{told}");
    assert!(
        told.contains("client.txt: line 11: the operation") && told.contains("Frobnicate 1 NT_STATUS_OK"),
        "{told}"
    );
    let missing = json!({"script": {"loadfile": "/nowhere/client.txt"}});
    let told = format!("{:?}", agent("describe", &request(place.path(), missing, json!({}))));
    assert!(told.contains("workload.script.loadfile: /nowhere/client.txt: No such file"), "{told}");
    let unknown = json!({"script": {"synthetic": {"lines": 5}}});
    let told = format!("{:?}", agent("describe", &request(place.path(), unknown, json!({}))));
    assert!(told.contains("workload.script.synthetic") && told.contains("unknown field"), "{told}");
}
