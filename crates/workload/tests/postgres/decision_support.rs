//! The data of decision_support on a private PostgreSQL: it is the generator's, to the last character, it does not hang on how it
//! was loaded, and what breaks the condition is found.

use crate::server::Server;
use plimsoll_target::postgres::Client;
use plimsoll_workload::decision_support::DecisionSupport;
use plimsoll_workload::{DataSet, populate};
use std::collections::BTreeSet;
use std::fmt::Display;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

pub(crate) fn data(scale_factor: f64) -> DecisionSupport {
    let text = format!(r#"{{"name": "decision_support", "scale_factor": {scale_factor}}}"#);
    DecisionSupport::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Every row of `table` in the generator's own text, at scale factor 0.01, sorted.
fn generated(table: &str) -> Vec<String> {
    fn text<T: Display>(rows: impl Iterator<Item = T>) -> Vec<String> {
        let mut rows: Vec<String> = rows.map(|row| row.to_string()).collect();
        rows.sort();
        rows
    }
    match table {
        "region" => text(RegionGenerator::default().iter()),
        "nation" => text(NationGenerator::default().iter()),
        "supplier" => text(SupplierGenerator::new(0.01, 1, 1).iter()),
        "part" => text(PartGenerator::new(0.01, 1, 1).iter()),
        "partsupp" => text(PartSuppGenerator::new(0.01, 1, 1).iter()),
        "customer" => text(CustomerGenerator::new(0.01, 1, 1).iter()),
        "orders" => text(OrderGenerator::new(0.01, 1, 1).iter()),
        "lineitem" => text(LineItemGenerator::new(0.01, 1, 1).iter()),
        "refresh_sets" => ["RF1|0|", "RF2|0|"].map(str::to_owned).to_vec(),
        _ => panic!("no table {table}"),
    }
}

/// Every row of `table` in the server's text, written as the generator writes it: without the blanks that pad a text of fixed
/// length, and quantities without cents.
fn found(client: &mut Client, table: &str) -> Vec<String> {
    let columns = format!(
        "SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 \
         ORDER BY attnum"
    );
    let as_text = |column: Vec<Option<String>>| match (column[0].as_deref().unwrap(), column[1].as_deref().unwrap()) {
        ("l_quantity", _) => "round(l_quantity)::text".to_owned(),
        (name, "character") => format!("rtrim({name}::text)"),
        (name, _) => format!("{name}::text"),
    };
    let columns: Vec<String> = client.rows(&columns).unwrap().into_iter().map(as_text).collect();
    let rows = client.rows(&format!("SELECT {} || '|' FROM {table}", columns.join(" || '|' || "))).unwrap();
    let mut rows: Vec<String> = rows.into_iter().flatten().flatten().collect();
    rows.sort();
    rows
}

/// A number for each table that hangs on its rows and not on their order.
fn sums(data: &DecisionSupport, client: &mut Client) -> Vec<(String, String)> {
    let sum = |table: String| {
        let sql = format!("SELECT count(*) || ' ' || sum(hashtextextended(t::text, 0)::numeric) FROM {table} t");
        let found = client.rows(&sql).unwrap().remove(0).remove(0).unwrap();
        (table, found)
    };
    data.rows().into_keys().map(sum).collect()
}

/// Names of the checks that fail, of numbers of rows that of the table; and what was found.
pub(crate) fn failing(data: &DecisionSupport, client: &mut Client, schema: &str) -> BTreeSet<(String, String)> {
    let checks = data.check(client, schema, &[]).unwrap();
    let name = |name: &str| name.strip_suffix(": rows").unwrap_or(name).to_owned();
    checks.into_iter().filter(|check| !check.ok).map(|check| (name(&check.name), check.found)).collect()
}

#[test]
fn every_row_is_the_generators_to_the_last_character() {
    let Some(server) = Server::start("") else { return };
    let data = data(0.01);
    let loaded = populate(&data, &server.address(), "small", 2, &|_| {}).unwrap();
    let mut client = server.client("small");
    for table in loaded.tables.keys() {
        let (generated, found) = (generated(table), found(&mut client, table));
        assert_eq!(found.len() as u64, loaded.tables[table], "{table}");
        let different = generated.iter().zip(&found).find(|(generated, found)| generated != found);
        assert_eq!((different, found.len()), (None, generated.len()), "{table}");
    }
    assert_eq!(loaded.tables["lineitem"], 60_175);
    // The small tables have index pages that are hardly filled.
    let (bytes, estimate) = (loaded.bytes(), data.estimated_bytes());
    assert!(bytes.abs_diff(estimate) * 100 < 5 * estimate, "{estimate} and not {bytes}");
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND connamespace = 'small'::regnamespace";
    let indexes = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'small'";
    let analysed = "SELECT count(*) FROM pg_stats WHERE schemaname = 'small' AND attname = 'l_orderkey'";
    assert_eq!([keys, indexes, analysed].map(|sql| client.integers(sql).unwrap()[0]), [9, 24, 1]);
    assert_eq!(failing(&data, &mut client, "small"), BTreeSet::new());
    breaks_are_found(&data, &mut client);
}

/// What is done to the data, and what undoes it.
type Break = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PRICE: &str = "orders whose o_totalprice is not that of their lines";

const LOADED: &str = "orders: loaded and in no set that RF2 took";

const BREAKS: &[Break] = &[
    (
        "UPDATE orders SET o_totalprice = o_totalprice + 0.01 WHERE o_orderkey IN (1, 39)",
        "UPDATE orders SET o_totalprice = o_totalprice - 0.01 WHERE o_orderkey IN (1, 39)",
        &[(PRICE, "2")],
    ),
    (
        "UPDATE lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey = 32 AND l_linenumber = 1",
        "UPDATE lineitem SET l_tax = l_tax - 0.01 WHERE l_orderkey = 32 AND l_linenumber = 1",
        &[(PRICE, "1")],
    ),
    (
        "CREATE TABLE gone AS SELECT * FROM lineitem WHERE l_orderkey = 3 AND l_linenumber = 2; \
         DELETE FROM lineitem WHERE l_orderkey = 3 AND l_linenumber = 2",
        "INSERT INTO lineitem SELECT * FROM gone; DROP TABLE gone",
        &[(PRICE, "1"), ("lineitem", "60174")],
    ),
    // An order without lines, and lines without an order.
    (
        "CREATE TABLE gone AS SELECT * FROM lineitem WHERE l_orderkey = 7; DELETE FROM lineitem WHERE l_orderkey = 7",
        "INSERT INTO lineitem SELECT * FROM gone; DROP TABLE gone",
        &[(PRICE, "1"), ("lineitem", "60168")],
    ),
    (
        "CREATE TABLE gone AS SELECT * FROM orders WHERE o_orderkey = 60000; \
         DELETE FROM orders WHERE o_orderkey = 60000",
        "INSERT INTO orders SELECT * FROM gone; DROP TABLE gone",
        &[(PRICE, "1"), ("orders", "14999"), (LOADED, "14999")],
    ),
    // Loaded by nobody.
    (
        "INSERT INTO orders SELECT 8, 1, 'F', 0, '1995-01-01', '', '', 0, ''; \
         INSERT INTO lineitem SELECT 8, 1, 1, 1, 0, 0, 0, 0, 'N', 'F', d, d, d, '', '', '' \
         FROM (SELECT date '1995-01-01') AS day (d)",
        "DELETE FROM orders WHERE o_orderkey = 8; DELETE FROM lineitem WHERE l_orderkey = 8",
        &[("orders", "15001"), ("lineitem", "60176")],
    ),
    ("INSERT INTO region VALUES (5, 'ATLANTIS', '')", "DELETE FROM region WHERE r_regionkey = 5", &[("region", "6")]),
];

fn breaks_are_found(data: &DecisionSupport, client: &mut Client) {
    for (break_it, undo, expected) in BREAKS {
        client.run(break_it).unwrap();
        let expected = expected.iter().map(|(name, found)| ((*name).to_owned(), (*found).to_owned())).collect();
        assert_eq!(failing(data, client, "small"), expected, "{break_it}");
        client.run(undo).unwrap();
    }
    assert_eq!(failing(data, client, "small"), BTreeSet::new());
}

#[test]
fn text_is_the_generators_without_the_last_separator() {
    let data = data(0.01);
    for table in data.rows().into_keys() {
        let mut text = Vec::new();
        let each = |part: &[u8]| -> Result<(), ()> {
            text.extend_from_slice(part);
            Ok(())
        };
        let rows = data.text_of(data.table_number(&table).unwrap(), each).unwrap();
        let mut lines: Vec<String> =
            std::str::from_utf8(&text).unwrap().lines().map(|line| format!("{line}|")).collect();
        lines.sort();
        assert_eq!((lines.len() as u64, rows), (data.rows()[&table], data.rows()[&table]), "{table}");
        assert!(lines == generated(&table), "{table}");
    }
}

#[test]
fn data_does_not_hang_on_how_many_load_it() {
    let Some(server) = Server::start("") else { return };
    // From two connections on lines are filled by several, from four on orders too; there are enough of both for two.
    let data = data(0.05);
    let loaded: Vec<_> = [("one", 1), ("three", 3), ("four", 4)]
        .into_iter()
        .map(|(schema, parallel)| {
            let loaded = populate(&data, &server.address(), schema, parallel, &|_| {}).unwrap();
            assert_eq!(loaded.tables, data.rows());
            sums(&data, &mut server.client(schema))
        })
        .collect();
    assert_eq!(loaded[0], loaded[1]);
    assert_eq!(loaded[0], loaded[2]);
    assert_eq!(failing(&data, &mut server.client("four"), "four"), BTreeSet::new());
}
