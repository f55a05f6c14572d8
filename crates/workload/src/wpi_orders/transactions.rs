//! The five transactions: what transaction i does, its round trips, and what it adds to the totals.

use super::Rows;
use super::rows::{DeliveryTimes, PENDING_ITEMS, day_of};
use super::tables::TableId;
use crate::{Expect, RoundTrip, Statement};
use plimsoll_keys::{KeyChooser, Words};
use plimsoll_record::Outcome;
use plimsoll_session::Begun;
use plimsoll_target::postgres::Connection;

/// Kinds in the order of the record; the last one is only drawn by the study's draw and does nothing.
pub(super) const KINDS: [&str; 6] = ["new_order", "payment", "check_order", "delivery", "stock", "nothing"];

/// What the consistency check needs to know, in the order of [`tally`].
pub(super) const TOTALS: [&str; 8] = [
    "new_order_done",
    "new_order_lost",
    "payment_done",
    "payment_lost",
    "delivery_done",
    "delivery_lost",
    "total_spent_cents_done",
    "total_spent_cents_lost",
];

const BEGIN: usize = 0;
const COMMIT: usize = 1;
const CUSTOMER: usize = 2;
const CUSTOMER_ACCOUNT: usize = 3;
const PENDING_ORDER: usize = 4;
const HISTORY: usize = 5;
const ITEM: usize = 6;
const PAYMENT: usize = 7;
const ORDERS: usize = 8;
const DELIVERY: usize = 9;
const STOCK: usize = 10;

/// Statements in the order in which they are prepared. Reads name every column in the table's order, so that an answer can be
/// compared with the generator's row.
pub(super) const STATEMENTS: [Statement; 11] = [
    Statement::fixed("begin", "BEGIN"),
    Statement::fixed("commit", "COMMIT"),
    Statement::fixed(
        "read_customer",
        "SELECT account_number, name, address, telephone, credit_information FROM customer WHERE account_number = $1",
    ),
    Statement::fixed(
        "read_customer_account",
        "SELECT account_number, balance FROM customer_account WHERE account_number = $1",
    ),
    Statement::fixed(
        "insert_pending_order",
        "INSERT INTO pending_order (order_number, account_number, total_spent, current_items, order_date) VALUES ($1, $2, $3, $4, $5)",
    ),
    Statement::fixed(
        "update_history",
        "UPDATE history SET total_spent = total_spent + $2::bigint, last_order_date = greatest(last_order_date, $3::date) WHERE account_number = $1",
    ),
    Statement::fixed("read_item", "SELECT item_number, name, description, cost FROM item WHERE item_number = $1"),
    Statement::fixed(
        "insert_payment",
        "INSERT INTO payment (payment_number, account_number, amount, paid_date) VALUES ($1, $2, $3, $4)",
    ),
    Statement::fixed(
        "read_orders",
        "SELECT order_number, account_number, order_date, ship_date, items, quantities FROM orders WHERE order_number = $1",
    ),
    Statement::fixed(
        "insert_delivery",
        "INSERT INTO delivery (shipping_number, account_number, item_number, estimated_arrival, estimated_departure, actual_arrival, actual_departure, address, name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    ),
    Statement::fixed("read_stock", "SELECT item_number, quantity, manufacturer_cost FROM stock WHERE item_number = $1"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    NewOrder { account: i64, items: [i64; PENDING_ITEMS], cents: i64 },
    Payment { account: i64, cents: i64 },
    CheckOrder { order: i64 },
    Delivery { account: i64, item: i64, times: DeliveryTimes },
    Stock { item: i64 },
    Nothing,
}

/// All of what one transaction does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    index: u64,
    action: Action,
}

impl Plan {
    fn kind(&self) -> u8 {
        match self.action {
            Action::NewOrder { .. } => 0,
            Action::Payment { .. } => 1,
            Action::CheckOrder { .. } => 2,
            Action::Delivery { .. } => 3,
            Action::Stock { .. } => 4,
            Action::Nothing => 5,
        }
    }

    pub(super) fn begun(&self) -> Begun {
        Begun { kind: self.kind(), skipped: self.action == Action::Nothing }
    }

    /// The account whose history a new order updates.
    pub(super) fn updated_account(&self) -> Option<i64> {
        match self.action {
            Action::NewOrder { account, .. } => Some(account),
            _ => None,
        }
    }
}

/// The transaction that a connection performs, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Client {
    pub(super) plan: Plan,
    pub(super) next_round_trip: u8,
}

