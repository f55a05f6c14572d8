//! Open loops and retries of connections against a private PostgreSQL with pgbench's tables.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use rustix::process::Pid;
use serde_json::{Value, json};
use std::path::Path;
use support::{Agent, Server, failed_checks, must};

fn bank(server: &Server, more: Value) -> Value {
    support::bank(server, "select_only", more)
}

fn ready() -> Option<Server> {
    let server = Server::start()?;
    must("populate", &bank(&server, json!({})));
    Some(server)
}

fn column(out: &Path, table: &str, name: &str) -> Vec<i128> {
    Table::read(&out.join(table)).unwrap().column(name).unwrap()
}

fn backends(server: &Server) -> Vec<Pid> {
    let pids = server.sql(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'plimsoll' AND datname = 'postgres' ORDER BY pid",
    );
    pids.lines().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
}

#[test]
fn a_plan_is_kept_in_every_mode() {
    let Some(server) = ready() else { return };
    for (mode, describe) in [("prepared", false), ("prepared", true), ("extended", true), ("simple", false)] {
        let out = tempfile::tempdir().unwrap();
        let schedule = json!({"kind": "poisson", "rate": 400, "seed": 5});
        let more = json!({
            "clients": 8, "threads": 2, "out": out.path(), "schedule": schedule, "stop": {"seconds": 1.5},
            "mode": mode, "describe": describe, "first_index": 1_000
        });
        let summary = must("load", &bank(&server, more));
        let schedule: plimsoll_schedule::Schedule = serde_json::from_value(schedule).unwrap();
        let planned = schedule.open(1_000).unwrap().planned_within(1_500_000_000);
        assert_eq!(summary["identity"]["planned"], planned, "{summary}");
        assert_eq!(summary["identity"]["done"], planned, "{mode}: {summary}");
        assert_eq!((&summary["mode"], &summary["describe"]), (&json!(mode), &json!(describe)));
        assert_eq!(
            summary["rows"],
            json!({"recorded": planned, "all_below_index": 1_000 + planned, "sample_one_in": 1})
        );
        assert_eq!(summary["schedule"]["seed"], 5);
        assert!((summary["planned_rate"].as_f64().unwrap() - 400.0).abs() < 1e-6);
        // Little work may all be counted as the kernel's.
        let cpu_ns = |name: &str| summary["health"][name].as_i64().unwrap();
        assert!(cpu_ns("load_cpu_user_ns") + cpu_ns("load_cpu_system_ns") > 0);
        let sum = |table: &str| column(out.path(), table, "count").iter().sum::<i128>();
        assert_eq!((sum("latency_seconds.npy"), sum("lag_seconds.npy")), (i128::from(planned), i128::from(planned)));
    }
}

#[test]
fn connections_are_opened_again_and_every_transaction_accounted_for() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let more = json!({
        "clients": 4, "threads": 2, "out": out.path(), "schedule": {"kind": "constant", "rate": 1_000},
        "stop": {"seconds": 3}, "reconnect": true, "rows_max": 100, "sample_one_in": 10,
        "workload": {"name": "bank", "scale": 1, "seed": 3}
    });
    let mut agent = Agent::start("load", &bank(&server, more));
    assert_eq!(agent.line()["event"], "progress");
    for pid in backends(&server) {
        server.sql(&format!("SELECT pg_terminate_backend({})", pid.as_raw_nonzero()));
    }
    let said = agent.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = said.result();
    assert_eq!((&summary["reconnects"], &summary["health"]["connections_lost"]), (&json!(4), &json!(4)));
    assert_eq!(summary["identity"]["planned"], 3_000);
    assert_eq!(summary["backend_pids"].as_array().unwrap().len(), 8);
    assert!(summary["identity"]["done"].as_u64().unwrap() > 2_900, "{summary}");
    assert_eq!((&summary["rows"]["all_below_index"], &summary["rows"]["sample_one_in"]), (&json!(100), &json!(10)));
    let rows = column(out.path(), "transactions.npy", "index").len() as u64;
    assert!(summary["rows"]["recorded"] == rows && (300..500).contains(&rows), "{summary}");
    let mut request = bank(&server, json!({"workload": {"name": "bank", "scale": 1, "seed": 3}}));
    request["segments"] = json!([out.path().join("summary.json")]);
    assert_eq!(failed_checks(&must("check", &request)), [""; 0]);
}

#[test]
fn too_many_connections_are_refused_in_the_servers_words() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let said = support::agent("load", &bank(&server, json!({"clients": 500, "out": out.path()})));
    assert_eq!((said.code, said.errors.contains("too many clients")), (Some(3), true), "{said:?}");
}
