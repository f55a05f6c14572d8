//! The data of order_entry on a private PostgreSQL: it does not hang on how it was loaded, and each condition is broken by what
//! breaks it.

use crate::server::Server;
use plimsoll_target::postgres::Client;
use plimsoll_workload::order_entry::OrderEntry;
use plimsoll_workload::{DataSet, populate};
use std::collections::BTreeSet;

const ORDER_ENTRY: &str = r#"{"name": "order_entry", "warehouses": 1, "seed": 5}"#;
const FRESH: &[plimsoll_record::Summary] = &[];

fn order_entry() -> OrderEntry {
    OrderEntry::new(&serde_json::from_str(ORDER_ENTRY).unwrap()).unwrap()
}

/// A number for each table that hangs on its rows and not on their order.
fn sums(data: &OrderEntry, client: &mut Client) -> Vec<(String, String)> {
    let sum = |table: String| {
        let sql = format!("SELECT count(*) || ' ' || sum(hashtextextended(t::text, 0)::numeric) FROM {table} t");
        let found = client.rows(&sql).unwrap().remove(0).remove(0).unwrap();
        (table, found)
    };
    data.rows().into_keys().map(sum).collect()
}

/// Names of the checks that fail, up to the colon; and what was found.
fn failing(data: &OrderEntry, client: &mut Client) -> BTreeSet<(String, String)> {
    let checks = data.check(client, "one", FRESH).unwrap();
    let name = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    checks.into_iter().filter(|check| !check.ok).map(|check| (name(&check.name), check.found)).collect()
}

#[test]
fn data_does_not_hang_on_how_it_was_loaded_and_what_breaks_a_condition_is_found() {
    let Some(server) = Server::start("") else { return };
    let data = order_entry();
    // Over four connections the large tables are filled by ranges.
    let loaded: Vec<_> = [("one", 1), ("three", 3), ("four", 4)]
        .into_iter()
        .map(|(schema, parallel)| {
            let loaded = populate(&data, &server.address(), schema, parallel, &|_| {}).unwrap();
            (loaded, sums(&data, &mut server.client(schema)))
        })
        .collect();
    assert_eq!(loaded[0].1, loaded[1].1);
    assert_eq!(loaded[0].1, loaded[2].1);
    for (loaded, sums) in &loaded {
        assert_eq!(loaded.tables, data.rows());
        let counts = sums.iter().map(|(table, sum)| (table.clone(), sum.split(' ').next().unwrap().parse().unwrap()));
        assert_eq!(loaded.tables, counts.collect());
    }
    let estimate = data.estimated_bytes();
    let bytes = loaded[0].0.bytes();
    assert!(bytes.abs_diff(estimate) * 100 < 3 * estimate, "{estimate} and not {bytes}");
    let mut client = server.client("one");
    assert_eq!(failing(&data, &mut client), BTreeSet::new());
    breaks_are_found(&data, &mut client);
}

/// What is done to the data, what undoes it, and the checks that must fail then.
type Break = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const BREAKS: &[Break] = &[
    (
        "UPDATE warehouse SET w_ytd = w_ytd + 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1",
        &[("condition 1", "1"), ("condition 8", "1")],
    ),
    (
        "UPDATE district SET d_next_o_id = 3002 WHERE d_id = 3",
        "UPDATE district SET d_next_o_id = 3001 WHERE d_id = 3",
        &[("condition 2", "1"), ("district", "1")],
    ),
    // The newest undelivered order is not the newest order.
    (
        "CREATE TABLE gone AS SELECT * FROM new_order WHERE no_o_id = 3000; DELETE FROM new_order WHERE no_o_id = 3000",
        "INSERT INTO new_order SELECT * FROM gone; DROP TABLE gone",
        &[("condition 2", "10"), ("condition 5", "10"), ("condition 11", "10"), ("new_order", "10")],
    ),
    (
        "CREATE TABLE gone AS SELECT * FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500; \
         DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500",
        "INSERT INTO new_order SELECT * FROM gone; DROP TABLE gone",
        &[("condition 3", "1"), ("condition 5", "1"), ("condition 11", "1"), ("new_order", "1")],
    ),
    // An empty queue is no breach of conditions 2 and 3.
    (
        "CREATE TABLE gone AS SELECT * FROM new_order WHERE no_d_id = 10; DELETE FROM new_order WHERE no_d_id = 10",
        "INSERT INTO new_order SELECT * FROM gone; DROP TABLE gone",
        &[("condition 5", "900"), ("condition 11", "1"), ("new_order", "900")],
    ),
    (
        "CREATE TABLE gone AS SELECT * FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 5; \
         DELETE FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 5",
        "INSERT INTO order_line SELECT * FROM gone; DROP TABLE gone",
        &[("condition 4", "1"), ("condition 6", "1"), ("order_line", "-1")],
    ),
    (
        "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 2 AND o_id = 2999",
        "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 2 AND o_id = 2999",
        &[("condition 5", "1"), ("condition 7", "LINES")],
    ),
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 1 THEN 1 ELSE -1 END WHERE o_d_id = 9 AND o_id IN (1, 2)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - CASE o_id WHEN 1 THEN 1 ELSE -1 END WHERE o_d_id = 9 AND o_id IN (1, 2)",
        &[("condition 6", "2")],
    ),
    (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = '2020-01-01' WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        &[("condition 7", "1")],
    ),
    (
        "UPDATE history SET h_amount = 11 WHERE h_c_d_id = 6 AND h_c_id = 77",
        "UPDATE history SET h_amount = 10 WHERE h_c_d_id = 6 AND h_c_id = 77",
        &[("condition 8", "1"), ("condition 9", "1"), ("condition 10", "1"), ("history", "100")],
    ),
    (
        "UPDATE district SET d_ytd = d_ytd + CASE d_id WHEN 1 THEN 1 ELSE -1 END WHERE d_id < 3",
        "UPDATE district SET d_ytd = d_ytd - CASE d_id WHEN 1 THEN 1 ELSE -1 END WHERE d_id < 3",
        &[("condition 9", "2")],
    ),
    (
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id < 4",
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id < 4",
        &[("condition 10", "3")],
    ),
    (
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 0.01 WHERE c_d_id = 1 AND c_id = 1",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 0.01 WHERE c_d_id = 1 AND c_id = 1",
        &[("condition 12", "1")],
    ),
    ("UPDATE stock SET s_ytd = 7 WHERE s_i_id = 99", "UPDATE stock SET s_ytd = 0 WHERE s_i_id = 99", &[("stock", "7")]),
];

fn breaks_are_found(data: &OrderEntry, client: &mut Client) {
    let lines = client.integers("SELECT o_ol_cnt FROM orders WHERE o_d_id = 2 AND o_id = 2999").unwrap()[0].to_string();
    let mut conditions = BTreeSet::new();
    for (breaks, mends, expected) in BREAKS {
        client.run(breaks).unwrap();
        let found = |found: &str| if found == "LINES" { lines.clone() } else { found.to_owned() };
        let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), found(value)));
        let failing = failing(data, client);
        assert_eq!(failing, expected.collect(), "{breaks}");
        conditions.extend(failing.into_iter().map(|(name, _)| name).filter(|name| name.starts_with("condition")));
        client.run(mends).unwrap();
    }
    assert_eq!(conditions, (1..=12).map(|number| format!("condition {number}")).collect());
    assert_eq!(failing(data, client), BTreeSet::new());
}
