//! Order-Status (clause 2.6): a customer's balance, newest order and its lines. Reads only.
//!
//! Two round trips, or three if the customer is to be found by name first. Under read committed a Delivery may come between
//! the order and its lines; a stricter level is a parameter.

use super::customer::{Site, Wanted};
use super::draw::Draw;
use super::trips::{commit, one, trip};
use crate::order_entry::answers::{Replies, Values};
use crate::order_entry::rows::Rows;
use crate::order_entry::scale::{ITEMS, LINES_MAX, LINES_MIN};
use crate::order_entry::statements::{CUSTOMER, LINES, NEWEST_ORDER};
use crate::workload::RoundTrip;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct OrderStatus {
    pub(in crate::order_entry) site: Site,
    pub(in crate::order_entry) wanted: Wanted,
}

impl OrderStatus {
    pub(super) fn draw(draw: &Draw, words: &Words, warehouse: i32) -> Self {
        let site = Site { warehouse, district: Draw::district(words, 0) };
        Self { site, wanted: draw.customer(words, 4) }
    }

    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Option<RoundTrip> {
        let Site { warehouse, district } = self.site;
        match (self.wanted.stage(replies.step), self.wanted) {
            (0, Wanted::Name(name)) => Some(Wanted::search(name, self.site, to)),
            (1, wanted) => {
                wanted.settle(replies, to);
                for statement in [CUSTOMER, NEWEST_ORDER] {
                    to.queue_statement(statement, |values| {
                        [warehouse, district, replies.customer].iter().for_each(|&n| values.integer(n));
                    });
                }
                Some(trip(2))
            }
            (2, _) => {
                to.queue_statement(LINES, |values| {
                    [warehouse, district, replies.order].iter().for_each(|&n| values.integer(n));
                });
                Some(commit(to, 1))
            }
            _ => None,
        }
    }

    /// The place of the customer's statement in its round trip.
    fn customer_at(&self) -> usize {
        usize::from(!self.wanted.is_name())
    }

    pub(super) fn row(&self, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
        match self.wanted.stage(replies.step - 1) {
            0 => {
                let number = replies.needs(values.integer(), "a customer's number");
                replies.matches.push(number);
            }
            1 if replies.statement == self.customer_at() => {
                let balance = values.scaled(2);
                replies.needs(balance, "a balance");
                let (_first, _middle) = (values.text(), values.text());
                self.wanted.judge(rows, self.site, values.text(), replies);
            }
            1 => {
                replies.order = replies.needs(values.integer(), "an order's number");
                let (_entered, _carrier) = (values.text(), values.text());
                let lines = replies.needs(values.integer(), "an order's count of lines");
                replies.must((LINES_MIN..=LINES_MAX).contains(&lines.into()), || format!("an order of {lines} lines"));
                replies.lines = lines.unsigned_abs();
            }
            _ => {
                let item = replies.needs(values.integer(), "a line's item");
                replies.must((1..=ITEMS).contains(&item.into()), || format!("a line of item {item}"));
            }
        }
    }

    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        match (self.wanted.stage(replies.step - 1), replies.statement) {
            (1, statement) if statement >= self.customer_at() => one(replies, count, "the customer or an order"),
            (2, 0) => {
                let (order, lines) = (replies.order, i64::from(replies.lines));
                replies.must(count == Some(lines), || format!("{count:?} lines of order {order} and not {lines}"));
            }
            _ => {}
        }
    }
}
