//! What must hold of the tables: the consistency condition of clause 3.3.2.1 of TPC-H, and what loading and the refresh sets that
//! were taken leave there.
//!
//! The fact that constrains it: prices are cut off, not rounded, after the discount and again after the tax, line by line. Orders
//! and lines are compared by ranges of their keys, side by side, each range in one statement that reads it once.

use super::refresh::{Function, deleted_lines, inserted_lines, sparse_key, taken};
use super::scale::ScaleFactor;
use super::table_id::TableId;
use crate::checks::{connections, exact, ranges};
use plimsoll_record::Check;
use plimsoll_target::postgres::{Client, Error, bulk};

/// Orders of a range: what one session adds up at once.
const ORDERS_A_RANGE: i64 = 100_000;
/// What a session gets for its check.
pub(super) const SETTINGS: &str = "SET work_mem = '32MB'; SET jit = off; SET max_parallel_workers_per_gather = 0";

/// The refresh sets that were taken, and what they leave.
struct Taken {
    inserting: u64,
    deleting: u64,
    orders_a_set: u64,
}

impl Taken {
    /// What is asked of the orders with keys `low` to `high`: how many orders, lines, orders or lines that break the condition,
    /// loaded orders that no set deleted, and orders that a set inserted. A full join, so that what has no counterpart is found.
    /// The bits of 24 tell loaded keys (0) from inserted ones (8); 0 and 8 themselves are no keys.
    fn statement(&self, (low, high): (i64, i64)) -> String {
        let last_deleted = sparse_key(self.deleting * self.orders_a_set, 0);
        let last_inserted = sparse_key(self.inserting * self.orders_a_set, 1);
        let pairs = orders_beside_lines(|key| format!("{key} BETWEEN {low} AND {high}"));
        format!(
            "SELECT count(o_orderkey), coalesce(sum(lines), 0)::bigint, \
                count(*) FILTER (WHERE o_totalprice IS DISTINCT FROM charged), \
                count(*) FILTER (WHERE o_orderkey & 24 = 0 AND o_orderkey > {last_deleted}), \
                count(*) FILTER (WHERE o_orderkey & 24 = 8 AND o_orderkey > 8 AND o_orderkey <= {last_inserted}) \
             FROM {pairs}"
        )
    }
}

/// The orders whose key is as `within` says, each with the number of its `lines` and the price that these come to, `charged`: what
/// follows FROM.
pub(super) fn orders_beside_lines(within: impl Fn(&str) -> String) -> String {
    let (of_orders, of_lines) = (within("o_orderkey"), within("l_orderkey"));
    format!(
        "(SELECT o_orderkey, o_totalprice FROM orders WHERE {of_orders}) one \
         FULL JOIN (SELECT l_orderkey, count(*) AS lines, \
                sum(trunc(trunc(l_extendedprice * (1 - l_discount), 2) * (1 + l_tax), 2)) AS charged \
            FROM lineitem WHERE {of_lines} GROUP BY l_orderkey) many \
         ON l_orderkey = o_orderkey"
    )
}

/// Checks the tables in the search path of `client`, which were loaded at `scale` with so many lines.
pub(super) fn check(scale: ScaleFactor, loaded_lines: u64, client: &mut Client) -> Result<Vec<Check>, Error> {
    let orders = scale.orders();
    let [inserting, deleting] = [taken(client, Function::Rf1)?, taken(client, Function::Rf2)?];
    let sets = Taken { inserting, deleting, orders_a_set: scale.orders_a_set() };
    let needed = (orders as i64 + ORDERS_A_RANGE - 1) / ORDERS_A_RANGE;
    let ranges = ranges(sparse_key(orders, 0), needed, connections(), (i64::MIN, i64::MAX));
    let others: Vec<TableId> =
        TableId::ALL.into_iter().filter(|id| !matches!(id, TableId::Orders | TableId::Lineitem)).collect();
    let count = |id: &TableId| format!("SELECT count(*) FROM {}", id.name());
    let statements: Vec<String> =
        ranges.into_iter().map(|range| sets.statement(range)).chain(others.iter().map(count)).collect();
    let mut found = bulk::ask_all(client.address(), connections(), SETTINGS, &statements)?;
    let counted = found.split_off(statements.len() - others.len());
    let sum = |column: usize| found.iter().map(|row| row[column]).sum::<i64>();
    let (left, inserted) = (orders.saturating_sub(deleting * sets.orders_a_set), inserting * sets.orders_a_set);
    let lines = (loaded_lines + inserted_lines(scale, inserting)).saturating_sub(deleted_lines(scale, deleting));
    let equal = |name: &str, expected: u64, column| exact(name.to_owned(), expected as i64, sum(column));
    let mut checks = vec![
        equal("orders whose o_totalprice is not that of their lines", 0, 2),
        equal("orders: rows", left + inserted, 0),
        equal("lineitem: rows", lines, 1),
        equal("orders: loaded and in no set that RF2 took", left, 3),
        equal("orders: of the sets that RF1 took", inserted, 4),
    ];
    let row = |(id, found): (TableId, Vec<i64>)| exact(format!("{}: rows", id.name()), scale.rows(id) as i64, found[0]);
    checks.extend(others.into_iter().zip(counted).map(row));
    Ok(checks)
}
