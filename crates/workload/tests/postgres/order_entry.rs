//! order_entry against a private PostgreSQL: what each transaction does, compared with SQL by hand.

use crate::server::Server;
use plimsoll_record::Outcome;
use plimsoll_session::SessionReport;
use plimsoll_target::postgres::{Client, Mode, Protocol};
use plimsoll_workload::order_entry::OrderEntry;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const PLAIN: Protocol = Protocol { mode: Mode::Prepared, describe: false };
const TABLES: [&str; 8] =
    ["warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock"];

fn orders(more: &str) -> Arc<OrderEntry> {
    let text = format!(r#"{{"name": "order_entry", "warehouses": 2, "seed": 5{more}}}"#);
    Arc::new(OrderEntry::new(&serde_json::from_str(&text).unwrap()).unwrap())
}

/// Performs transactions `indexes`, which must all be done with right answers, and gives the totals.
fn perform(server: &Server, orders: &Arc<OrderEntry>, schema: &str, indexes: Range<u64>) -> BTreeMap<String, i64> {
    perform_by(server, orders, schema, PLAIN, indexes)
}

fn perform_by(
    server: &Server,
    orders: &Arc<OrderEntry>,
    schema: &str,
    protocol: Protocol,
    indexes: Range<u64>,
) -> BTreeMap<String, i64> {
    let (endings, SessionReport { verification, totals, .. }) = server.perform(orders, schema, (protocol, 0), indexes);
    for ending in endings {
        assert_eq!((ending.outcome, ending.failure), (Outcome::Done, None), "{protocol:?}");
    }
    assert!(verification.checked > 0 && verification.wrong == 0, "{verification:?}");
    totals.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Copies of the tables as they are now, in the schema `before`.
fn remember(client: &mut Client) {
    client.run("DROP SCHEMA IF EXISTS before CASCADE; CREATE SCHEMA before").unwrap();
    for table in TABLES {
        client.run(&format!("CREATE TABLE before.{table} AS SELECT * FROM {table}")).unwrap();
    }
}

/// How many rows `sql` gives; none is what a rule asks for.
fn breaking(client: &mut Client, sql: &str) -> i64 {
    client.integers(&format!("SELECT count(*) FROM ({sql}) q")).unwrap()[0]
}

fn must_hold(client: &mut Client, rules: &[(&str, &str)]) {
    for (rule, breaking_sql) in rules {
        assert_eq!(breaking(client, breaking_sql), 0, "{rule}");
    }
}

/// Rows of `table` that are not what they were.
fn changed(client: &mut Client, table: &str) -> i64 {
    breaking(client, &format!("SELECT * FROM {table} EXCEPT ALL SELECT * FROM before.{table}"))
}

#[test]
fn each_transaction_has_its_effects() {
    let Some(server) = Server::start("") else { return };
    server.populate(orders("").as_ref(), "plimsoll");
    let mut client = server.client("plimsoll");
    client.run("SET work_mem = '256MB'; SET enable_nestloop = off").unwrap();
    new_orders(&server, &mut client);
    payments(&server, &mut client);
    deliveries(&server, &mut client);
    reads(&server, &mut client);
    hand_cases(&mut client);
}

const NEW_ORDERS: &[(&str, &str)] = &[
    (
        "a district's next number grows by its new orders",
        "SELECT 1 FROM district d JOIN before.district b USING (d_w_id, d_id) WHERE d.d_next_o_id - b.d_next_o_id <> \
         (SELECT count(*) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id AND o_id >= b.d_next_o_id)",
    ),
    (
        "an order is of the home warehouse, new, without a carrier, and local if its lines are",
        "SELECT 1 FROM orders WHERE o_id > 3000 AND (o_w_id <> 1 OR o_carrier_id IS NOT NULL OR NOT \
         (o_w_id, o_d_id, o_id) IN (SELECT * FROM (SELECT no_w_id, no_d_id, no_o_id FROM new_order) n) OR o_all_local <> \
         (SELECT bool_and(ol_supply_w_id = 1)::integer FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id))",
    ),
    (
        "lines are numbered from 1 and as many as the order says",
        "SELECT 1 FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_id > 3000 \
         GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt HAVING count(*) <> o_ol_cnt OR min(ol_number) <> 1 OR max(ol_number) <> o_ol_cnt",
    ),
    (
        "a line costs its quantity, and has the words of the supplying stock for the district",
        "SELECT 1 FROM order_line JOIN item ON i_id = ol_i_id JOIN stock s ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id \
         WHERE ol_o_id > 3000 AND (ol_amount <> ol_quantity * i_price OR ol_delivery_d IS NOT NULL OR ol_quantity NOT BETWEEN 1 AND 10 \
         OR ol_dist_info <> to_jsonb(s) ->> ('s_dist_' || lpad(ol_d_id::text, 2, '0')))",
    ),
    (
        "a stock counts its lines",
        "SELECT 1 FROM stock s JOIN before.stock b USING (s_w_id, s_i_id) LEFT JOIN (SELECT ol_supply_w_id, ol_i_id, count(*) AS n, \
         sum(ol_quantity) AS q, count(*) FILTER (WHERE ol_supply_w_id <> ol_w_id) AS r FROM order_line WHERE ol_o_id > 3000 GROUP BY 1, 2) l \
         ON ol_supply_w_id = s_w_id AND ol_i_id = s_i_id WHERE (s.s_order_cnt - b.s_order_cnt, s.s_ytd - b.s_ytd, s.s_remote_cnt - b.s_remote_cnt) \
         <> (coalesce(n, 0), coalesce(q, 0), coalesce(r, 0))",
    ),
    (
        "a stock that gave once has what the rule leaves",
        "SELECT 1 FROM stock s JOIN before.stock b USING (s_w_id, s_i_id) JOIN (SELECT ol_supply_w_id, ol_i_id, min(ol_quantity) AS q \
         FROM order_line WHERE ol_o_id > 3000 GROUP BY 1, 2 HAVING count(*) = 1) l ON ol_supply_w_id = s_w_id AND ol_i_id = s_i_id \
         WHERE s.s_quantity <> CASE WHEN b.s_quantity - q >= 10 THEN b.s_quantity - q ELSE b.s_quantity - q + 91 END",
    ),
];

fn new_orders(server: &Server, client: &mut Client) {
    remember(client);
    let totals = perform(server, &orders(r#", "mix": {"new_order": 1}"#), "plimsoll", 0..400);
    let (done, rolled_back) = (totals["new_order_done"], totals["new_order_rolled_back"]);
    assert_eq!(done + rolled_back, 400);
    assert!((1..12).contains(&rolled_back), "one in a hundred, {rolled_back}");
    let found = client.integers("SELECT count(*), sum(o_ol_cnt) FROM orders WHERE o_id > 3000").unwrap();
    assert_eq!(found, [done, totals["order_lines_done"]], "rolled back ones leave nothing");
    assert!(totals["remote_lines_drawn"] > 0 && breaking(client, "SELECT 1 FROM stock WHERE s_remote_cnt > 0") > 0);
    must_hold(client, NEW_ORDERS);
    for table in ["warehouse", "customer", "history"] {
        assert_eq!(changed(client, table), 0, "{table}");
    }
}

const PAYMENTS: &[(&str, &str)] = &[
    (
        "a warehouse and a district get what is paid there",
        "SELECT 1 FROM district d JOIN before.district b USING (d_w_id, d_id) LEFT JOIN paid ON h_w_id = d_w_id AND h_d_id = d_id \
         GROUP BY d_w_id, d_id, d.d_ytd, b.d_ytd HAVING d.d_ytd - b.d_ytd <> coalesce(sum(h_amount), 0) \
         UNION ALL SELECT 1 FROM warehouse w JOIN before.warehouse b USING (w_id) WHERE w.w_ytd - b.w_ytd <> \
         (SELECT coalesce(sum(h_amount), 0) FROM paid WHERE h_w_id = w_id)",
    ),
    (
        "a customer pays what the history says, and as often",
        "SELECT 1 FROM customer c JOIN before.customer b USING (c_w_id, c_d_id, c_id) LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
         sum(h_amount) AS sum, count(*) AS n FROM paid GROUP BY 1, 2, 3) h ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id) WHERE \
         (b.c_balance - c.c_balance, c.c_ytd_payment - b.c_ytd_payment, c.c_payment_cnt - b.c_payment_cnt) \
         <> (coalesce(sum, 0), coalesce(sum, 0), coalesce(n, 0))",
    ),
    (
        "bad credit is written down, and no other",
        "SELECT 1 FROM customer c JOIN before.customer b USING (c_w_id, c_d_id, c_id) JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
         min(h_c_id || ' ' || h_c_d_id || ' ' || h_c_w_id || ' ' || h_d_id || ' ' || h_w_id || ' ' || h_amount || ' ') AS words FROM paid \
         GROUP BY 1, 2, 3 HAVING count(*) = 1) h ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id) WHERE \
         c.c_data <> CASE c.c_credit WHEN 'BC' THEN left(words || b.c_data, 500) ELSE b.c_data END",
    ),
    (
        "the history names warehouse and district",
        "SELECT 1 FROM paid JOIN warehouse ON w_id = h_w_id JOIN district ON d_w_id = h_w_id AND d_id = h_d_id \
         WHERE h_data <> w_name || '    ' || d_name OR h_amount NOT BETWEEN 1 AND 5000 OR h_w_id <> 1",
    ),
    (
        "who pays elsewhere is of another warehouse, who pays at home of the same district",
        "SELECT 1 FROM paid WHERE h_c_w_id = h_w_id AND h_c_d_id <> h_d_id",
    ),
];

