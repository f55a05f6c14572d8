//! order_entry through the agent: runs leave the conditions intact, users key and think, and what was acknowledged survives a
//! kill of the server.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::{Agent, Server, agent, failed_checks, must};
use tempfile::{TempDir, tempdir};

fn request(server: &Server, workload: Value, more: Value) -> Value {
    let mut request = json!({
        "target": server.target(),
        "workload": {"name": "order_entry", "warehouses": 2, "seed": 3},
    });
    for (into, from) in [("workload", &workload), ("", &more)] {
        let object = if into.is_empty() { &mut request } else { &mut request[into] };
        from.as_object().unwrap().iter().for_each(|(name, value)| object[name] = value.clone());
    }
    request
}

/// The segments of a trial, each in a folder of its own.
struct Segments<'a> {
    server: &'a Server,
    folder: TempDir,
    summaries: Vec<Value>,
}

impl<'a> Segments<'a> {
    fn new(server: &'a Server) -> Self {
        Self { server, folder: tempdir().unwrap(), summaries: Vec::new() }
    }

    fn out(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(number.to_string())
    }

    fn next(&self, workload: Value, clients: u32, more: Value) -> Value {
        let out = self.out(self.summaries.len());
        std::fs::create_dir(&out).unwrap();
        let first_index = self.summaries.last().map_or(json!(0), |summary| summary["next_index"].clone());
        let mut request = request(self.server, workload, more);
        for (name, value) in
            [("clients", json!(clients)), ("first_index", first_index), ("out", json!(out)), ("retries_max", json!(20))]
        {
            request[name] = value;
        }
        request
    }

    /// Runs a segment to its end: nothing may fail.
    fn run(&mut self, workload: Value, clients: u32, stop: Value) -> &Value {
        let request = self.next(workload, clients, json!({"stop": stop}));
        let summary = must("load", &request);
        let identity = &summary["identity"];
        assert!(identity["done"].as_i64().unwrap() > 100, "{identity}");
        assert_eq!(identity["done"], identity["planned"], "{identity} {}", summary["errors"]);
        assert_eq!(summary["verification"]["wrong"], 0, "{}", summary["verification"]);
        self.summaries.push(summary);
        self.summaries.last().unwrap()
    }

    /// Kills the server under load, and lets it recover. `standing_still` is one of its processes that does so for the last
    /// of the transactions.
    fn kill_under(&mut self, workload: Value, clients: u32, standing_still: Option<&str>) {
        let mut load = Agent::start("load", &self.next(workload, clients, json!({})));
        let mut until = |count: i64| while load.line()["done"].as_i64().unwrap() < count {};
        until(500);
        if let Some(name) = standing_still {
            self.server.stop(name);
            until(1500);
        }
        self.server.kill();
        let said = load.end();
        assert_eq!(said.code, Some(3), "{said:?}");
        let path = self.out(self.summaries.len()).join("summary.json");
        let summary: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let counts = ["done", "failed", "skipped", "lost"].map(|name| summary["identity"][name].as_i64().unwrap());
        assert_eq!(summary["identity"]["planned"], counts.iter().sum::<i64>());
        assert!(counts[1] + counts[3] > 0, "each client had one under way: {counts:?}");
        self.summaries.push(summary);
        self.server.go();
    }

    fn check(&self) -> Value {
        let paths: Vec<_> = (0..self.summaries.len()).map(|number| self.out(number).join("summary.json")).collect();
        must("check", &request(self.server, json!({}), json!({"segments": paths})))
    }

    fn total(&self, name: &str) -> i64 {
        self.summaries.iter().map(|summary| summary["totals"][name].as_i64().unwrap()).sum()
    }
}

