//! Requests of probes, and a toy among them: added through the list alone, as a new one is.

#![allow(clippy::unwrap_used)]

use super::*;
use plimsoll_probe::Probe;
use plimsoll_record::{ProbeReport, ProbeStatus};
use serde::Serialize;
use serde_json::json;
use std::path::Path;

/// A probe that sees so much more at each sample.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToyRequest {
    step: i64,
}

struct Toy {
    step: i64,
    seen: i64,
}

#[derive(Serialize)]
struct ToyReport {
    #[serde(flatten)]
    status: ProbeStatus,
    seen: i64,
}

impl ProbeRequest for ToyRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(Ok(Box::new(Toy { step: self.step, seen: 0 })))
    }
}

impl Probe for Toy {
    fn columns(&self) -> Vec<&'static str> {
        vec!["seen"]
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.seen += self.step;
        row(&[self.seen]);
    }

    fn report(&mut self) -> Option<ProbeReport> {
        Some(ProbeReport::new(ToyReport { status: ProbeStatus::on("none"), seen: self.seen }))
    }
}

fn refused(probes: Value) -> String {
    let request: ProbesRequest = serde_json::from_value(probes).unwrap();
    request
        .validate_beside_load(&target(json!({"host": "/tmp", "port": 1, "user": "u", "dbname": "d"})))
        .unwrap_err()
        .to_string()
}

fn target(value: Value) -> Target {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_is_wrong_is_named_by_probe_and_field() {
    assert!(refused(json!({"nope": {}})).contains("probes.nope: no such probe; known: page_cache, buffer_heads"));
    let wrong = refused(json!({"breakdown": {"data_directory": "/tmp", "rows": "each"}}));
    assert!(wrong.starts_with("the request: probes.breakdown.rows: "), "{wrong}");
    let wrong = refused(json!({"sync": {"data_directory": "/tmp", "often": true}}));
    assert!(wrong.starts_with("the request: probes.sync.often: "), "{wrong}");
    let wrong = refused(json!({"machine_speed": {"every": 250}}));
    assert!(wrong.starts_with("the request: probes.machine_speed.every: unknown field"), "{wrong}");
    let wrong = refused(json!({"machine_speed": {"every_ms": 49}}));
    assert_eq!(wrong, "probes.machine_speed.every_ms: 49 is below 50");
    let wrong = refused(json!({"breakdown": {"data_directory": "/tmp", "live": true}}));
    assert_eq!(wrong, "probes.breakdown.live: only the verb watch has live lines");
}

#[test]
fn a_probe_is_told_what_to_watch_or_the_target_is() {
    assert!(refused(json!({"sync": {}})).starts_with("the request: probes.sync.data_directory: missing"));
    let files = target(json!({"kind": "files", "folder": "/tmp"}));
    let request = |probes: Value| serde_json::from_value::<ProbesRequest>(probes).unwrap();
    let probes = json!({"sync": {}, "block": {}, "syscalls": {}, "profile": {}, "nfs_calls": {}, "page_cache": {"scratch": "/tmp"}});
    assert!(request(probes.clone()).validate(Some(&files)).is_ok());
    assert!(request(probes).validate(None).is_err());
    let trees = |class: &str| json!({"nfs_calls": {"trees": [{"path": "/tmp", "class": class}]}});
    assert!(request(trees("data")).validate(None).is_ok());
    let error = request(trees("date")).validate(None).unwrap_err().to_string();
    assert!(error.contains("probes.nfs_calls.trees.class: \"date\" is not allowed"), "{error}");
    let error = request(json!({"breakdown": {}})).validate(Some(&files)).unwrap_err().to_string();
    assert!(error.contains("probes.breakdown") && error.contains("data_directory"), "{error}");
}

#[test]
fn what_is_null_is_not_asked_for_and_the_rest_is_in_the_order_of_the_list() {
    let probes = json!({"sync": {"data_directory": "/tmp"}, "profile": null, "throttle": {"path": "/tmp"}});
    let request: ProbesRequest = serde_json::from_value(probes).unwrap();
    let names: Vec<&str> = request.asked(&PROBES).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["throttle", "sync"]);
}

#[test]
fn a_probe_is_added_by_a_line_of_the_list() {
    let probes: [Listed; 2] = [PROBES[0], ("toy", read::<ToyRequest>)];
    let site = Site { out: Path::new("/tmp"), live: None, target: None };
    let request = |probes: Value| serde_json::from_value::<ProbesRequest>(probes).unwrap();
    let mut opened = request(json!({"toy": {"step": 5}})).open_of(&probes, &site).unwrap();
    let (name, toy) = opened.remove(0);
    let mut toy = toy.unwrap();
    let mut seen = Vec::new();
    (0..3).for_each(|_| toy.sample(&mut |row| seen.extend_from_slice(row)));
    assert_eq!((name, toy.columns(), seen), ("toy", vec!["seen"], vec![5, 10, 15]));
    let report = serde_json::to_value(toy.report().unwrap()).unwrap();
    assert_eq!((&report["status"], &report["seen"]), (&json!("on"), &json!(15)));
    let error = |probes_asked| request(probes_asked).open_of(&probes, &site).err().unwrap().to_string();
    assert_eq!(error(json!({"toi": {}})), "the request: probes.toi: no such probe; known: page_cache, toy");
    assert!(error(json!({"toy": {"step": "x"}})).starts_with("the request: probes.toy.step: "));
}
