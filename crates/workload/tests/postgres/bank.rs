//! The bank against a private PostgreSQL and its pgbench: the same tables, each other's databases, the check.

use crate::server::Server;
use crate::support::bank;
use plimsoll_record::{Check, Outcome, Summary};
use plimsoll_session::SessionReport;
use plimsoll_target::postgres::{Client, Mode, Protocol, literal};
use plimsoll_workload::{Bank, DataSet, drop_data, populate};
use std::collections::BTreeMap;
use std::sync::Arc;

const PLAIN: (Protocol, u32) = (Protocol { mode: Mode::Prepared, describe: false }, 0);

/// Everything that the catalogue says of the tables in `schema`, without the schema's name.
fn catalogue(client: &mut Client, schema: &str) -> Vec<String> {
    let name = literal(schema);
    let sql = format!(
        "SELECT relname, relkind, relpersistence, reloptions::text, pg_get_expr(relpartbound, c.oid), \
         (SELECT pg_get_partkeydef(c.oid) WHERE relkind = 'p'), \
         (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull || atthasdef || ' ' || attnum, ', ' \
          ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0), \
         (SELECT string_agg(pg_get_indexdef(indexrelid), '; ' ORDER BY indexrelid::regclass::text) FROM pg_index \
          WHERE indrelid = c.oid), \
         (SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint \
          WHERE conrelid = c.oid) \
         FROM pg_class c WHERE relnamespace = {name}::regnamespace AND relkind IN ('r', 'p') ORDER BY relname"
    );
    let text = |row: Vec<Option<String>>| {
        row.into_iter().map(|value| value.unwrap_or_default()).collect::<Vec<_>>().join(" | ")
    };
    let rows = client.rows(&sql).unwrap().into_iter().map(text);
    rows.map(|row| row.replace(&format!("{schema}."), "")).collect()
}

/// A fingerprint of each table's rows.
fn contents(client: &mut Client, schema: &str) -> Vec<String> {
    let of = |table: &str| {
        let sql = format!(
            "SELECT count(*) || ' ' || coalesce(md5(string_agg(t::text, '/' ORDER BY t::text)), '') FROM {schema}.{table} t"
        );
        client.rows(&sql).unwrap()[0][0].clone().unwrap()
    };
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"].map(of).to_vec()
}

