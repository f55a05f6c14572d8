//! The verb plan: what another program runs is told whole, and what is wrong is refused by name.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{agent, must};

fn workload(scale_factor: f64) -> Value {
    json!({"name": "decision_support", "scale_factor": scale_factor, "seed": 11})
}

/// The numbers of a list of queries.
fn numbers(queries: &Value) -> Vec<u64> {
    queries.as_array().unwrap().iter().map(|query| query["query"].as_u64().unwrap()).collect()
}

#[test]
fn a_plan_has_every_stream_in_its_order() {
    let planned = must("plan", &json!({"workload": workload(0.1), "streams": [0, 2]}));
    assert_eq!(planned["event"], "plan");
    let streams = planned["streams"].as_array().unwrap();
    assert_eq!(streams.iter().map(|stream| stream["stream"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(numbers(&streams[0]["queries"])[..3], [14, 2, 9]);
    assert_eq!(numbers(&streams[1]["queries"])[..3], [6, 17, 14]);
    let second = &streams[1]["queries"][0];
    assert_eq!(second["title"], "Forecasting revenue change");
    let date = second["parameters"]["date"].as_str().unwrap();
    assert!(second["sql"].as_str().unwrap().contains(&format!("l_shipdate >= date '{date}'")), "{second}");
    // The same request has the same texts, in another process.
    assert_eq!(must("plan", &json!({"workload": workload(0.1), "streams": [2]}))["streams"][0], streams[1]);
}

#[test]
fn the_work_of_a_test_is_told_piece_by_piece() {
    let told = |work: Value| {
        let planned = must("plan", &json!({"workload": workload(0.1), "work": work}));
        planned["work"].as_array().unwrap().clone()
    };
    let work = told(json!({"test": "throughput", "streams": 2, "refresh": true}));
    assert_eq!(work.len(), 2 * 22 + 4);
    let streams = must("plan", &json!({"workload": workload(0.1), "streams": [1, 2]}))["streams"].clone();
    for (at, piece) in work[..44].iter().enumerate() {
        let query = &streams[at / 22]["queries"][at % 22];
        assert_eq!((&piece["sql"], &piece["title"]), (&query["sql"], &query["title"]));
        assert_eq!(piece["parameters"], query["parameters"]);
        let name = json!(format!("Q{}", query["query"]));
        assert_eq!((&piece["name"], &piece["index"], &piece["place"]), (&name, &json!(at), &json!(at % 22)));
        assert_eq!((&piece["stream"], &piece["connection"]), (&json!(at / 22 + 1), &json!(at / 22)));
        assert!(piece.get("function").is_none());
    }
    let last = json!({"index": 47, "stream": null, "connection": 2, "place": 3, "name": "RF2", "title": "Old sales",
        "parameters": {}, "function": "RF2"});
    assert_eq!(work[47], last);
    assert_eq!(told(json!({"test": "power", "refresh": false})).len(), 22);
}

#[test]
fn the_validation_has_answers_to_its_queries() {
    let planned = must("plan", &json!({"workload": workload(1.0), "validation": true}));
    assert_eq!(numbers(&planned["validation"]), (1..=22).collect::<Vec<_>>());
    assert_eq!(numbers(&planned["answers"]), (1..=22).collect::<Vec<_>>());
    assert_eq!(planned["answers"][5]["rows"], json!([["123141078.23"]]));
}

#[test]
fn wrong_requests_name_the_field() {
    let plan = |workload: Value, streams: Value| ("plan", json!({"workload": workload, "streams": streams}));
    let named = |more: Value| {
        let mut workload = workload(1.0);
        more.as_object().unwrap().iter().for_each(|(name, value)| workload[name] = value.clone());
        workload
    };
    for ((verb, request), field) in [
        (plan(json!({"name": "bank", "scale": 1, "seed": 1}), json!([0])), "workload.name"),
        (plan(named(json!({"scale_factor": 0.001})), json!([0])), "workload.scale_factor"),
        (plan(named(json!({"scale_factor": "1"})), json!([0])), "workload.scale_factor"),
        (plan(named(json!({"ranges": "qgen"})), json!([0])), "workload.ranges"),
        (plan(named(json!({"sed": 1})), json!([0])), "sed"),
        (plan(workload(1.0), json!([-1])), "streams"),
        (plan(workload(1.0), json!([2_000_000])), "streams"),
        (plan(workload(1.0), Value::Null), "streams"),
        (("plan", json!({"workload": workload(0.1), "validation": true})), "validation"),
        (("plan", json!({"workload": workload(1.0), "validation": true, "streams": [1]})), "streams"),
        (
            ("plan", json!({"workload": workload(1.0), "work": {"test": "power", "refresh": true}, "streams": [1]})),
            "streams",
        ),
        (("plan", json!({"workload": workload(1.0), "work": {"test": "throughput", "refresh": true}})), "streams"),
        (("plan", json!({"workload": workload(1.0), "work": {"test": "power", "refresh": true, "more": 1}})), "more"),
        (("plan", json!({"workload": workload(1.0), "work": {"test": "load", "refresh": true}})), "test"),
    ] {
        let said = agent(verb, &request);
        assert!(said.code == Some(2) && said.errors.contains(field), "{request}: {said:?}");
    }
}
