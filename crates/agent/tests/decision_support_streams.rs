//! The power and the throughput test of decision_support through the agent: all work is done in its order and recorded, what the
//! refresh functions left is looked at, plans are written, and each piece of work has its breakdown.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use support::streams::{
    Holder, QUERIES, column, counts, entries, json_of, loaded, must_agree, must_be_in_order, numbers, request, texts,
    wait_for,
};
use support::{Agent, Server, agent, failed_checks, must};
use tempfile::tempdir;

#[test]
fn a_power_test_is_done_in_its_order_and_accounted_for() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let more = json!({"test": "power", "timeout_seconds": 600, "out": out, "sample": {"interval_ms": 20}});
    let summary = must("streams", &request(&server, more));
    assert_eq!((counts(&summary), &summary["ended_by"]), ([24, 24, 0, 0, 0], &json!("transactions")), "{summary}");
    assert_eq!(summary, {
        let mut written = json_of(&out.join("summary.json"));
        written["event"] = json!("summary");
        written
    });
    must_agree(out, &summary);

    let entries = entries(out);
    assert_eq!((entries.len(), texts(&entries, "name")[0], texts(&entries, "name")[23]), (24, "RF1", "RF2"));
    assert!(entries.iter().all(|entry| entry["stream"] == 0 && entry["status"] == "done"), "{entries:?}");
    must_be_in_order(&entries, &[0]);
    let whole = json_of(&out.join("queries.json"));
    assert_eq!((&whole["began_ns"], &whole["ended_ns"]), (&entries[0]["began_ns"], &entries[23]["ended_ns"]));
    assert!(summary["started_ns"].as_i64() <= whole["began_ns"].as_i64());
    assert_eq!((&whole["test"], &whole["streams"], &whole["explained"]), (&json!("power"), &json!(1), &json!(false)));
    for (entry, function) in [(&entries[0], "RF1"), (&entries[23], "RF2")] {
        let orders = entry["orders"].as_u64().unwrap();
        assert_eq!((entry["set"].as_u64(), orders, &entry["bytes"]), (Some(1), 15, &Value::Null), "{entry}");
        assert_eq!(entry["rows"].as_u64().unwrap(), orders + entry["lines"].as_u64().unwrap(), "{entry}");
        // Of an inserted set everything is there, of a deleted one nothing.
        let [orders, lines] =
            if function == "RF1" { [json!(orders), entry["lines"].clone()] } else { [json!(0), json!(0)] };
        assert_eq!(entry["verified"], json!({"orders": orders, "lines": lines, "prices_wrong": 0, "ok": true}));
        let sql = format!("SELECT taken FROM plimsoll.refresh_sets WHERE function = '{function}'");
        assert_eq!(server.sql(&sql), "1");
    }
    let one = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap();
    assert_eq!((one("Q1")["rows"].as_u64(), one("Q6")["rows"].as_u64()), (Some(4), Some(1)));
    // A message has 5 bytes before its row, and the row 2 before its values.
    let bytes_and_rows = |entry: &Value| (entry["bytes"].as_u64().unwrap(), entry["rows"].as_u64().unwrap());
    assert!(entries[1..23].iter().map(bytes_and_rows).all(|(bytes, rows)| bytes >= 7 * rows));

    assert_eq!(summary["verification"], json!({"checked": 2, "wrong": 0, "examples": []}));
    assert!(entries[1..23].iter().all(|entry| entry.get("verified").is_none()));

    // The limit of time is set and lifted beside the work.
    let of_work: i64 = column(out, "requests").iter().sum();
    assert_eq!(summary["requests_sent"].as_i64(), Some(of_work + 2));
    assert!(summary["health"]["samples"].as_u64().unwrap() >= 2, "{}", summary["health"]);
    assert!(Table::read(&out.join("server.npy")).unwrap().column("xact_commit").unwrap().len() >= 2);
    assert_eq!(failed_checks(&must("check", &request(&server, json!({"segments": []})))), [""; 0]);
}