#[test]
fn tables_are_those_of_pgbench() {
    let Some(server) = Server::start("") else { return };
    let mut client = server.client("public");
    for (more, options) in [
        ("", &[][..]),
        (r#", "fillfactor": 70"#, &["-F", "70"]),
        (r#", "unlogged": true"#, &["--unlogged-tables"]),
        (r#", "partitions": 3"#, &["--partitions=3"]),
        (
            r#", "partitions": 4, "partition_method": "hash", "fillfactor": 90"#,
            &["--partitions=4", "--partition-method=hash", "-F", "90"],
        ),
    ] {
        client.run("CREATE SCHEMA theirs").unwrap();
        server.pgbench("-c search_path=theirs", &[&["-i", "-q", "-s", "1"], options].concat());
        let bank = bank(more);
        server.populate(&bank, "ours");
        let (theirs, ours) = (catalogue(&mut client, "theirs"), catalogue(&mut client, "ours"));
        assert_eq!(theirs, ours, "{more}");
        assert_eq!(contents(&mut client, "theirs"), contents(&mut client, "ours"), "{more}");
        bank.recognise(&mut client, "ours").unwrap();
        bank.recognise(&mut client, "theirs").unwrap();
        let bytes = client.integers("SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = 'ours'::regnamespace AND relkind = 'r'").unwrap()[0];
        let estimated = bank.estimated_bytes() as i64;
        // Two backends that fill one hash partition meet at its end: the one that had to wait adds 20 pages at once
        // (RelationAddExtraBlocks), and the last such addition may stay empty.
        let met = if more.contains("hash") { 4 * 20 * 8192 } else { 0 };
        let (less, excess) = (estimated - bytes, bytes - estimated - met);
        assert!(less.max(excess) * 50 < bytes, "{more}: {bytes} bytes, {estimated} estimated");
        assert!(drop_data(&bank, &mut client, "ours").unwrap());
        client.run("DROP SCHEMA theirs CASCADE").unwrap();
        assert_eq!(
            client.integers("SELECT count(*) FROM pg_namespace WHERE nspname IN ('ours', 'theirs')").unwrap(),
            [0]
        );
    }
}

fn segment(report: &SessionReport) -> Summary {
    let totals: BTreeMap<String, i64> =
        report.totals.iter().map(|(name, total)| ((*name).to_owned(), *total)).collect();
    let mut summary: Summary = serde_json::from_value(serde_json::json!({
        "format": 1, "workload": "bank", "kinds": [], "first_index": 0, "next_index": 0, "started_ns": 0, "ended_ns": 0,
        "epoch_minus_monotonic_ns": 0, "ended_by": "told",
        "identity": {"planned": 0, "done": 0, "failed": 0, "skipped": 0, "lost": 0}, "by_kind": {}, "errors": [],
        "health": {
            "cpu_user_ns": 0, "cpu_system_ns": 0, "threads": 1, "lag_ns": {"p50": 0, "p99": 0, "max": 0},
            "records_dropped": 0, "samples": 0, "sample_late_ns_max": 0, "cpus_allowed": [], "connections_lost": 0
        },
        "verification": {"checked": 0, "wrong": 0, "examples": []}, "totals": {}, "backend_pids": [], "devices": []
    }))
    .unwrap();
    summary.totals = totals;
    summary
}

fn failing(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.ok).map(|check| check.name.as_str()).collect()
}

#[test]
fn each_works_on_the_others_database() {
    let Some(server) = Server::start("") else { return };
    server.populate(&bank(""), "public");
    for options in [&["-S"][..], &["-N", "-M", "extended"], &["-M", "prepared"]] {
        server.pgbench("", &[&["-n", "-c", "2", "-t", "20"], options].concat());
    }
    server.pgbench("", &["-i", "-q", "-s", "1"]);
    let mut client = server.client("public");
    let mut segments = Vec::new();
    let mut first_index = 0;
    for transaction in ["tpcb_like", "simple_update", "select_only"] {
        for mode in [Mode::Prepared, Mode::Extended, Mode::Simple] {
            for describe in [false, true] {
                let bank = Arc::new(bank(&format!(r#", "transaction": "{transaction}", "keys": {{"zipf": 1.2}}"#)));
                let how = (Protocol { mode, describe }, 0);
                let (endings, report) = server.perform(&bank, "public", how, first_index..first_index + 30);
                first_index += 30;
                let statements = match transaction {
                    "tpcb_like" => 5,
                    "simple_update" => 3,
                    _ => 1,
                };
                for ending in endings {
                    let found = (ending.outcome, ending.statements, &ending.failure);
                    assert_eq!(found, (Outcome::Done, statements, &None), "{transaction} {mode:?}");
                }
                assert_eq!((report.verification.checked, report.verification.wrong), (30, 0));
                segments.push(segment(&report));
            }
        }
        let bank = bank("");
        assert_eq!(failing(&bank.check(&mut client, "public", &segments).unwrap()), [""; 0], "{transaction}");
    }
    assert_eq!(client.integers("SELECT count(*) FROM pgbench_history").unwrap(), [360]);
}

#[test]
fn the_check_says_what_is_wrong() {
    let Some(server) = Server::start("") else { return };
    let bank = Arc::new(bank(""));
    server.populate(bank.as_ref(), "plimsoll");
    let mut client = server.client("plimsoll");
    let (_, report) = server.perform(&bank, "plimsoll", PLAIN, 0..50);
    let segments = [segment(&report)];
    assert_eq!(bank.check(&mut client, "plimsoll", &segments).unwrap().len(), 11);
    for (sql, undo, wrong) in [
        (
            "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = (SELECT min(aid) FROM pgbench_history)",
            "UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = (SELECT min(aid) FROM pgbench_history)",
            vec![
                "pgbench_accounts: sum of abalance as in the history",
                "pgbench_accounts: balances that are not the history's",
            ],
        ),
        (
            "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 3",
            "UPDATE pgbench_tellers SET tbalance = tbalance - 1 WHERE tid = 3",
            vec![
                "pgbench_tellers: sum of tbalance",
                "pgbench_branches: sum of bbalance as of the tellers",
                "pgbench_tellers: balances that are not the history's",
            ],
        ),
    ] {
        client.run(sql).unwrap();
        assert_eq!(failing(&bank.check(&mut client, "plimsoll", &segments).unwrap()), wrong);
        client.run(undo).unwrap();
    }
    let forgotten = failing(&bank.check(&mut client, "plimsoll", &[]).unwrap()).join(", ");
    assert!(forgotten.starts_with("pgbench_history: rows inserted, pgbench_history: sum of delta"), "{forgotten}");
    // A lost transaction that did happen, and one that did not.
    let mut lost = segment(&report);
    for (name, change) in [("done", -1), ("lost", 2), ("delta_lost_negative", -10_000), ("delta_lost_positive", 10_000)]
    {
        *lost.totals.get_mut(&format!("tpcb_like_{name}")).unwrap() += change;
    }
    assert_eq!(failing(&bank.check(&mut client, "plimsoll", &[lost]).unwrap()), [""; 0]);
}

fn refusal(bank: &Bank, client: &mut Client, schema: &str) -> String {
    bank.recognise(client, schema).unwrap_err().to_string()
}

#[test]
fn other_data_is_refused_and_not_dropped() {
    let Some(server) = Server::start("") else { return };
    let (one, mut client) = (bank(""), server.client("public"));
    assert!(refusal(&one, &mut client, "public").contains("has no table pgbench_accounts"));
    assert!(refusal(&one, &mut client, "nowhere").contains("has no table"));
    server.pgbench("", &["-i", "-q", "-s", "1"]);
    one.recognise(&mut client, "public").unwrap();
    let two = Bank::new(&serde_json::from_str(r#"{"name": "bank", "scale": 2, "seed": 1}"#).unwrap()).unwrap();
    assert!(refusal(&two, &mut client, "public").contains("scale 1, not 2"));
    let refused = populate(&one, &server.address(), "public", 1, &|_| {}).unwrap_err().to_string();
    assert!(refused.contains("holds pgbench_accounts already"), "{refused}");
    let refused = drop_data(&one, &mut client, "public").unwrap_err().to_string();
    assert!(refused.contains("did not make"), "{refused}");
    client.run("DELETE FROM pgbench_tellers WHERE tid = 10").unwrap();
    assert!(refusal(&one, &mut client, "public").contains("9 tellers"));
    client.run("ALTER TABLE pgbench_history ADD COLUMN more integer").unwrap();
    assert!(refusal(&one, &mut client, "public").contains("pgbench_history (tid integer"));

    // Ours in a schema that was there: the tables go, the rest stays. In one of our own: all goes.
    client.run("CREATE SCHEMA shared; CREATE TABLE shared.theirs ()").unwrap();
    for schema in ["shared", "own"] {
        server.populate(&one, schema);
        let partitioned = refusal(&bank(r#", "partitions": 2"#), &mut client, schema);
        assert!(partitioned.contains("and not bank"), "{partitioned}");
        assert!(drop_data(&one, &mut client, schema).unwrap());
        assert!(!drop_data(&one, &mut client, schema).unwrap());
    }
    let left = "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('shared', 'own'))";
    assert_eq!(client.rows(left).unwrap(), [[Some("theirs".to_owned())]]);
}

#[test]
fn conflicts_are_tried_again_until_they_succeed() {
    let Some(server) = Server::start("default_transaction_isolation = 'repeatable read'") else { return };
    let bank = Arc::new(bank(""));
    server.populate(bank.as_ref(), "plimsoll");
    let how = (PLAIN.0, 1000);
    // All of them update the same branch.
    let reports: Vec<_> = std::thread::scope(|scope| {
        let run = |first: u64| server.perform(&bank, "plimsoll", how, first..first + 100);
        let threads: Vec<_> = (0..4).map(|place| scope.spawn(move || run(100 * place))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(reports.iter().all(|(endings, _)| endings.iter().all(|ending| ending.outcome == Outcome::Done)));
    let retries: u32 = reports.iter().flat_map(|(endings, _)| endings).map(|ending| ending.retries).sum();
    assert!(retries > 0, "four connections and one branch");
    let segments: Vec<Summary> = reports.iter().map(|(_, report)| segment(report)).collect();
    let checks = bank.check(&mut server.client("plimsoll"), "plimsoll", &segments).unwrap();
    assert_eq!(failing(&checks), [""; 0], "{checks:?}");
}
