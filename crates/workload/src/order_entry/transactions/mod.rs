//! The five transactions by the rules of clauses 2.4 to 2.8: what is drawn, what is sent, and what must be answered.
//!
//! Each goes in a BEGIN ... COMMIT block. Round trips are as few as the data allow: all that does not hang on an answer goes
//! together, and COMMIT with the last statements. What a plan draws is a pure function of (seed, index, terminal).

mod customer;
pub(super) mod delivery;
mod draw;
pub(super) mod new_order;
pub(super) mod order_status;
pub(super) mod payment;
pub(super) mod stock_level;
mod trips;

use super::answers::{Replies, Values};
use super::deck::Kind;
use super::rows::Rows;
use crate::workload::Next;
pub(super) use customer::{Site, Wanted};
use delivery::Delivery;
pub(super) use draw::Draw;
use new_order::NewOrder;
use order_status::OrderStatus;
use payment::Payment;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;
use stock_level::StockLevel;

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
    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Next {
        let trip = match self {
            Self::NewOrder(plan) => plan.next(replies, to),
            Self::Payment(plan) => plan.next(replies, to),
            Self::OrderStatus(plan) => plan.next(replies, to),
            Self::Delivery(plan) => plan.next(replies, to),
            Self::StockLevel(plan) => plan.next(replies, to),
        };
        replies.sent();
        trip.map_or(Next::Complete, Next::RoundTrip)
    }

    /// Hears of a row that answers a client-side statement.
    pub(super) fn row(&self, rows: &Rows, replies: &mut Replies, values: Values<'_>) {
        match self {
            Self::NewOrder(plan) => plan.row(rows, replies, values),
            Self::Payment(plan) => plan.row(rows, replies, values),
            Self::OrderStatus(plan) => plan.row(rows, replies, values),
            Self::Delivery(plan) => plan.row(replies, values),
            Self::StockLevel(plan) => plan.row(replies, values),
        }
    }

    /// Hears that a client-side statement was answered, with `count` rows if it has any.
    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        match self {
            Self::NewOrder(plan) => plan.completed(replies, count),
            Self::Payment(plan) => plan.completed(replies, count),
            Self::OrderStatus(plan) => plan.completed(replies, count),
            Self::Delivery(plan) => plan.completed(replies, count),
            Self::StockLevel(plan) => plan.completed(replies, count),
        }
        replies.statement += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Constants;
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
