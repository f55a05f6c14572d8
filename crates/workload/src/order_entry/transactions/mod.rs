//! The five transactions by the rules of clauses 2.4 to 2.8: what is drawn, what is sent, and what must be answered.
//!
//! Each goes in a BEGIN ... COMMIT block. Round trips are as few as the data allow: all that does not hang on an answer goes
//! together, and COMMIT with the last statements. What a plan draws is a pure function of (seed, index, terminal).

pub(super) mod delivery;
pub(super) mod new_order;
pub(super) mod order_status;
pub(super) mod payment;
pub(super) mod stock_level;

use super::answers::{Heard, Values, timestamp_us};
use super::deck::Kind;
use super::numbers::{Constants, NonUniform, last_name};
use super::rows::Rows;
use super::scale::DISTRICTS;
use super::statements::{BEGIN, COMMIT, CUSTOMERS_OF_NAME};
use crate::workload::{Expect, Next, RoundTrip};
use delivery::Delivery;
use new_order::NewOrder;
use order_status::OrderStatus;
use payment::Payment;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;
use stock_level::StockLevel;

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) warehouse: i32,
    pub(super) district: i32,
}

/// What transactions draw from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    warehouses: i64,
    customers: NonUniform,
    items: NonUniform,
    names: NonUniform,
}

impl Draw {
    pub(super) fn new(warehouses: i64, constants: &Constants) -> Self {
        let (customers, items) = (constants.customer(), constants.item());
        Self { warehouses, customers, items, names: constants.last_name_of_run() }
    }

    fn district(words: &Words, field: u64) -> i32 {
        words.between(field, 1, DISTRICTS) as i32
    }

    /// Any warehouse but `home`, all alike; `home` if there is no other.
    fn other_than(&self, home: i32, words: &Words, field: u64) -> i32 {
        if self.warehouses == 1 {
            return home;
        }
        let other = words.between(field, 1, self.warehouses - 1) as i32;
        other + i32::from(other >= home)
    }

    /// 60 % by last name, 40 % by number; takes `field` and the two after it.
    fn customer(&self, words: &Words, field: u64) -> Wanted {
        if words.below(field, 100) < 60 {
            Wanted::Name(self.names.draw(words, field + 1) as i32)
        } else {
            Wanted::Number(self.customers.draw(words, field + 1) as i32)
        }
    }
}

/// How a customer is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// By number.
    Number(i32),
    /// By the number of the last name.
    Name(i32),
}