#[test]
fn a_throughput_test_runs_its_streams_at_once_and_takes_new_sets_each_time() {
    let Some(server) = loaded() else { return };
    for round in 0..2 {
        let folder = tempdir().unwrap();
        let out = folder.path();
        let more = json!({"test": "throughput", "streams": 2, "out": out});
        // Each session comes to this table, and waits there for the others.
        let holder = Holder::new(&server, "orders IN ACCESS EXCLUSIVE");
        let test = Agent::start("streams", &request(&server, more));
        wait_for(&server, 3, "wait_event_type = 'Lock' AND backend_type = 'client backend'");
        holder.release(&server);
        let said = test.end();
        assert_eq!((said.code, counts(said.result())), (Some(0), [48, 48, 0, 0, 0]), "{said:?}");
        must_agree(out, said.result());
        let entries = entries(out);
        must_be_in_order(&entries, &[1, 2]);
        let refreshing = &entries[2 * QUERIES..];
        assert_eq!(texts(refreshing, "name"), ["RF1", "RF2", "RF1", "RF2"]);
        assert!(refreshing.iter().all(|entry| entry["stream"].is_null() && entry["connection"] == 2));
        let first = 2 * round + 1;
        assert_eq!(numbers(refreshing, "set"), [first, first, first + 1, first + 1]);
        assert!(refreshing.iter().all(|entry| entry["verified"]["ok"] == true), "{refreshing:?}");
        assert_eq!(said.result()["verification"]["checked"], 4);
        // So each began before any of the others had ended.
        let sessions = entries.chunk_by(|one, next| one["connection"] == next["connection"]);
        let spans: Vec<(i64, i64)> = sessions
            .map(|session| (numbers(session, "began_ns")[0], *numbers(session, "ended_ns").last().unwrap()))
            .collect();
        assert_eq!(spans.len(), 3);
        let (last_begun, first_ended) = (spans.iter().map(|span| span.0).max(), spans.iter().map(|span| span.1).min());
        assert!(last_begun < first_ended, "{spans:?}");
        let whole = json_of(&out.join("queries.json"));
        assert_eq!(whole["began_ns"].as_i64(), spans.iter().map(|span| span.0).min());
        assert_eq!(whole["ended_ns"].as_i64(), spans.iter().map(|span| span.1).max());
        assert_eq!(failed_checks(&must("check", &request(&server, json!({"segments": []})))), [""; 0]);
    }
    let folder = tempdir().unwrap();
    let more = json!({"test": "throughput", "streams": 3, "refresh": false, "out": folder.path()});
    assert_eq!(counts(&must("streams", &request(&server, more))), [66, 66, 0, 0, 0]);
    assert_eq!(server.sql("SELECT string_agg(taken::text, ' ') FROM plimsoll.refresh_sets"), "4 4");
}

#[test]
fn a_price_that_a_refresh_function_leaves_wrong_is_found_at_once() {
    let Some(server) = loaded() else { return };
    server.sql(
        "CREATE FUNCTION plimsoll.cheap() RETURNS trigger LANGUAGE plpgsql \
         AS $$ BEGIN NEW.o_totalprice := 1; RETURN NEW; END $$; \
         CREATE TRIGGER cheap BEFORE INSERT ON plimsoll.orders FOR EACH ROW EXECUTE FUNCTION plimsoll.cheap()",
    );
    let folder = tempdir().unwrap();
    let out = folder.path();
    let summary = must("streams", &request(&server, json!({"test": "power", "out": out})));
    assert_eq!(counts(&summary), [24, 24, 0, 0, 0], "it was done, and wrong");
    let entries = entries(out);
    let of = |entry: &Value| (entry["verified"]["prices_wrong"].clone(), entry["verified"]["ok"].clone());
    assert_eq!([of(&entries[0]), of(&entries[23])], [(json!(15), json!(false)), (json!(0), json!(true))]);
    let verification = &summary["verification"];
    assert_eq!([&verification["checked"], &verification["wrong"]], [2, 1], "{verification}");
    let message = verification["examples"][0]["message"].as_str().unwrap();
    assert!(message.contains("RF1 of set 1") && message.contains("15 have a wrong price"), "{message}");
}