#[test]
fn runs_leave_the_conditions_intact() {
    let Some(server) = Server::start() else { return };
    must("populate", &request(&server, json!({}), json!({})));
    let mut segments = Segments::new(&server);
    segments.run(json!({}), 8, json!({"seconds": 3.0}));
    segments.run(json!({}), 32, json!({"seconds": 3.0}));
    segments.run(json!({"statements": "functions"}), 8, json!({"seconds": 2.0}));
    segments.run(json!({"isolation": "repeatable read"}), 4, json!({"seconds": 2.0}));
    let checked = segments.check();
    assert_eq!(failed_checks(&checked), Vec::<&str>::new());
    assert!(checked.get("ledger").is_none());
    let share = |part: &str, whole: i64| segments.total(part) as f64 / whole as f64;
    let drawn = segments.total("new_order_done") + segments.total("new_order_rolled_back");
    // Several thousands: wider than the specification's ranges, which are for two hours.
    assert!((9.7..10.3).contains(&share("order_lines_drawn", drawn)), "{drawn}");
    assert!((0.004..0.017).contains(&share("new_order_rolled_back", drawn)), "{drawn}");
    assert!((0.12..0.18).contains(&share("payment_remote", segments.total("payment_done"))));
    assert!((0.56..0.64).contains(&share("payment_by_name", segments.total("payment_done"))));
    let kinds = |name: &str| {
        segments.summaries.iter().map(|summary| summary["by_kind"][name]["done"].as_f64().unwrap()).sum::<f64>()
    };
    assert!((kinds("payment") / kinds("new_order") - 1.0).abs() < 0.05);
    users_key_and_think(&mut segments);
    assert_eq!(failed_checks(&segments.check()), Vec::<&str>::new());
}

/// Rows of transactions.npy: connection, kind, planned and end, in the order of each connection.
fn rows(folder: &Path) -> Vec<(i128, i128, i128, i128)> {
    let table = plimsoll_record::Table::read(&folder.join("transactions.npy")).unwrap();
    let column = |name: &str| table.column(name).unwrap();
    let (connections, kinds) = (column("connection"), column("kind"));
    let (planned, ends) = (column("planned_ns"), column("end_ns"));
    let mut rows: Vec<_> =
        (0..table.len()).map(|row| (connections[row], planned[row], kinds[row], ends[row])).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(connection, planned, kind, end)| (connection, kind, planned, end)).collect()
}

fn users_key_and_think(segments: &mut Segments<'_>) {
    const DELIVERY: i128 = 3;
    const SCALE: f64 = 0.01;
    const KEYING_S: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
    const THINKING_S: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
    let folder = segments.out(segments.summaries.len());
    let summary =
        segments.run(json!({"keying_and_think": true, "time_scale": SCALE}), 20, json!({"transactions": 700}));
    assert_eq!(summary["facts"]["pacing"], json!({"keying_and_think": true, "time_scale": SCALE}));
    assert_eq!(summary["facts"]["delivery"], "deferred");
    let rows = rows(&folder);
    let (mut count, mut sum, mut overlapped) = (0.0, 0.0, 0);
    for pair in rows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let ((_, last, planned, end), (_, next, next_planned, _)) = (pair[0], pair[1]);
        // The user of a Delivery goes on from when it was handed in.
        let since = if last == DELIVERY { planned } else { end };
        overlapped += i32::from(last == DELIVERY);
        let thought_s = (next_planned - since) as f64 / 1e9 / SCALE - KEYING_S[next as usize];
        let mean_s = THINKING_S[last as usize];
        assert!((-1e-6..=10.0 * mean_s + 1e-6).contains(&thought_s), "{thought_s} s after kind {last}");
        (count, sum) = (count + 1.0, sum + thought_s / mean_s);
    }
    assert!(count > 400.0 && overlapped > 5, "{count} pauses, {overlapped} after Deliveries");
    // The standard deviation of the mean of an exponential distribution is 1 / sqrt(n).
    assert!((sum / count - 1.0).abs() < 4.0 / f64::sqrt(count), "{sum} in {count}");
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    // The log has room to stay in memory, and is not written for pages that make room for others.
    let settings = "fsync = on\nshared_buffers = 512MB\nwal_buffers = 64MB";
    let Some(server) = Server::start_with(settings) else { return };
    must("populate", &request(&server, json!({}), json!({})));
    let mut segments = Segments::new(&server);
    nothing_is_lost_by_kills(&mut segments, 2);

    // Commits that do not wait for their log are acknowledged before they last: the ledger finds that out. Left alone, the
    // writer of the log is behind by less than a page.
    server.sql("ALTER ROLE tester SET synchronous_commit = off");
    segments.kill_under(json!({"ledger": true}), 8, Some("walwriter"));
    let checked = segments.check();
    let failed = failed_checks(&checked);
    for name in ["ledger: acknowledged New-Orders that are lost", "ledger: acknowledged Payments that are lost"] {
        assert!(failed.contains(&name), "{failed:?}");
    }
    assert!(!failed.iter().any(|name| name.contains("condition") || name.contains("twice")), "{failed:?}");
    let lost = checked["ledger"]["lost"].as_array().unwrap();
    assert!(lost.len() > 10, "{}", lost.len());
    let first_index = segments.summaries[2]["first_index"].as_i64().unwrap();
    assert!(lost.iter().all(|one| one["index"].as_i64().unwrap() >= first_index), "only of the last segment");
    let order = lost.iter().find(|one| one["kind"] == "new_order").unwrap();
    let sql = format!(
        "SELECT count(*) FROM plimsoll.orders WHERE o_w_id = {} AND o_d_id = {} AND o_id = {}",
        order["warehouse"], order["district"], order["order"]
    );
    assert_eq!(server.sql(&sql), "0");
    numbers_given_again_are_other_orders(&mut segments);
}