impl Wanted {
    pub(super) fn is_name(self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// Which round trip comes of a transaction of one customer: looking for the name is left out if there is none to look for.
    fn stage(self, step: u8) -> u8 {
        step + u8::from(!self.is_name())
    }

    /// The round trip that looks for the customers of the name at `site`.
    fn search(name: i32, site: Site, to: &mut Connection) -> RoundTrip {
        begin(to);
        to.queue_statement(CUSTOMERS_OF_NAME, |values| {
            [site.warehouse, site.district].iter().for_each(|&n| values.integer(n));
            values.text(last_name(name.into()).as_bytes());
        });
        trip(1)
    }

    /// From now on the customer's number is known.
    fn settle(self, heard: &mut Heard, to: &mut Connection) {
        match self {
            Self::Number(number) => {
                begin(to);
                heard.customer = number;
            }
            Self::Name(_) => heard.choose_middle(),
        }
    }

    /// The last name of the customer who was found at `site` is the one that the seed says, and the one that was wanted.
    pub(super) fn judge(self, rows: &Rows, site: Site, last: Option<&[u8]>, heard: &mut Heard) {
        let number = heard.customer;
        let loaded = rows.customer(site.warehouse.into(), site.district.into(), number.into()).last;
        let wanted = match self {
            Self::Number(_) => loaded,
            Self::Name(name) => name.into(),
        };
        heard.must(loaded == wanted && last == Some(last_name(loaded).as_bytes()), || {
            format!("customer {number} of {site:?} has another last name than loaded")
        });
    }
}

/// All of what one transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Plan {
    /// What a terminal at `home` does in a transaction of `kind`; New-Orders and Payments draw their district.
    pub(super) fn draw(draw: &Draw, kind: Kind, words: &Words, home: Site) -> Self {
        match kind {
            Kind::NewOrder => Self::NewOrder(NewOrder::draw(draw, words, home.warehouse)),
            Kind::Payment => Self::Payment(Payment::draw(draw, words, home.warehouse)),
            Kind::OrderStatus => Self::OrderStatus(OrderStatus::draw(draw, words, home.warehouse)),
            Kind::Delivery => Self::Delivery(Delivery::draw(words, home.warehouse)),
            Kind::StockLevel => Self::StockLevel(StockLevel::draw(words, home)),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }

    /// Queues the next round trip of client-side statements.
    pub(super) fn next(&self, heard: &mut Heard, to: &mut Connection) -> Next {
        let trip = match self {
            Self::NewOrder(plan) => plan.next(heard, to),
            Self::Payment(plan) => plan.next(heard, to),
            Self::OrderStatus(plan) => plan.next(heard, to),
            Self::Delivery(plan) => plan.next(heard, to),
            Self::StockLevel(plan) => plan.next(heard, to),
        };
        heard.sent();
        trip.map_or(Next::Complete, Next::RoundTrip)
    }

    /// Hears of a row that answers a client-side statement.
    pub(super) fn row(&self, rows: &Rows, heard: &mut Heard, values: Values<'_>) {
        match self {
            Self::NewOrder(plan) => plan.row(rows, heard, values),
            Self::Payment(plan) => plan.row(rows, heard, values),
            Self::OrderStatus(plan) => plan.row(rows, heard, values),
            Self::Delivery(plan) => plan.row(heard, values),
            Self::StockLevel(plan) => plan.row(heard, values),
        }
    }

    /// Hears that a client-side statement was answered, with `count` rows if it has any.
    pub(super) fn completed(&self, heard: &mut Heard, count: Option<i64>) {
        match self {
            Self::NewOrder(plan) => plan.completed(heard, count),
            Self::Payment(plan) => plan.completed(heard, count),
            Self::OrderStatus(plan) => plan.completed(heard, count),
            Self::Delivery(plan) => plan.completed(heard, count),
            Self::StockLevel(plan) => plan.completed(heard, count),
        }
        heard.statement += 1;
    }
}

/// Queues BEGIN.
fn begin(to: &mut Connection) {
    to.queue_statement(BEGIN, |_| {});
}

/// Queues COMMIT, and gives the round trip that it ends; `statements` are those before it.
fn commit(to: &mut Connection, statements: usize) -> RoundTrip {
    to.queue_statement(COMMIT, |_| {});
    RoundTrip { statements: statements as u32, expect: Expect::Judged, commits: true }
}

/// A round trip that changes nothing for good.
fn trip(statements: usize) -> RoundTrip {
    RoundTrip { statements: statements as u32, expect: Expect::Judged, commits: false }
}

/// A statement concerned exactly one row.
fn one(heard: &mut Heard, count: Option<i64>, what: &str) {
    heard.must(count == Some(1), || format!("{what}: {count:?} rows instead of one"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Site = Site { warehouse: 2, district: 7 };

    fn plans(kind: Kind, warehouses: i64, count: u64) -> Vec<Plan> {
        let draw = Draw::new(warehouses, &Constants::of(7));
        (0..count).map(|index| Plan::draw(&draw, kind, &Words::new(7, 1 << 32, index), HOME)).collect()
    }

    fn share(hits: usize, of: usize) -> f64 {
        hits as f64 / of as f64
    }

    #[test]
    fn new_orders_are_within_the_ranges() {
        let orders: Vec<NewOrder> = plans(Kind::NewOrder, 5, 100_000)
            .into_iter()
            .map(|plan| if let Plan::NewOrder(order) = plan { order } else { panic!("{plan:?}") })
            .collect();
        let lines: usize = orders.iter().map(|order| order.lines().len()).sum();
        assert!((share(lines, orders.len()) - 10.0).abs() < 0.05);
        let remote: usize = orders.iter().map(NewOrder::remote_lines).sum();
        // The standard deviation is 0.01 %.
        assert!((share(remote, lines) - 0.01).abs() < 0.0005, "{}", share(remote, lines));
        let rolled_back = orders.iter().filter(|order| order.rolls_back()).count();
        assert!((share(rolled_back, orders.len()) - 0.01).abs() < 0.001, "{rolled_back}");
        for order in &orders {
            assert!((5..=15).contains(&order.lines().len()) && order.site.warehouse == 2);
            let unused = order.lines().iter().filter(|line| line.item > 100_000).count();
            assert_eq!(unused, usize::from(order.rolls_back()));
            assert!(order.lines().is_sorted_by_key(|line| (line.item, line.supply)));
            assert!(
                order.lines().iter().all(|line| (1..=5).contains(&line.supply) && (1..=10).contains(&line.quantity))
            );
        }
        let districts: std::collections::BTreeSet<i32> = orders.iter().map(|order| order.site.district).collect();
        assert_eq!(districts.into_iter().collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn payments_are_within_the_ranges() {
        let payments: Vec<Payment> = plans(Kind::Payment, 5, 100_000)
            .into_iter()
            .map(|plan| if let Plan::Payment(payment) = plan { payment } else { panic!("{plan:?}") })
            .collect();
        let remote: Vec<&Payment> = payments.iter().filter(|payment| payment.is_remote()).collect();
        assert!((share(remote.len(), payments.len()) - 0.15).abs() < 0.005);
        let by_name = payments.iter().filter(|payment| payment.wanted.is_name()).count();
        assert!((share(by_name, payments.len()) - 0.6).abs() < 0.006);
        assert!(remote.iter().all(|payment| payment.of.warehouse != 2));
        let at_home = payments.iter().filter(|payment| !payment.is_remote());
        assert!(at_home.clone().all(|payment| payment.of == payment.site));
        let cents = payments.iter().map(|payment| payment.cents);
        assert!(cents.clone().min().unwrap() < 200 && cents.clone().min().unwrap() >= 100);
        assert!(cents.clone().max().unwrap() > 499_800 && cents.max().unwrap() <= 500_000);
    }

    #[test]
    fn one_warehouse_has_nothing_remote() {
        for plan in plans(Kind::Payment, 1, 1000).into_iter().chain(plans(Kind::NewOrder, 1, 1000)) {
            match plan {
                Plan::Payment(payment) => assert!(!payment.is_remote()),
                Plan::NewOrder(order) => assert_eq!(order.remote_lines(), 0),
                _ => panic!("{plan:?}"),
            }
        }
    }

    #[test]
    fn plans_are_pure() {
        for kind in Kind::ALL {
            assert_eq!(plans(kind, 5, 50), plans(kind, 5, 50));
        }
    }
}
