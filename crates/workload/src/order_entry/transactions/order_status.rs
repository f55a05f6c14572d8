//! Order-Status (clause 2.6): a customer's balance, newest order and its lines. Reads only.
//!
//! Two round trips, or three if the customer is to be found by name first. Under read committed a Delivery may come between
//! the order and its lines; a stricter level is a parameter.

use super::customer::{Site, Wanted};
use super::draw::Draw;
use super::trips::{commit, one, trip};
use crate::order_entry::answers::{Heard, Values};
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

    pub(super) fn next(&self, heard: &mut Heard, to: &mut Connection) -> Option<RoundTrip> {
        let Site { warehouse, district } = self.site;
        match (self.wanted.stage(heard.step), self.wanted) {
            (0, Wanted::Name(name)) => Some(Wanted::search(name, self.site, to)),
            (1, wanted) => {
                wanted.settle(heard, to);
                for statement in [CUSTOMER, NEWEST_ORDER] {
                    to.queue_statement(statement, |values| {
                        [warehouse, district, heard.customer].iter().for_each(|&n| values.integer(n));
                    });
                }
                Some(trip(2))
            }
            (2, _) => {
                to.queue_statement(LINES, |values| {
                    [warehouse, district, heard.order].iter().for_each(|&n| values.integer(n));
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

    pub(super) fn row(&self, rows: &Rows, heard: &mut Heard, mut values: Values<'_>) {
        match self.wanted.stage(heard.step - 1) {
            0 => {
                let number = heard.needs(values.integer(), "a customer's number");
                heard.matches.push(number);
            }
            1 if heard.statement == self.customer_at() => {
                let balance = values.scaled(2);
                heard.needs(balance, "a balance");
                let (_first, _middle) = (values.text(), values.text());
                self.wanted.judge(rows, self.site, values.text(), heard);
            }
            1 => {
                heard.order = heard.needs(values.integer(), "an order's number");
                let (_entered, _carrier) = (values.text(), values.text());
                let lines = heard.needs(values.integer(), "an order's count of lines");
                heard.must((LINES_MIN..=LINES_MAX).contains(&lines.into()), || format!("an order of {lines} lines"));
                heard.lines = lines.unsigned_abs();
            }
            _ => {
                let item = heard.needs(values.integer(), "a line's item");
                heard.must((1..=ITEMS).contains(&item.into()), || format!("a line of item {item}"));
            }
        }
    }

    pub(super) fn completed(&self, heard: &mut Heard, count: Option<i64>) {
        match (self.wanted.stage(heard.step - 1), heard.statement) {
            (1, statement) if statement >= self.customer_at() => one(heard, count, "the customer or an order"),
            (2, 0) => {
                let (order, lines) = (heard.order, i64::from(heard.lines));
                heard.must(count == Some(lines), || format!("{count:?} lines of order {order} and not {lines}"));
            }
            _ => {}
        }
    }
}
