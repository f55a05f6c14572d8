//! What must hold of the tables: the consistency condition of clause 3.3.2.1 of TPC-H, and the numbers of rows.
//!
//! The fact that constrains it: prices are cut off, not rounded, after the discount and again after the tax, line by line. Orders
//! and lines are compared by ranges of their keys, side by side, each range in one statement that reads it once.

use super::DecisionSupport;
use super::tables::TableId;
use crate::checks::{connections, exact, ranges};
use crate::data_set::DataSet;
use plimsoll_record::Check;
use plimsoll_target::postgres::{Client, Error, bulk};
use tpchgen::generators::OrderGenerator;

/// Orders of a range: what one session adds up at once.
const ORDERS_A_RANGE: i64 = 100_000;
/// What a session gets for its check.
const SETTINGS: &str = "SET work_mem = '32MB'; SET jit = off; SET max_parallel_workers_per_gather = 0";

/// Asks for the orders with keys `low` to `high`: how many orders, lines, and orders or lines that break the condition. A full
/// join, so that what has no counterpart is found.
fn statement((low, high): (i64, i64)) -> String {
    format!(
        "SELECT count(o_orderkey), coalesce(sum(lines), 0)::bigint, \
            count(*) FILTER (WHERE o_totalprice IS DISTINCT FROM charged) \
         FROM (SELECT o_orderkey, o_totalprice FROM orders WHERE o_orderkey BETWEEN {low} AND {high}) one \
         FULL JOIN (SELECT l_orderkey, count(*) AS lines, \
                sum(trunc(trunc(l_extendedprice * (1 - l_discount), 2) * (1 + l_tax), 2)) AS charged \
            FROM lineitem WHERE l_orderkey BETWEEN {low} AND {high} GROUP BY l_orderkey) many \
         ON l_orderkey = o_orderkey"
    )
}

/// Checks the tables in the search path of `client`.
pub(super) fn check(data: &DecisionSupport, client: &Client) -> Result<Vec<Check>, Error> {
    let orders = data.scale.orders() as i64;
    let highest = OrderGenerator::make_order_key(orders);
    let needed = (orders + ORDERS_A_RANGE - 1) / ORDERS_A_RANGE;
    let ranges = ranges(highest, needed, connections(), (i64::MIN, i64::MAX));
    let others = TableId::ALL.map(TableId::name).into_iter().filter(|name| !matches!(*name, "orders" | "lineitem"));
    let others: Vec<&str> = others.collect();
    let count = |name: &&str| format!("SELECT count(*) FROM {name}");
    let statements: Vec<String> = ranges.into_iter().map(statement).chain(others.iter().map(count)).collect();
    let mut found = bulk::ask_all(client.address(), connections(), SETTINGS, &statements)?;
    let counted = found.split_off(statements.len() - others.len());
    let sum = |column: usize| found.iter().map(|row| row[column]).sum::<i64>();
    let rows = data.rows();
    let rows = |name: &str, found: i64| exact(format!("{name}: rows"), rows[name] as i64, found);
    let mut checks = vec![
        exact("orders whose o_totalprice is not that of their lines".to_owned(), 0, sum(2)),
        rows("orders", sum(0)),
        rows("lineitem", sum(1)),
    ];
    checks.extend(others.iter().zip(counted).map(|(name, row)| rows(name, row[0])));
    Ok(checks)
}