impl Client {
    /// Before its first transaction.
    pub(super) const IDLE: Self = Self { plan: Plan { index: 0, action: Action::Nothing }, next_round_trip: 0 };
}

/// Transactions have words of their own, apart from those of every table.
const TRANSACTION_WORDS: u64 = 1 << 32;

/// Draws transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) seed: u64,
    /// In the order of [`KINDS`].
    pub(super) weights: [u32; 5],
    /// One bucket more, in which nothing is done.
    pub(super) with_nothing: bool,
    pub(super) accounts: KeyChooser,
    pub(super) items: KeyChooser,
    pub(super) orders: KeyChooser,
}

impl Draw {
    fn kind(&self, words: &Words) -> usize {
        let drawn = self.weights.iter().map(|&weight| u64::from(weight)).sum::<u64>();
        let mut bucket = words.below(0, drawn + u64::from(self.with_nothing));
        for (kind, &weight) in self.weights.iter().enumerate() {
            match bucket.checked_sub(u64::from(weight)) {
                Some(rest) => bucket = rest,
                None => return kind,
            }
        }
        self.weights.len()
    }

    /// What transaction `index` does.
    pub(super) fn plan(&self, index: u64) -> Plan {
        let words = Words::new(self.seed, TRANSACTION_WORDS, index);
        let account = || 1 + self.accounts.choose(&words, 1) as i64;
        let item = |field: u64| 1 + self.items.choose(&words, field) as i64;
        let cents = || words.between(2, 100, 100_000);
        let action = match self.kind(&words) {
            0 => Action::NewOrder { account: account(), items: [item(3), item(4), item(5)], cents: cents() },
            1 => Action::Payment { account: account(), cents: cents() },
            2 => Action::CheckOrder { order: 1 + self.orders.choose(&words, 3) as i64 },
            3 => {
                let times = DeliveryTimes::draw(&words, 8, i64::from(day_of(index)));
                Action::Delivery { account: account(), item: item(3), times }
            }
            4 => Action::Stock { item: item(3) },
            _ => Action::Nothing,
        };
        Plan { index, action }
    }
}

/// The key of a row that transaction `index` inserts into a table that was loaded with `loaded` rows.
fn new_key(loaded: u64, index: u64) -> i64 {
    (loaded + 1 + index) as i64
}

/// Queues round trip `number` of `plan`, without its Sync.
pub(super) fn round_trip(rows: &Rows, plan: &Plan, number: u8, to: &mut Connection) -> Option<RoundTrip> {
    if let Action::NewOrder { account, items, cents } = plan.action {
        return new_order(rows, plan.index, (account, items, cents), number, to);
    }
    if number > 0 {
        return None;
    }
    Some(match plan.action {
        Action::Payment { account, cents } => {
            to.queue_statement(PAYMENT, |values| {
                values.bigint(new_key(rows.count(TableId::Payment), plan.index));
                values.bigint(account);
                values.bigint(cents);
                values.date(day_of(plan.index));
            });
            inserted(true)
        }
        Action::Delivery { account, item, times } => {
            to.queue_statement(DELIVERY, |values| {
                values.bigint(new_key(rows.count(TableId::Delivery), plan.index));
                values.bigint(account);
                values.bigint(item);
                times.put(values);
                rows.put_address_and_name(account, values);
            });
            inserted(true)
        }
        Action::CheckOrder { order } => read(to, ORDERS, TableId::Orders, order),
        Action::Stock { item } => read(to, STOCK, TableId::Stock, item),
        Action::NewOrder { .. } | Action::Nothing => return None,
    })
}

