//! The consistency conditions 1 to 12 (clause 3.3.2 of TPC-C 5.11), and what the transactions said they did.
//!
//! - What is found for a condition is how many districts, orders, lines or customers break it; none must.
//! - Condition 2 holds in a district without undelivered orders by its orders alone: the specification thinks of none.
//! - Condition 11 ends with the first Delivery and is asked only of data that nothing has run on.
//! - The conditions say nothing of the stock, which is therefore compared with the lines of new orders.
//! - Every condition stays within a warehouse, but for payments of customers of another one. So ranges of warehouses are asked
//!   for side by side, each in one statement that reads every table once, and the history twice.

mod conditions;

use super::data::Data;
use super::encode::{NEXT_ORDER, PAID};
use super::scale::{self, DISTRICTS};
use super::tables::TableId;
use crate::checks::{between, connections, exact, ranges, total};
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::{Client, Error, bulk};

/// Warehouses of a range, unless that makes more ranges than [`RANGES_MAX`]. Freshly loaded, a warehouse takes 30 MB of hash
/// tables, and a server may be in a small memory group.
const WAREHOUSES_A_RANGE: i64 = 2;
/// Each range reads all of the history, for payments of its customers to other warehouses.
const RANGES_MAX: i64 = 50;
/// What a session gets for its check.
const SETTINGS: &str = "SET work_mem = '32MB'; SET jit = off; SET max_parallel_workers_per_gather = 0";

/// Checks what `segments` left.
pub(super) fn check(data: &Data, client: &Client, segments: &[Summary]) -> Result<Vec<Check>, Error> {
    let parallel = connections();
    let needed = ((data.warehouses() + WAREHOUSES_A_RANGE - 1) / WAREHOUSES_A_RANGE).min(RANGES_MAX);
    let whole = (i64::from(i32::MIN), i64::from(i32::MAX));
    let statements: Vec<String> =
        ranges(data.warehouses(), needed, parallel, whole).into_iter().map(conditions::statement).collect();
    let mut found = vec![0; conditions::COLUMNS.len()];
    for row in bulk::ask_all(client.address(), parallel, SETTINGS, &statements)? {
        found.iter_mut().zip(row).for_each(|(sum, part)| *sum += part);
    }
    let found = Found { values: found };
    let mut checks = found.conditions(segments.is_empty());
    checks.extend(found.totals(data, segments));
    Ok(checks)
}

/// What was found, summed over all ranges, in the order of [`conditions::COLUMNS`].
struct Found {
    values: Vec<i64>,
}

impl Found {
    fn value(&self, column: &str) -> i64 {
        let place = conditions::COLUMNS.iter().position(|(name, _)| *name == column);
        place.map_or_else(|| unreachable!("{column} is not asked for"), |place| self.values[place])
    }

    fn conditions(&self, is_fresh: bool) -> Vec<Check> {
        let condition = |(number, what): (usize, &&str)| {
            let found = self.value(&format!("condition_{}", number + 1));
            exact(format!("condition {}: {what}", number + 1), 0, found)
        };
        let asked = conditions::BROKEN_BY.iter().enumerate().filter(|(place, _)| is_fresh || *place + 1 != 11);
        asked.map(condition).collect()
    }

    /// What the transactions did, as the tables have it, and what they say they did.
    fn totals(&self, data: &Data, segments: &[Summary]) -> Vec<Check> {
        let loaded = |table: TableId| data.count(table) as i64;
        let done_or_lost = |name: &str, what: &str, found: i64| {
            let done = total(segments, &format!("{what}_done"));
            between(name.to_owned(), done, done + total(segments, &format!("{what}_lost")), found)
        };
        let orders = self.value("orders") - loaded(TableId::Orders);
        let numbered = self.value("numbered") - DISTRICTS * data.warehouses() * NEXT_ORDER;
        let lines = self.value("lines") - loaded(TableId::OrderLine);
        let delivered = loaded(TableId::NewOrder) + orders - self.value("undelivered");
        let payments = self.value("payments") - loaded(TableId::History);
        let cents = self.value("cents_paid") - loaded(TableId::History) * PAID;
        let mut checks = vec![
            done_or_lost("district: orders numbered", "new_order", numbered),
            done_or_lost("orders: rows inserted", "new_order", orders),
            done_or_lost("order_line: rows inserted", "order_lines", lines),
            done_or_lost("new_order: rows deleted", "orders_delivered", delivered),
            done_or_lost("history: rows inserted", "payment", payments),
            done_or_lost("history: cents paid", "payment_cents", cents),
        ];
        for (name, column, of_lines) in [
            ("stock: sum of s_order_cnt as of the new lines", "stock_orders", "new_lines"),
            ("stock: sum of s_ytd as of the new lines", "stock_sold", "new_quantity"),
            ("stock: sum of s_remote_cnt as of the new lines", "stock_remote", "new_remote_lines"),
        ] {
            checks.push(exact(name.to_owned(), self.value(of_lines), self.value(column)));
        }
        for (table, column) in [
            (TableId::Warehouse, "warehouses"),
            (TableId::District, "districts"),
            (TableId::Customer, "customers"),
            (TableId::Stock, "stocks"),
        ] {
            let expected = scale::rows(table, data.warehouses());
            checks.push(exact(format!("{}: rows", table.name()), expected, self.value(column)));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_asked_for() {
        let found = Found { values: (0..conditions::COLUMNS.len() as i64).collect() };
        assert_eq!(found.conditions(true).len(), 12);
        let after = found.conditions(false);
        assert!(after.len() == 11 && after.iter().all(|check| !check.name.starts_with("condition 11")));
    }
}
