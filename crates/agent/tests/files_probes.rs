//! Every probe beside a load on files, each counts what the load says that it did. Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::must;

/// Loads files on a disk, where there is one: files in memory have no requests. Gives the summary, and the stacks that were sampled.
fn loaded(probes: Value) -> (Value, String) {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let (tree, out) = (place.path().join("tree"), place.path().join("out"));
    std::fs::create_dir(&tree).unwrap();
    std::fs::create_dir(&out).unwrap();
    let mix = json!([
        {"operation": "read", "weight": 40, "bytes": 4096},
        {"operation": "write", "weight": 4, "bytes": 4096},
        {"operation": "append", "weight": 1, "bytes": 512, "sync": "fsync"}
    ]);
    let workload = json!({"name": "files", "seed": 5, "count": 8, "file_bytes": 1 << 20, "mix": mix});
    let mut request = json!({"target": {"kind": "files", "folder": tree}, "workload": workload});
    must("populate", &request);
    let mut probes = probes;
    if let Some(page_cache) = probes.get_mut("page_cache") {
        page_cache["scratch"] = json!(tree);
    }
    let more = json!({"clients": 2, "out": out, "stop": {"seconds": 2}, "probes": probes});
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
    let calls = &probes["syscalls"]["call_totals"]["other"];
    assert_eq!((&calls["pread"]["count"], &calls["pwrite"]["count"]), (&json!(reads), &json!(writes + appends)));
    assert_eq!(probes["sync"]["sync_totals"]["other"]["fsync"]["count"], appends);
    assert_eq!(probes["page_cache"]["totals"]["other"]["read_calls"], reads);
    let places = probes["file_waits"]["places"].as_array().unwrap();
    let slept: u64 = places.iter().map(|place| place["count"].as_u64().unwrap()).sum();
    assert!(slept >= appends, "each waits at least once");
    // On a machine whose files are on no disk of its own there is none.
    if probes["block"]["status"] == "on" {
        let disks = probes["block"]["request_totals"].as_object().unwrap();
        let written: u64 = disks.values().filter_map(|disk| disk["other"]["write"]["bytes"].as_u64()).sum();
        assert!(written >= 512 * appends, "{disks:?}");
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