fn new_order(
    rows: &Rows,
    index: u64,
    (account, items, cents): (i64, [i64; PENDING_ITEMS], i64),
    number: u8,
    to: &mut Connection,
) -> Option<RoundTrip> {
    Some(match number {
        0 => {
            to.queue_statement(BEGIN, |_| {});
            read(to, CUSTOMER, TableId::Customer, account)
        }
        1 => read(to, CUSTOMER_ACCOUNT, TableId::CustomerAccount, account),
        2 => {
            to.queue_statement(PENDING_ORDER, |values| {
                values.bigint(new_key(rows.count(TableId::PendingOrder), index));
                values.bigint(account);
                values.bigint(cents);
                values.bigint_array(&items);
                values.date(day_of(index));
            });
            inserted(false)
        }
        3 => {
            to.queue_statement(HISTORY, |values| {
                values.bigint(account);
                values.bigint(cents);
                values.date(day_of(index));
            });
            RoundTrip { statements: 1, expect: Expect::Tag(b"UPDATE 1"), commits: false }
        }
        4 => read(to, ITEM, TableId::Item, items[0]),
        5 => {
            to.queue_statement(COMMIT, |_| {});
            RoundTrip { statements: 0, expect: Expect::Tag(b"COMMIT"), commits: true }
        }
        _ => return None,
    })
}

fn read(to: &mut Connection, statement: usize, table: TableId, key: i64) -> RoundTrip {
    to.queue_statement(statement, |values| values.bigint(key));
    RoundTrip { statements: 1, expect: Expect::Row { table: table as u8, key }, commits: false }
}

fn inserted(commits: bool) -> RoundTrip {
    RoundTrip { statements: 1, expect: Expect::Tag(b"INSERT 0 1"), commits }
}

/// Adds a transaction that ended to `totals`.
pub(super) fn tally(plan: &Plan, outcome: Outcome, totals: &mut [i64]) {
    let lost = match outcome {
        Outcome::Done => 0,
        Outcome::Lost => 1,
        Outcome::Failed | Outcome::Skipped => return,
    };
    match plan.action {
        Action::NewOrder { cents, .. } => {
            totals[lost] += 1;
            totals[6 + lost] += cents;
        }
        Action::Payment { .. } => totals[2 + lost] += 1,
        Action::Delivery { .. } => totals[4 + lost] += 1,
        Action::CheckOrder { .. } | Action::Stock { .. } | Action::Nothing => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_keys::Choice;

    fn draw(with_nothing: bool) -> Draw {
        let chooser = |size| KeyChooser::new(Choice::Uniform, 1, 0, size).unwrap();
        let (accounts, items, orders) = (chooser(1000), chooser(20), chooser(10));
        Draw { seed: 1, weights: [10, 10, 1, 1, 1], with_nothing, accounts, items, orders }
    }

    fn shares(draw: &Draw) -> [f64; 6] {
        let count = 240_000;
        let mut shares = [0.0; 6];
        (0..count).for_each(|i| shares[usize::from(draw.plan(i).kind())] += 1.0 / count as f64);
        shares
    }

    #[test]
    fn the_mix_has_the_studys_proportions() {
        for (with_nothing, buckets) in [(false, 23.0), (true, 24.0)] {
            let shares = shares(&draw(with_nothing));
            let wanted = [10.0, 10.0, 1.0, 1.0, 1.0, f64::from(u8::from(with_nothing))];
            for (share, wanted) in shares.iter().zip(wanted) {
                assert!((share - wanted / buckets).abs() < 0.004, "{shares:?}");
            }
        }
    }

    #[test]
    fn statements_a_transaction_are_the_studys() {
        let shares = shares(&draw(false));
        let mean = 5.0 * shares[0] + shares[1..5].iter().sum::<f64>();
        assert!((mean - 2.74).abs() < 0.02, "{mean}");
    }

    #[test]
    fn plans_are_pure() {
        assert_eq!(draw(false).plan(77), draw(false).plan(77));
        assert_ne!(draw(false).plan(77).action, draw(false).plan(78).action);
    }
}