/// Kills the server so often, then finds all that was acknowledged.
fn nothing_is_lost_by_kills(segments: &mut Segments<'_>, kills: usize) {
    for (clients, statements) in [(8, "client"), (16, "functions")].into_iter().cycle().take(kills) {
        segments.kill_under(json!({"ledger": true, "statements": statements}), clients, None);
    }
    let checked = segments.check();
    assert_eq!(failed_checks(&checked), Vec::<&str>::new());
    let ledger = &checked["ledger"];
    println!("{kills} kills: {ledger}");
    let fate = |kind: &str, what: &str| ledger[kind][what].as_i64().unwrap();
    assert_eq!(fate("new_orders", "acknowledged"), segments.total("new_order_done"));
    assert_eq!(fate("payments", "acknowledged"), segments.total("payment_done"));
    assert_eq!([fate("new_orders", "lost"), fate("payments", "lost")], [0, 0]);
    assert_eq!(ledger["lost"], json!([]));
}

#[test]
#[ignore = "a minute or two"]
fn what_was_acknowledged_survives_ten_kills() {
    let Some(server) = Server::start_with("fsync = on\nshared_buffers = 512MB\nwal_buffers = 64MB") else { return };
    must("populate", &request(&server, json!({}), json!({})));
    nothing_is_lost_by_kills(&mut Segments::new(&server), 10);
}

/// After a loss the server gives the numbers of lost orders again; the ledger tells them apart.
fn numbers_given_again_are_other_orders(segments: &mut Segments<'_>) {
    segments.server.sql("ALTER ROLE tester RESET synchronous_commit");
    let lost = segments.check()["ledger"]["new_orders"]["lost"].clone();
    segments.run(json!({"ledger": true}), 8, json!({"seconds": 3.0}));
    let ledger = segments.check()["ledger"].clone();
    assert_eq!((&ledger["new_orders"]["lost"], &ledger["new_orders"]["twice"]), (&lost, &json!(0)));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let out = tempdir().unwrap();
    let base = json!({
        "target": {"host": "/nowhere", "port": 1, "user": "u", "dbname": "d"},
        "clients": 1,
        "out": out.path(),
    });
    for (workload, schedule, field) in [
        (json!({"keying_and_think": true}), json!({"kind": "poisson", "rate": 5.0}), "schedule.kind"),
        (json!({"mix": {"new_orders": 1}}), json!({"kind": "closed"}), "workload.mix"),
        (json!({"warehouses": 0}), json!({"kind": "closed"}), "workload.warehouses"),
    ] {
        let mut request = base.clone();
        request["workload"] = json!({"name": "order_entry", "warehouses": 1, "seed": 1});
        workload.as_object().unwrap().iter().for_each(|(name, value)| request["workload"][name] = value.clone());
        request["schedule"] = schedule;
        let said = agent("load", &request);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.errors.contains(field), "{said:?}");
    }
}
