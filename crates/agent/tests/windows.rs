//! A load in windows against a private PostgreSQL: lines, tables and series at the windows' edges.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::path::Path;
use support::{Agent, Said, Server, failed_checks, must};

fn bank(server: &Server, more: Value) -> Value {
    support::bank(server, "tpcb_like", more)
}

fn ready() -> Option<Server> {
    let server = Server::start()?;
    must("populate", &bank(&server, json!({})));
    Some(server)
}

/// An agent with a load in windows whose sessions are open.
fn started(server: &Server, out: &Path, more: Value) -> Agent {
    let mut request =
        bank(server, json!({"clients": 4, "threads": 2, "out": out, "windows": true, "first_index": 1_000}));
    more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
    let mut agent = Agent::start("load", &request);
    assert_eq!(agent.line()["event"], "ready");
    agent
}

/// Opens a window and gives its line; those before it tell of progress.
fn window(agent: &mut Agent, ms: u64, round: u32, position: u32) -> Value {
    agent.tell(&format!(r#"window {{"ms": {ms}, "round": {round}, "position": {position}}}"#));
    loop {
        let line = agent.line();
        if line["event"] != "progress" {
            assert_eq!((&line["event"], &line["round"]), (&json!("window"), &json!(round)), "{line}");
            return line;
        }
    }
}

fn stopped(mut agent: Agent) -> Said {
    agent.tell("stop");
    agent.end()
}

fn column(out: &Path, table: &str, name: &str) -> Vec<i64> {
    let table = Table::read(&out.join(table)).unwrap();
    table.column(name).unwrap().into_iter().map(|value| value as i64).collect()
}

fn counts(line: &Value) -> [i64; 5] {
    ["planned", "done", "failed", "skipped", "lost"].map(|name| line[name].as_i64().unwrap())
}

/// Rows, lines and series of the same windows.
fn agree(out: &Path, lines: &[Value]) {
    let of = |name| column(out, "windows.npy", name);
    for name in ["round", "position", "opened_ns", "closed_ns", "drained_ns"] {
        let said: Vec<i64> = lines.iter().map(|line| line[name].as_i64().unwrap()).collect();
        assert_eq!(of(name), said, "{name}");
    }
    let mut sum = [0; 5];
    let mut next_index = 1_000;
    for (row, line) in lines.iter().enumerate() {
        assert_eq!(of("first_index")[row], next_index);
        next_index = of("next_index")[row];
        let outcomes = ["done", "failed", "skipped", "lost"].map(|name| of(name)[row]);
        assert_eq!(outcomes.iter().sum::<i64>(), next_index - of("first_index")[row], "every one is accounted for");
        sum[0] += next_index - of("first_index")[row];
        outcomes.iter().zip(&mut sum[1..]).for_each(|(count, sum)| *sum += count);
        assert_eq!(counts(line), sum, "lines are cumulative");
    }
    let (opened, drained) = (of("opened_ns"), of("drained_ns"));
    for (table, a_sample) in [("host.npy", 1), ("server.npy", 1)] {
        let times = column(out, table, "t_ns");
        assert_eq!(times.len(), 2 * a_sample * lines.len(), "{table}: two samples a window");
        for (pair, (opened, drained)) in times.chunks(2).zip(opened.iter().zip(&drained)) {
            assert!(pair[0] <= *opened && *drained <= pair[1], "{table}");
        }
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[test]
fn windows_are_told_of_and_recorded() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = started(&server, out.path(), json!({}));
    let lines: Vec<Value> = (1..=6).map(|round| window(&mut agent, 200, round, 1 + round % 2)).collect();
    agree(out.path(), &lines);
    assert!(lines.iter().all(|line| line["blks_hit"].is_i64()), "the newest figures: {:?}", lines[0]);
    let said = stopped(agent);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = said.result();
    assert_eq!((&summary["ended_by"], &summary["windows"]["count"]), (&json!("told"), &json!(6)));
    assert_eq!(summary["windows"]["open_ns"], 6 * 200_000_000_i64);
    assert_eq!(counts(&summary["identity"]), counts(&lines[5]), "nothing came after the last");
    agree(out.path(), &lines);
    assert!(said.lines.iter().filter(|line| line["event"] == "window").count() == 6);

    let of = |name| column(out.path(), "transactions.npy", name);
    let (opened, drained) =
        (column(out.path(), "windows.npy", "opened_ns"), column(out.path(), "windows.npy", "drained_ns"));
    for (start, end) in of("start_ns").into_iter().zip(of("end_ns")) {
        let mut within = opened.iter().zip(&drained).filter(|(opened, drained)| **opened <= start && end <= **drained);
        assert!(within.next().is_some(), "a transaction outside of every window");
    }
    let mut request = bank(&server, json!({}));
    request["segments"] = json!([out.path().join("summary.json")]);
    assert_eq!(failed_checks(&must("check", &request)), [""; 0]);
}

#[test]
fn an_open_loops_plan_stands_between_windows() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let schedule = json!({"kind": "poisson", "rate": 400, "seed": 5});
    let more = json!({"schedule": schedule, "stop": {"seconds": 0.75}, "clients": 8});
    let mut agent = started(&server, out.path(), more);
    let mut lines: Vec<Value> = (1..=3).map(|round| window(&mut agent, 200, round, 1)).collect();
    // The last is cut short by the end of the segment's time, and told of before the summary.
    lines.push(window(&mut agent, 200, 4, 1));
    let said = agent.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = said.result();
    let schedule: plimsoll_schedule::Schedule = serde_json::from_value(schedule).unwrap();
    let mut plan = schedule.open(1_000).unwrap();
    assert_eq!(summary["identity"]["planned"], plan.planned_within(750_000_000));
    assert_eq!(
        (&summary["identity"]["done"], &summary["ended_by"]),
        (&summary["identity"]["planned"], &json!("seconds"))
    );
    agree(out.path(), &lines);
    let of = |name| column(out.path(), "windows.npy", name);
    let (opened, closed) = (of("opened_ns"), of("closed_ns"));
    let lengths: Vec<i64> = opened.iter().zip(&closed).map(|(opened, closed)| closed - opened).collect();
    assert_eq!(lengths, [200, 200, 200, 150].map(|ms| ms * 1_000_000));
    let planned = column(out.path(), "transactions.npy", "planned_ns");
    for (index, planned) in column(out.path(), "transactions.npy", "index").into_iter().zip(planned) {
        let due_ns = plan.due_ns(index as u64);
        let window = (due_ns / 200_000_000) as usize;
        assert_eq!(planned, opened[window] + due_ns % 200_000_000, "index {index}");
    }
}

#[test]
fn a_segment_ends_within_a_window_and_with_its_front() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = started(&server, out.path(), json!({}));
    let before = window(&mut agent, 100, 1, 1);
    agent.tell(r#"window {"ms": 60000, "round": 2, "position": 1}"#);
    assert_eq!(agent.line()["event"], "progress", "a line a second while it is open");
    agent.close_input();
    let said = agent.end();
    assert_eq!((said.code, &said.result()["ended_by"]), (Some(4), &json!("input_closed")), "{said:?}");
    let cut = said.lines.iter().rfind(|line| line["event"] == "window").unwrap().clone();
    assert!(cut["closed_ns"].as_i64().unwrap() - cut["opened_ns"].as_i64().unwrap() < 30_000_000_000);
    assert_eq!(counts(&cut), counts(&said.result()["identity"]));
    agree(out.path(), &[before, cut]);
}

#[test]
fn a_server_that_stands_still_is_waited_for_and_then_told_of() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = started(&server, out.path(), json!({}));
    let before = window(&mut agent, 100, 1, 1);
    agent.tell(r#"window {"ms": 3000, "round": 2, "position": 1}"#);
    assert_eq!(agent.line()["event"], "progress", "it is open");
    let stood = server.stand_still(std::time::Duration::from_secs(4));
    let mut line = agent.line();
    let mut told = 0;
    while line["event"] == "progress" {
        told += 1;
        line = agent.line();
    }
    let ns = |name: &str| line[name].as_i64().unwrap();
    assert!(ns("drained_ns") - ns("closed_ns") > 1_000_000_000, "{stood:?}: {line}");
    assert!(told >= 3, "what hangs is seen");
    let after = window(&mut agent, 100, 3, 1);
    let said = stopped(agent);
    assert_eq!(said.code, Some(0), "{said:?}");
    agree(out.path(), &[before, line, after]);
}

#[test]
fn a_line_that_cannot_be_followed_ends_the_segment() {
    let Some(server) = ready() else { return };
    for lines in [
        &[r#"window {"ms": 0, "round": 1, "position": 1}"#][..],
        &[r#"window {"ms": 500, "round": 1, "position": 1}"#; 2],
    ] {
        let out = tempfile::tempdir().unwrap();
        let mut agent = started(&server, out.path(), json!({}));
        lines.iter().for_each(|line| agent.tell(line));
        let said = agent.end();
        assert_eq!((said.code, &said.result()["ended_by"]), (Some(2), &json!("misunderstood")), "{said:?}");
        assert!(said.errors.contains("window"), "{said:?}");
        let rows = column(out.path(), "windows.npy", "done").len();
        assert_eq!(rows, said.lines.iter().filter(|line| line["event"] == "window").count());
    }
}

#[test]
fn a_killed_agent_leaves_the_windows_that_it_has_told_of() {
    let Some(server) = ready() else { return };
    let out = tempfile::tempdir().unwrap();
    let mut agent = started(&server, out.path(), json!({}));
    let lines: Vec<Value> = (1..=3).map(|round| window(&mut agent, 50, round, 1)).collect();
    agent.tell(r#"window {"ms": 60000, "round": 4, "position": 1}"#);
    assert_eq!(agent.line()["event"], "progress");
    let pid = rustix::process::Pid::from_raw(agent.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(agent.end().code, None);
    let told: Vec<i64> = lines.iter().map(|line| line["drained_ns"].as_i64().unwrap()).collect();
    assert_eq!(column(out.path(), "windows.npy", "drained_ns"), told);
    assert_eq!(column(out.path(), "host.npy", "t_ns").len(), 7, "and the opening of the fourth");
}
