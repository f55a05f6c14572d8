//! What transactions add to the totals: exact integers for the check, and the counts of clause 2.4's and 5.2.5's ranges.

use super::answers::Replies;
use super::scale::DISTRICTS;
use super::transactions::Plan;
use plimsoll_record::Outcome;

/// Names, in the order of [`Total`]. Those with `_lost` may or may not have happened; those with `_drawn` count New-Orders that
/// were done, rolled back or not.
pub(super) const NAMES: [&str; 20] = [
    "new_order_done",
    "new_order_lost",
    "new_order_rolled_back",
    "order_lines_done",
    "order_lines_lost",
    "order_lines_drawn",
    "remote_lines_drawn",
    "payment_done",
    "payment_lost",
    "payment_cents_done",
    "payment_cents_lost",
    "payment_remote",
    "payment_by_name",
    "order_status_done",
    "order_status_by_name",
    "delivery_done",
    "delivery_lost",
    "orders_delivered_done",
    "orders_delivered_lost",
    "districts_skipped",
];

#[derive(Clone, Copy)]
enum Total {
    NewOrderDone,
    NewOrderLost,
    NewOrderRolledBack,
    OrderLinesDone,
    OrderLinesLost,
    OrderLinesDrawn,
    RemoteLinesDrawn,
    PaymentDone,
    PaymentLost,
    PaymentCentsDone,
    PaymentCentsLost,
    PaymentRemote,
    PaymentByName,
    OrderStatusDone,
    OrderStatusByName,
    DeliveryDone,
    DeliveryLost,
    OrdersDeliveredDone,
    OrdersDeliveredLost,
    DistrictsSkipped,
}

/// Adds a transaction that ended to `totals`.
pub(super) fn tally(plan: &Plan, replies: &Replies, outcome: Outcome, totals: &mut [i64]) {
    let mut add = |total: Total, count: i64| totals[total as usize] += count;
    match outcome {
        Outcome::Done => done(plan, replies, &mut add),
        Outcome::Lost => lost(plan, replies, &mut add),
        Outcome::Failed | Outcome::Skipped => {}
    }
}

fn done(plan: &Plan, replies: &Replies, add: &mut impl FnMut(Total, i64)) {
    match plan {
        Plan::NewOrder(order) => {
            let lines = order.lines().len() as i64;
            add(Total::OrderLinesDrawn, lines);
            add(Total::RemoteLinesDrawn, order.remote_lines() as i64);
            if order.rolls_back() {
                add(Total::NewOrderRolledBack, 1);
            } else {
                add(Total::NewOrderDone, 1);
                add(Total::OrderLinesDone, lines);
            }
        }
        Plan::Payment(payment) => {
            add(Total::PaymentDone, 1);
            add(Total::PaymentCentsDone, payment.cents);
            add(Total::PaymentRemote, payment.is_remote().into());
            add(Total::PaymentByName, payment.wanted.is_name().into());
        }
        Plan::OrderStatus(status) => {
            add(Total::OrderStatusDone, 1);
            add(Total::OrderStatusByName, status.wanted.is_name().into());
        }
        Plan::Delivery(_) => {
            let delivered = delivered(replies);
            add(Total::DeliveryDone, 1);
            add(Total::OrdersDeliveredDone, delivered);
            add(Total::DistrictsSkipped, DISTRICTS - delivered);
        }
        Plan::StockLevel(_) => {}
    }
}

/// What a transaction without a reply may have done, at most. A call of a function is sent with its COMMIT, so that nothing is
/// known of how many orders a lost one delivered.
fn lost(plan: &Plan, replies: &Replies, add: &mut impl FnMut(Total, i64)) {
    match plan {
        Plan::NewOrder(order) => {
            add(Total::NewOrderLost, 1);
            add(Total::OrderLinesLost, order.lines().len() as i64);
        }
        Plan::Payment(payment) => {
            add(Total::PaymentLost, 1);
            add(Total::PaymentCentsLost, payment.cents);
        }
        Plan::Delivery(_) => {
            let is_known = replies.step > 1;
            add(Total::DeliveryLost, 1);
            add(Total::OrdersDeliveredLost, if is_known { delivered(replies) } else { DISTRICTS });
        }
        Plan::OrderStatus(_) | Plan::StockLevel(_) => {}
    }
}

fn delivered(replies: &Replies) -> i64 {
    replies.delivered.iter().flatten().count() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_their_totals_are() {
        for (total, name) in [
            (Total::NewOrderDone, "new_order_done"),
            (Total::OrderLinesDrawn, "order_lines_drawn"),
            (Total::PaymentCentsLost, "payment_cents_lost"),
            (Total::OrderStatusByName, "order_status_by_name"),
            (Total::DistrictsSkipped, "districts_skipped"),
        ] {
            assert_eq!(NAMES[total as usize], name);
        }
    }
}