fn payments(server: &Server, client: &mut Client) {
    remember(client);
    let totals = perform(server, &orders(r#", "mix": {"payment": 1}"#), "plimsoll", 1000..1600);
    client.run("CREATE TEMPORARY TABLE paid AS SELECT * FROM history EXCEPT ALL SELECT * FROM before.history").unwrap();
    let sql = "SELECT count(*), (100 * sum(h_amount))::bigint, count(*) FILTER (WHERE h_c_w_id <> 1) FROM paid";
    let found = client.integers(sql).unwrap();
    assert_eq!(found, [600, totals["payment_cents_done"], totals["payment_remote"]]);
    assert!(totals["payment_remote"] > 50 && totals["payment_by_name"] > 300, "{totals:?}");
    let written = "SELECT 1 FROM paid JOIN customer ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id) WHERE c_credit = 'BC'";
    assert!(breaking(client, written) > 20, "some have bad credit");
    must_hold(client, PAYMENTS);
    for table in ["orders", "new_order", "order_line", "stock"] {
        assert_eq!(changed(client, table), 0, "{table}");
    }
}

const DELIVERIES: &[(&str, &str)] = &[
    (
        "the oldest order of each district is delivered",
        "SELECT 1 FROM (SELECT no_w_id, no_d_id, min(no_o_id) AS oldest FROM before.new_order WHERE no_w_id = 1 GROUP BY 1, 2) b \
         WHERE (SELECT min(no_o_id) FROM new_order n WHERE n.no_w_id = b.no_w_id AND n.no_d_id = b.no_d_id) <> oldest + 3",
    ),
    (
        "its order has a carrier and its lines a time, and no others",
        "SELECT 1 FROM orders o JOIN before.orders b USING (o_w_id, o_d_id, o_id) JOIN order_line l ON (ol_w_id, ol_d_id, ol_o_id) = \
         (o_w_id, o_d_id, o_id) JOIN before.order_line k USING (ol_w_id, ol_d_id, ol_o_id, ol_number) WHERE \
         CASE WHEN EXISTS (SELECT FROM gone WHERE (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id)) \
         THEN o.o_carrier_id IS NULL OR o.o_carrier_id NOT BETWEEN 1 AND 10 OR l.ol_delivery_d IS NULL \
         ELSE o.o_carrier_id IS DISTINCT FROM b.o_carrier_id OR l.ol_delivery_d IS DISTINCT FROM k.ol_delivery_d END",
    ),
    (
        "its customer gets the sum of the lines",
        "SELECT 1 FROM customer c JOIN before.customer b USING (c_w_id, c_d_id, c_id) LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, \
         sum(ol_amount) AS sum, count(DISTINCT o_id) AS n FROM gone JOIN orders ON (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id) \
         JOIN order_line ON (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) GROUP BY 1, 2, 3) g ON (o_w_id, o_d_id, o_c_id) = \
         (c_w_id, c_d_id, c_id) WHERE (c.c_balance - b.c_balance, c.c_delivery_cnt - b.c_delivery_cnt) <> (coalesce(sum, 0), coalesce(n, 0))",
    ),
];

fn deliveries(server: &Server, client: &mut Client) {
    let all = orders(r#", "mix": {"delivery": 1}"#);
    remember(client);
    let totals = perform(server, &all, "plimsoll", 2000..2003);
    assert_eq!((totals["orders_delivered_done"], totals["districts_skipped"]), (30, 0));
    client.run("CREATE TEMPORARY TABLE gone AS SELECT * FROM before.new_order EXCEPT SELECT * FROM new_order").unwrap();
    must_hold(client, DELIVERIES);
    client
        .run("CREATE TABLE kept AS SELECT * FROM new_order WHERE no_w_id = 1; DELETE FROM new_order WHERE no_w_id = 1")
        .unwrap();
    client.run("INSERT INTO new_order SELECT * FROM kept WHERE no_d_id = 4 ORDER BY no_o_id LIMIT 1").unwrap();
    let totals = perform(server, &all, "plimsoll", 2003..2005);
    assert_eq!((totals["orders_delivered_done"], totals["districts_skipped"]), (1, 19), "nine, and then all ten");
    let by_function = orders(r#", "mix": {"delivery": 1}, "statements": "functions""#);
    assert_eq!(perform(server, &by_function, "plimsoll", 2005..2006)["districts_skipped"], 10);
    client.run("INSERT INTO new_order SELECT * FROM kept WHERE no_d_id <> 4; DROP TABLE kept").unwrap();
}

fn reads(server: &Server, client: &mut Client) {
    remember(client);
    let totals = perform(server, &orders(r#", "mix": {"order_status": 1, "stock_level": 1}"#), "plimsoll", 3000..3400);
    assert!(totals["order_status_done"] > 150 && totals["order_status_by_name"] > 80, "{totals:?}");
    for table in TABLES {
        assert_eq!(changed(client, table), 0, "{table}");
    }
}

/// Rules against numbers that were worked out on paper, by the functions, which do what the client's statements do.
fn hand_cases(client: &mut Client) {
    for (before, ordered, after) in [(20, 10, 10), (19, 10, 100), (11, 1, 10), (10, 1, 100), (100, 5, 95), (14, 5, 100)]
    {
        client.run(&format!("UPDATE stock SET s_quantity = {before} WHERE s_w_id = 1 AND s_i_id = 77")).unwrap();
        client.run(&format!("SELECT order_entry_new_order(1, 1, 1, '{{77}}', '{{1}}', '{{{ordered}}}')")).unwrap();
        let found = client.integers("SELECT s_quantity FROM stock WHERE s_w_id = 1 AND s_i_id = 77").unwrap();
        assert_eq!(found, [after], "{ordered} of {before}");
    }
    // Of n customers of a name, by first name, the one in position ceil(n / 2).
    for (count, middle) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        client.run("UPDATE customer SET c_last = 'SOMEONE' WHERE c_last = 'NOBODY'").unwrap();
        let rename = format!(
            "UPDATE customer SET c_last = 'NOBODY', c_first = chr(64 + 10 - c_id) WHERE c_w_id = 2 AND c_d_id = 3 AND c_id <= {count}"
        );
        client.run(&rename).unwrap();
        // The later numbers have the earlier first names.
        let expected = count + 1 - middle;
        for sql in [
            "SELECT customer_id FROM order_entry_payment(1, 1, 2, 3, NULL, 'NOBODY', 1.00)",
            "SELECT customer_id FROM order_entry_order_status(2, 3, NULL, 'NOBODY')",
        ] {
            assert_eq!(client.integers(sql).unwrap(), [expected], "{sql}, {count} of the name");
        }
    }
    let low = "SELECT count(DISTINCT ol_i_id) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id >= \
        (SELECT d_next_o_id - 20 FROM district WHERE d_w_id = 1 AND d_id = 2) AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < 15";
    let expected = client.integers(low).unwrap();
    assert_eq!(client.integers("SELECT low FROM order_entry_stock_level(1, 2, 15)").unwrap(), expected);
    assert!(expected[0] > 0);
}

/// Columns of `table`; of times only whether there is one.
fn columns(client: &mut Client, table: &str) -> String {
    let sql = format!(
        "SELECT string_agg(CASE format_type(atttypid, NULL) WHEN 'timestamp without time zone' THEN attname || ' IS NULL' \
         ELSE attname END, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'statements.{table}'::regclass AND attnum > 0"
    );
    client.rows(&sql).unwrap()[0][0].clone().unwrap()
}

/// A fingerprint of `table` in `schema`, whatever the order of its rows.
fn contents(client: &mut Client, schema: &str, table: &str) -> Vec<Option<String>> {
    let columns = columns(client, table);
    let sql = format!("SELECT count(*), sum(hashtextextended(ROW({columns})::text, 0)) FROM {schema}.{table}");
    client.rows(&sql).unwrap().remove(0)
}

#[test]
fn functions_and_statements_do_the_same_in_every_mode() {
    let Some(server) = Server::start("") else { return };
    let mix = r#", "mix": {"new_order": 8, "payment": 8, "order_status": 1, "delivery": 2, "stock_level": 1}"#;
    let (client_side, by_functions) = (orders(mix), orders(&format!(r#"{mix}, "statements": "functions""#)));
    server.populate(client_side.as_ref(), "statements");
    server.populate(client_side.as_ref(), "functions");
    let mut client = server.client("public");
    for (place, mode) in [Mode::Prepared, Mode::Extended, Mode::Simple].into_iter().enumerate() {
        let protocol = Protocol { mode, describe: place == 1 };
        let indexes = 150 * place as u64..150 * (place as u64 + 1);
        let said = perform_by(&server, &client_side, "statements", protocol, indexes.clone());
        assert_eq!(said, perform_by(&server, &by_functions, "functions", protocol, indexes), "{mode:?}");
        assert!(said["new_order_done"] > 30 && said["payment_done"] > 30 && said["delivery_done"] > 3, "{said:?}");
        for table in TABLES {
            let found = ["statements", "functions"].map(|schema| contents(&mut client, schema, table));
            assert_eq!(found[0], found[1], "{mode:?} {table}");
        }
    }
}

#[test]
fn answers_that_differ_from_the_seed_are_found() {
    let Some(server) = Server::start("") else { return };
    server.populate(orders("").as_ref(), "plimsoll");
    let mut client = server.client("plimsoll");
    let one = |kind: &str, statements: &str| {
        let orders = orders(&format!(r#", "mix": {{"{kind}": 1}}, "statements": "{statements}""#));
        let (endings, report) = server.perform(&orders, "plimsoll", (PLAIN, 0), 1..2);
        (endings[0].outcome, report.verification.wrong)
    };
    let spoilt = [
        ("UPDATE item SET i_price = i_price + 0.01", "UPDATE item SET i_price = i_price - 0.01", "new_order"),
        ("UPDATE district SET d_tax = d_tax / 2", "", "new_order"),
        ("UPDATE customer SET c_last = 'X' || c_last", "UPDATE customer SET c_last = substr(c_last, 2)", "payment"),
        ("DELETE FROM order_line WHERE ol_number = 3", "", "order_status"),
    ];
    for (spoil, mend, kind) in spoilt {
        client.run(spoil).unwrap();
        let statements = one(kind, "client");
        assert_eq!(statements, (Outcome::Failed, 1), "{spoil}");
        let functions = one(kind, "functions");
        assert_eq!(functions.0, Outcome::Failed, "{spoil}");
        if !mend.is_empty() {
            client.run(mend).unwrap();
        }
    }
}
