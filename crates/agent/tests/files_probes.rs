//! Every probe beside a load on files, each counts what the load says that it did. Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::must;

/// Loads files on a disk, where there is one: files in memory have no requests. Gives the summary, and the stacks that were sampled.
fn loaded(probes: Value) -> (Value, String) {
    let mix = json!([
        {"operation": "read", "weight": 40, "bytes": 4096},
        {"operation": "write", "weight": 4, "bytes": 4096},
        {"operation": "append", "weight": 1, "bytes": 512, "sync": "fsync"}
    ]);
    loaded_by(json!({"name": "files", "count": 8, "file_bytes": 1 << 20, "mix": mix}), 2, probes)
}

/// The same of any workload.
fn loaded_by(mut workload: Value, clients: u32, probes: Value) -> (Value, String) {
    workload["seed"] = json!(5);
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let (tree, out) = (place.path().join("tree"), place.path().join("out"));
    std::fs::create_dir(&tree).unwrap();
    std::fs::create_dir(&out).unwrap();
    let mut request = json!({"target": {"kind": "files", "folder": tree}, "workload": workload});
    must("populate", &request);
    let mut probes = probes;
    if let Some(page_cache) = probes.get_mut("page_cache") {
        page_cache["scratch"] = json!(tree);
    }
    let more = json!({"clients": clients, "out": out, "stop": {"seconds": 2}, "probes": probes});
    more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
    let summary = must("load", &request);
    (summary, std::fs::read_to_string(out.join("profile.folded")).unwrap_or_default())
}

fn done(summary: &Value, kind: &str) -> u64 {
    summary["by_kind"][kind]["done"].as_u64().unwrap()
}

#[test]
fn every_probe_counts_what_the_load_did() {
    let asked = json!({"page_cache": {}, "syscalls": {"counted": "all"}, "sync": {}, "block": {}, "file_waits": {}});
    let (summary, _) = loaded(asked);
    let probes = &summary["probes"];
    for name in ["page_cache", "syscalls", "sync", "file_waits"] {
        assert_eq!(probes[name]["status"], "on", "{name}: {}", probes[name]);
    }
    let [reads, writes, appends] = ["read", "write", "append"].map(|kind| done(&summary, kind));
    let calls = &probes["syscalls"]["call_totals"]["data"];
    assert_eq!((&calls["pread"]["count"], &calls["pwrite"]["count"]), (&json!(reads), &json!(writes + appends)));
    assert_eq!(probes["sync"]["sync_totals"]["data"]["fsync"]["count"], appends);
    assert_eq!(probes["page_cache"]["totals"]["data"]["read_calls"], reads);
    let places = probes["file_waits"]["places"].as_array().unwrap();
    let slept: u64 = places.iter().map(|place| place["count"].as_u64().unwrap()).sum();
    assert!(slept >= appends, "each waits at least once");
    // On a machine whose files are on no disk of its own there is none.
    if probes["block"]["status"] == "on" {
        let disks = probes["block"]["request_totals"].as_object().unwrap();
        let written: u64 = disks.values().filter_map(|disk| disk["data"]["write"]["bytes"].as_u64()).sum();
        assert!(written >= 512 * appends, "{disks:?}");
    }
}

#[test]
fn files_are_of_the_class_that_they_are_to_their_load() {
    let probes = json!({"syscalls": {"counted": "all"}, "sync": {}, "page_cache": {}});
    let append = json!([{"operation": "append", "weight": 1, "bytes": 512, "sync": "fsync"}]);
    let log = json!({"name": "files", "count": 2, "file_bytes": 4096, "mix": append});
    let phase =
        json!({"name": "raw_storage", "phase": "write", "file_bytes": 1 << 20, "chunk_bytes": 8192, "fsync": true});
    let passes = json!({"name": "sequential_io", "pass": "write", "processes": 2, "stop": "all",
        "file_bytes": 1 << 20, "record_bytes": 8192, "include_fsync": true});
    let serving = json!({"name": "file_serving", "script": {"synthetic": {}}});
    for (workload, clients, class, kind) in [
        (log, 2, "wal", "append"),
        (phase, 1, "data", "write"),
        (passes, 2, "data", "write"),
        (serving, 2, "data", "WriteX"),
    ] {
        let (summary, _) = loaded_by(workload.clone(), clients, probes.clone());
        let probes = &summary["probes"];
        assert_eq!(probes["syscalls"]["status"], "on", "{}", probes["syscalls"]);
        let calls = &probes["syscalls"]["call_totals"];
        let written = |class: &str| -> u64 {
            ["write", "pwrite"].iter().filter_map(|call| calls[class][call]["count"].as_u64()).sum()
        };
        assert_eq!(written(class), done(&summary, kind), "{workload}: {calls}");
        assert_eq!(
            written("other"),
            0,
            "{workload}: what the load keeps beside its files it writes outside of the segment"
        );
        let synced = probes["sync"]["sync_totals"].as_object().unwrap();
        assert!(synced.keys().all(|of| of == class), "{workload}: {synced:?}");
    }
}

#[test]
fn a_profile_is_of_the_load_s_own_threads() {
    for _ in 0..5 {
        let (summary, folded) = loaded(json!({"profile": {"hz": 499}}));
        let profile = &summary["probes"]["profile"];
        if profile["status"] != "on" {
            // Its self-test counts samples of what it does, which a busy machine disturbs.
            assert!(profile["reason"].as_str().unwrap().starts_with("the self-test failed"), "{profile}");
            continue;
        }
        assert!(profile["profile"]["samples"]["taken"].as_u64().unwrap() > 100, "{profile}");
        assert!(folded.lines().all(|line| line.starts_with("load;")), "{folded}");
        assert!(folded.contains("pread") && folded.contains("_[k]"), "{folded}");
        return;
    }
    panic!("the probe was never on");
}
