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
use super::ddl::TableId;
use super::encode::{NEXT_ORDER, PAID};
use super::scale::{self, DISTRICTS};
use crate::checks::{between, exact, total};
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::{Client, Error, bulk};

/// Warehouses of a range, unless that makes more ranges than [`RANGES_MAX`]. Freshly loaded, a warehouse takes 30 MB of hash
/// tables, and a server may be in a small memory group.
const WAREHOUSES_A_RANGE: i64 = 2;
/// Each range reads all of the history, for payments of its customers to other warehouses.
const RANGES_MAX: i64 = 50;
/// One for each CPU, but a server has only so many connections to give.
const CONNECTIONS_MAX: usize = 16;
/// What a session gets for its check.
const SETTINGS: &str = "SET work_mem = '32MB'; SET jit = off; SET max_parallel_workers_per_gather = 0";

/// Checks what `segments` left.
pub(super) fn check(data: &Data, client: &Client, segments: &[Summary]) -> Result<Vec<Check>, Error> {
    let parallel = std::thread::available_parallelism().map_or(1, usize::from).min(CONNECTIONS_MAX);
    let statements: Vec<String> =
        ranges(data.warehouses(), parallel as i64).into_iter().map(conditions::statement).collect();
    let mut found = vec![0; conditions::COLUMNS.len()];
    for row in bulk::ask_all(client.address(), parallel, SETTINGS, &statements)? {
        found.iter_mut().zip(row).for_each(|(sum, part)| *sum += part);
    }
    let found = Found { values: found };
    let mut checks = found.conditions(segments.is_empty());
    checks.extend(found.totals(data, segments));
    Ok(checks)
}

/// Ranges of warehouses, both ends included, equally many for each of `parallel` connections; together they hold every number,
/// so that no row escapes.
fn ranges(warehouses: i64, parallel: i64) -> Vec<(i64, i64)> {
    let rounded_up = |number: i64, by: i64| (number + by - 1) / by;
    let needed = rounded_up(warehouses, WAREHOUSES_A_RANGE).min(RANGES_MAX);
    let count = (rounded_up(needed, parallel) * parallel).min(warehouses);
    let bound = |number: i64| number * warehouses / count;
    let whole = (i64::from(i32::MIN), i64::from(i32::MAX));
    let from = |number: i64| if number == 0 { whole.0 } else { bound(number) + 1 };
    let to = |number: i64| if number + 1 == count { whole.1 } else { bound(number + 1) };
    (0..count).map(|number| (from(number), to(number))).collect()
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
    fn ranges_hold_every_warehouse_once() {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        assert_eq!(ranges(1, 8), [(low, high)]);
        assert_eq!(ranges(2, 2), [(low, 1), (2, high)]);
        assert_eq!(ranges(7, 3), [(low, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, high)]);
        assert_eq!(ranges(9, 2), [(low, 1), (2, 3), (4, 4), (5, 6), (7, 7), (8, high)]);
        let many = ranges(1001, 4);
        assert_eq!((many.len(), many[0].0, many[51].1), (52, low, high));
        assert!(many.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
    }

    #[test]
    fn every_condition_is_asked_for() {
        let found = Found { values: (0..conditions::COLUMNS.len() as i64).collect() };
        assert_eq!(found.conditions(true).len(), 12);
        let after = found.conditions(false);
        assert!(after.len() == 11 && after.iter().all(|check| !check.name.starts_with("condition 11")));
    }
}
