//! `watch` with `machine_speed`: its series and its report, as any agent writes them; it needs neither root nor a server.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::json;
use std::time::{Duration, Instant};
use support::Agent;

const COLUMNS: [&str; 6] = ["t_ns", "cpu", "beats", "multiply_ns", "add_ns", "memory_ns"];

#[test]
fn every_sample_has_a_row_for_each_cpu_of_what_it_has_done_so_far() {
    let out = tempfile::tempdir().unwrap();
    let request = json!({"out": out.path(), "interval_ms": 100, "probes": {"machine_speed": {"every_ms": 50}}});
    let begun = Instant::now();
    let mut watch = Agent::start("watch", &request);
    let told = watch.line_of("watching");
    let cpus = told["probes"]["machine_speed"]["cpus"].as_array().unwrap().clone();
    assert!(!cpus.is_empty(), "{told}");
    std::thread::sleep(Duration::from_secs(2));
    watch.tell("stop");
    let said = watch.end();
    let most = begun.elapsed().as_millis() / 50 + 1;

    assert_eq!(said.code, Some(0), "{said:?}");
    let report = &said.result()["probes"]["machine_speed"];
    assert_eq!((&report["status"], &report["every_ms"]), (&"on".into(), &50.into()));
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["ok"] == true), "{report}");
    let table = Table::read(&out.path().join("machine_speed.npy")).unwrap();
    let [t_ns, cpu, beats, multiply_ns, add_ns, memory_ns] = COLUMNS.map(|name| table.column(name).unwrap());
    let (samples, mut runs) = (said.result()["samples"].as_u64().unwrap() as usize, 0);
    assert_eq!(t_ns.len(), samples * cpus.len());
    for (place, number) in cpus.iter().enumerate() {
        let rows: Vec<usize> = (place..cpu.len()).step_by(cpus.len()).collect();
        assert!(rows.iter().all(|row| cpu[*row] == i128::from(number.as_i64().unwrap())));
        for column in [&t_ns, &beats, &multiply_ns, &add_ns, &memory_ns] {
            assert!(rows.is_sorted_by_key(|row| column[*row]), "{column:?}");
        }
        let (first, last) = (rows[0], rows[samples - 1]);
        assert!(beats[last] as u128 <= most, "{} beats, at most {most} were due", beats[last]);
        runs += beats[last] - beats[first];
    }
    let cost = &report["cost"];
    // Beats between the last sample and the report are in the report alone.
    assert!(i128::from(cost["programs"][0]["runs"].as_i64().unwrap()) >= runs, "{cost}");
    let work: i128 = [&multiply_ns, &add_ns, &memory_ns].iter().map(|column| column[column.len() - 1]).sum();
    assert!(work > 0, "{table:?}");
}
