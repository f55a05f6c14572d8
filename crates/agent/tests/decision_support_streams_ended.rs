//! Tests of decision_support that do not go well: what fails or takes too long ends alone, and a test that is cut short accounts for
//! the rest, whether it was told to stop or the server was killed in a refresh function.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::streams::{Holder, counts, entries, json_of, loaded, must_agree, queries_with, request, wait_for};
use support::{Agent, agent, failed_checks, must};
use tempfile::tempdir;

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