#[test]
fn plans_are_written_and_are_no_results() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let more = json!({"test": "throughput", "streams": 2, "refresh": false, "explain": true, "out": out});
    let summary = must("streams", &request(&server, more));
    must_agree(out, &summary);
    assert_eq!(
        (&summary["facts"]["explain"], &json_of(&out.join("queries.json"))["explained"]),
        (&json!(true), &json!(true))
    );
    let entries = entries(out);
    assert_eq!(entries.len(), 2 * QUERIES);
    for entry in entries {
        assert_eq!((&entry["rows"], &entry["bytes"]), (&Value::Null, &Value::Null), "{entry}");
        let name = format!("plans/{}-{}.json", entry["stream"], entry["name"].as_str().unwrap());
        assert_eq!(entry["plan"], name);
        let plan = json_of(&out.join(name));
        assert!(plan[0]["Execution Time"].as_f64().unwrap() > 0.0, "{plan}");
        assert!(plan[0]["Plan"]["Shared Hit Blocks"].is_u64(), "{plan}");
    }
    assert_eq!(std::fs::read_dir(out.join("plans")).unwrap().count(), 2 * QUERIES);
}

/// Each piece of work is one row of the breakdown: a query is a request, a refresh function a transaction of several.
#[cfg(feature = "bpf")]
#[test]
fn each_piece_of_work_has_its_breakdown() {
    let Some(server) = loaded() else { return };
    let folder = tempdir().unwrap();
    let out = folder.path();
    let probes = json!({"breakdown": {"data_directory": server.data()}});
    let more = json!({"test": "throughput", "streams": 2, "timeout_seconds": 600, "out": out, "probes": probes});
    let summary = must("streams", &request(&server, more));
    assert_eq!(counts(&summary), [48, 48, 0, 0, 0], "{summary}");
    let probe = &summary["probes"]["breakdown"];
    assert_eq!(probe["status"], "on", "{probe}");
    let of = |name: &str| -> Vec<i64> {
        let values = Table::read(&out.join("breakdown.npy")).unwrap().column(name).unwrap();
        values.into_iter().map(|value| i64::try_from(value).unwrap()).collect()
    };
    let (pids, arrived, requests) = (of("backend_pid"), of("arrived_ns"), of("requests"));
    let (backends, starts, ends) = (column(out, "backend_pid"), column(out, "start_ns"), column(out, "end_ns"));
    let sent = column(out, "requests");
    // A row may begin with the answer before it (a request that the backend never waited for), so they are paired in their order.
    let mut rows: Vec<usize> = (0..pids.len()).filter(|row| backends.contains(&pids[*row])).collect();
    let mut works: Vec<usize> = (0..backends.len()).collect();
    rows.sort_by_key(|row| (pids[*row], arrived[*row]));
    works.sort_by_key(|work| (backends[*work], starts[*work]));
    assert_eq!(rows.len(), works.len());
    for (row, work) in rows.into_iter().zip(works) {
        assert_eq!((pids[row], requests[row]), (backends[work], sent[work]), "work {work}");
        assert!(arrived[row] <= ends[work], "work {work}");
    }
    let of_streams: i64 = (0..pids.len()).filter(|row| backends.contains(&pids[*row])).map(|row| requests[row]).sum();
    assert_eq!(summary["requests_sent"].as_i64(), Some(of_streams));
}

#[test]
fn wrong_requests_name_the_field() {
    let Some(server) = Server::start() else { return };
    let folder = tempdir().unwrap();
    for (more, field) in [
        (json!({"test": "load"}), "test"),
        (json!({"test": "power", "streams": 2}), "streams"),
        (json!({"test": "throughput"}), "streams"),
        (json!({"test": "throughput", "streams": 0}), "streams"),
        (json!({"test": "throughput", "streams": 1_000}), "streams"),
        (json!({"test": "power", "timeout_seconds": 0}), "timeout_seconds"),
        (json!({"test": "power", "timeout": 1}), "timeout"),
        (json!({"test": "power", "out": folder.path().join("none")}), "out"),
        (json!({"test": "power", "sample": {"interval_ms": 1}}), "sample.interval_ms"),
        (json!({"test": "power", "workload": {"name": "bank", "scale": 1, "seed": 1}}), "workload.name"),
    ] {
        let mut all = request(&server, json!({"out": folder.path()}));
        more.as_object().unwrap().iter().for_each(|(name, value)| all[name] = value.clone());
        let refused = agent("streams", &all);
        assert_eq!((refused.code, refused.errors.contains(field)), (Some(2), true), "{more}: {refused:?}");
    }
    let absent = agent("streams", &request(&server, json!({"test": "power", "out": folder.path()})));
    assert_eq!((absent.code, absent.errors.contains("populate it first")), (Some(3), true), "{absent:?}");
    assert!(!folder.path().join("transactions.npy").exists(), "bad input starts nothing");
}
