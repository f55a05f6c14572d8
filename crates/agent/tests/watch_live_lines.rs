//! What `watch` tells of a server while it goes on: what is in its lines is what is in the record, whoever reads them.
//! Needs root and the programs.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::live::{OPEN, Session, THINKS, column, stop, watch};
use support::{Agent, Server, must};

#[test]
fn short_transactions_are_counted_over_all_lines() {
    let Some(server) = Server::start() else { return };
    let bank = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": "tpcb_like"});
    must("populate", &json!({"target": server.target(), "workload": bank}));
    let (out, of_load) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut agent = watch(&server, out.path(), json!({}));
    agent.line_of("watching");
    let load = json!({"target": server.target(), "workload": bank, "clients": 8, "out": of_load.path(), "mode": "extended",
        "stop": {"transactions": 3_001}});
    let summary = must("load", &load);
    let lines = stop(agent);
    let of = |name| column(out.path(), "breakdown.npy", name);
    let pids = of("backend_pid");
    // A backend that ends its session is under way, too.
    let open = of("flags").into_iter().filter(|flags| flags & OPEN != 0).count();
    assert!(open < 9, "{open}");
    let mut rows: BTreeMap<i64, (u64, u64, i64)> = BTreeMap::new();
    let figures = of("flags").into_iter().zip(of("requests").into_iter().zip(of("cpu_ns")));
    for (pid, (flags, (requests, cpu_ns))) in pids.iter().zip(figures) {
        let sums = rows.entry(*pid).or_default();
        sums.0 += u64::from(flags & OPEN == 0);
        (sums.1, sums.2) = (sums.1 + requests as u64, sums.2 + cpu_ns);
    }
    let mut told: BTreeMap<i64, (u64, u64, i64)> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["event"] == "breakdown") {
        for process in line["processes"].as_array().unwrap().iter().filter(|process| process["what"].is_null()) {
            let of = |name: &str| process[name].as_u64().unwrap();
            let sums = told.entry(of("pid") as i64).or_default();
            sums.0 += of("transactions");
            sums.1 += of("requests");
            sums.2 += of("cpu_ns") as i64;
        }
    }
    for pid in summary["backend_pids"].as_array().unwrap().iter().filter_map(Value::as_i64) {
        let (lines, rows) = (told[&pid], rows[&pid]);
        assert_eq!((lines.0, lines.1), (rows.0, rows.1), "{pid}");
        // A line takes what a backend does just then for time on a CPU; if it turns out to have waited for one, and ends without as
        // much CPU time after it, so much too much was told: a few of the scheduler's slices where many compete.
        let too_much = lines.2 - rows.2;
        assert!((0..=rows.2 / 50 + 10_000_000).contains(&too_much), "{pid}: CPU time {} of {}", lines.2, rows.2);
    }
    let transactions = |sums: &BTreeMap<i64, (u64, u64, i64)>| sums.values().map(|sums| sums.0).sum::<u64>();
    assert_eq!(transactions(&told), transactions(&rows));
    assert!(transactions(&rows) > 3_001);
}

#[test]
fn a_server_that_ends_is_told_of_and_the_watch_goes_on() {
    let Some(server) = Server::start() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({}));
    let is_client =
        |line: &Value| line["processes"].as_array().unwrap().iter().any(|process| process["what"].is_null());
    // Whoever looked whether the server had started may still be leaving.
    let first = (0..20).map(|_| agent.line_of("breakdown")).find(|line| !is_client(line));
    assert!(first.unwrap()["server_ended"].is_null());
    server.crash();
    agent.line_of("breakdown");
    let after = agent.line_of("breakdown");
    assert_eq!((&after["server_ended"], &after["processes"]), (&json!(true), &json!([])));
    let lines = stop(agent);
    let said = &lines.last().unwrap()["probes"]["breakdown"]["server_ended_ns"];
    assert!(said.as_i64().is_some_and(|ended_ns| ended_ns <= after["t_ns"].as_i64().unwrap()), "{said}");
}

#[test]
fn within_a_budget_the_line_tells_how_much_was_watched() {
    let Some(server) = Server::start() else { return };
    let _thinker = Session::start(&server, "thinker", THINKS);
    let out = tempfile::tempdir().unwrap();
    let mut agent = watch(&server, out.path(), json!({"budget": 1e-7}));
    let lines: Vec<Value> = (0..8).map(|_| agent.line_of("breakdown")).collect();
    stop(agent);
    let of = |name: &str| lines.iter().map(|line| line[name].as_u64().unwrap()).collect::<Vec<_>>();
    let (lasted, watched) = (of("lasted_ns"), of("watched_ns"));
    assert!(lasted.iter().zip(&watched).all(|(lasted, watched)| watched <= lasted), "{lasted:?} {watched:?}");
    assert!(watched[2..].iter().sum::<u64>() < lasted[2..].iter().sum::<u64>() / 2, "{watched:?}");
}

#[test]
fn a_reader_that_is_slow_loses_nothing_but_lines() {
    let Some(server) = Server::start_with("max_connections = 220") else { return };
    let (out, of_load) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bank = json!({"name": "bank", "scale": 1, "seed": 3, "transaction": "select_only"});
    must("populate", &json!({"target": server.target(), "workload": bank}));
    let probes = json!({"breakdown": {"data_directory": server.data(), "live": true}});
    let mut agent = Agent::start("watch", &json!({"out": out.path(), "interval_ms": 10, "probes": probes}));
    agent.line_of("watching");
    // Nobody reads meanwhile, and a pipe holds some lines only.
    let load = json!({"target": server.target(), "workload": bank, "clients": 200, "out": of_load.path(),
        "stop": {"seconds": 3}, "schedule": {"kind": "constant", "rate": 2_000}});
    must("load", &load);
    let lines = stop(agent);
    let told: u64 = lines
        .iter()
        .filter_map(|line| line["processes"].as_array())
        .flatten()
        .map(|process| process["transactions"].as_u64().unwrap())
        .sum();
    let closed = column(out.path(), "breakdown.npy", "flags").into_iter().filter(|flags| flags & OPEN == 0).count();
    assert_eq!(told, closed as u64);
    let of = |name: &str| lines.iter().filter_map(|line| line[name].as_i64()).collect::<Vec<_>>();
    let made = of("lasted_ns").len();
    assert!(made < 290, "{made} lines of 300 that were due");
    let times: Vec<i64> =
        lines.iter().filter(|line| line["event"] == "breakdown").filter_map(|line| line["t_ns"].as_i64()).collect();
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.eq(of("lasted_ns").into_iter().skip(1)), "each line tells of all since the one before");
}
