//! `watch` of a target of kind `files`: a folder, and this program, which uses it. Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use support::{Agent, agent};

const WRITES: u64 = 53;
const SYNCS: u64 = 11;
const BYTES: usize = 512;

fn use_files(folder: &Path) {
    let file = File::options().read(true).write(true).open(folder.join("file")).unwrap();
    for number in 0..WRITES {
        file.write_all_at(&[7; BYTES], number * BYTES as u64).unwrap();
    }
    for _ in 0..SYNCS {
        file.sync_all().unwrap();
    }
}

#[test]
fn what_a_process_does_to_a_folder_is_counted_in_one_class() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // What would be the log of PostgreSQL is a folder like any other here.
    std::fs::create_dir(folder.path().join("pg_wal")).unwrap();
    std::fs::write(folder.path().join("file"), "some bytes").unwrap();
    let target = json!({"kind": "files", "folder": folder.path(), "pid": std::process::id()});
    let probes = json!({"sync": {}, "syscalls": {"counted": "all"}, "page_cache": {"scratch": folder.path()}});
    let mut watch = Agent::start("watch", &json!({"out": out.path(), "target": target, "probes": probes}));
    let watching = watch.line_of("watching");
    for name in ["sync", "syscalls", "page_cache"] {
        assert_eq!(watching["probes"][name]["status"], "on", "{watching}");
    }

    use_files(folder.path());
    for _ in 0..13 {
        assert!(!folder.path().join("pg_wal/none").exists());
    }
    watch.tell("stop");
    let said = watch.end();

    assert_eq!(said.code, Some(0), "{said:?}");
    let probes = &said.result()["probes"];
    let calls = &probes["syscalls"]["call_totals"]["other"];
    assert_eq!((&calls["pwrite"]["count"], &calls["fsync"]["count"]), (&json!(WRITES), &json!(SYNCS)), "{calls}");
    assert_eq!(calls["pwrite"]["returned_bytes"], json!(WRITES * BYTES as u64));
    assert_eq!((&calls["stat"]["count"], &calls["stat"]["errors"]), (&json!(13), &json!(13)), "{calls}");
    assert_eq!(probes["syscalls"]["call_totals"].get("wal"), None);
    assert_eq!(probes["sync"]["sync_totals"]["other"]["fsync"]["count"], json!(SYNCS));
    assert_eq!(probes["page_cache"]["totals"]["wal"]["write_pages"], json!(0));
}

#[test]
fn a_folder_is_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let target = json!({"kind": "files", "folder": folder.path()});
    let workload = json!({"name": "bank", "scale": 1, "seed": 1});
    let load = json!({"target": target, "workload": workload, "clients": 1, "out": folder.path()});
    let said = agent("load", &load);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.errors.contains("bank needs a server: give target.kind"), "{said:?}");
    let watch = json!({"out": folder.path(), "target": target, "probes": {"breakdown": {}}});
    let said = agent("watch", &watch);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.errors.contains("probes.breakdown") && said.errors.contains("data_directory"), "{said:?}");
}
