//! Payment (clause 2.5): a customer pays, to the home warehouse and one of its districts; 15 % of the customers are others'.
//!
//! Two round trips, or three if the customer is to be found by name first. The warehouse's row is the hottest, so it is locked
//! last before the round trip that commits.

use super::customer::{Site, Wanted};
use super::draw::Draw;
use super::trips::{commit, one, trip};
use crate::order_entry::answers::{Replies, Values, timestamp_us};
use crate::order_entry::numbers::last_name;
use crate::order_entry::rows::Rows;
use crate::order_entry::statements::{INSERT_HISTORY, PAY_CUSTOMER, PAY_DISTRICT, PAY_WAREHOUSE};
use crate::workload::RoundTrip;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;
use std::io::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct Payment {
    /// Where it is paid.
    pub(in crate::order_entry) site: Site,
    /// Where the customer is at home.
    pub(in crate::order_entry) of: Site,
    pub(in crate::order_entry) wanted: Wanted,
    pub(in crate::order_entry) cents: i64,
}

/// The statements of the round trip that pays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paying {
    Begin,
    Customer,
    District,
    Warehouse,
}

impl Payment {
    pub(super) fn draw(draw: &Draw, words: &Words, warehouse: i32) -> Self {
        let site = Site { warehouse, district: Draw::district(words, 0) };
        let of = match draw.other_than(warehouse, words, 2) {
            other if other != warehouse && words.below(1, 100) < 15 => {
                Site { warehouse: other, district: Draw::district(words, 3) }
            }
            _ => site,
        };
        Self { site, of, wanted: draw.customer(words, 4), cents: words.between(7, 100, 500_000) }
    }

    pub(in crate::order_entry) fn is_remote(&self) -> bool {
        self.of.warehouse != self.site.warehouse
    }

    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Option<RoundTrip> {
        match (self.wanted.stage(replies.step), self.wanted) {
            (0, Wanted::Name(name)) => Some(Wanted::search(name, self.of, to)),
            (1, wanted) => {
                wanted.settle(replies, to);
                Some(self.pay(replies, to))
            }
            (2, _) => Some(self.insert(replies, to)),
            _ => None,
        }
    }

    fn pay(&self, replies: &mut Replies, to: &mut Connection) -> RoundTrip {
        let (Site { warehouse, district }, of) = (self.site, self.of);
        replies.words.clear();
        let (whole, cents) = (self.cents / 100, self.cents % 100);
        // Writing to memory cannot fail.
        let _ = write!(
            replies.words,
            "{} {} {} {district} {warehouse} {whole}.{cents:02} ",
            replies.customer, of.district, of.warehouse
        );
        to.queue_statement(PAY_CUSTOMER, |values| {
            [of.warehouse, of.district, replies.customer].iter().for_each(|&n| values.integer(n));
            values.numeric(self.cents, 2);
            values.text(&replies.words);
        });
        to.queue_statement(PAY_DISTRICT, |values| {
            [warehouse, district].iter().for_each(|&n| values.integer(n));
            values.numeric(self.cents, 2);
        });
        to.queue_statement(PAY_WAREHOUSE, |values| {
            values.integer(warehouse);
            values.numeric(self.cents, 2);
        });
        replies.words.clear();
        trip(3)
    }

    fn insert(&self, replies: &Replies, to: &mut Connection) -> RoundTrip {
        let (Site { warehouse, district }, of) = (self.site, self.of);
        to.queue_statement(INSERT_HISTORY, |values| {
            [replies.customer, of.district, of.warehouse, district, warehouse].iter().for_each(|&n| values.integer(n));
            values.numeric(self.cents, 2);
            values.text(&replies.words);
        });
        commit(to, 1)
    }

    /// What is being answered in the round trip that pays; a BEGIN stands before if there was none yet.
    fn paying(&self, statement: usize) -> Paying {
        const ORDER: [Paying; 4] = [Paying::Begin, Paying::Customer, Paying::District, Paying::Warehouse];
        ORDER[(statement + usize::from(self.wanted.is_name())).min(3)]
    }

    pub(super) fn row(&self, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
        let Site { warehouse, district } = self.site;
        match self.wanted.stage(replies.step - 1) {
            0 => {
                let number = replies.needs(values.integer(), "a customer's number");
                replies.matches.push(number);
            }
            1 => match self.paying(replies.statement) {
                Paying::Begin => {}
                Paying::Customer => self.judge_customer(rows, replies, values),
                Paying::District => {
                    let name = replies.needs(values.text(), "the district's name");
                    let right = name == rows.district(warehouse.into(), district.into()).name.as_bytes();
                    replies.must(right, || format!("the name of district {district} is not as loaded"));
                    replies.words.extend_from_slice(name);
                }
                Paying::Warehouse => {
                    let name = replies.needs(values.text(), "the warehouse's name");
                    let right = name == rows.warehouse(warehouse.into()).name.as_bytes();
                    replies.must(right, || format!("the name of warehouse {warehouse} is not as loaded"));
                    // The warehouse is answered last and stands first.
                    replies.words.splice(0..0, name.iter().chain(b"    ").copied());
                }
            },
            _ => replies.made_us = replies.needs(values.text().and_then(timestamp_us), "the payment's time"),
        }
    }

    fn judge_customer(&self, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
        let number = replies.customer;
        let loaded = rows.customer(self.of.warehouse.into(), self.of.district.into(), number.into());
        let credit: &[u8] = if loaded.is_bad_credit { b"BC" } else { b"GC" };
        let first = values.text() == Some(loaded.first.as_bytes());
        let middle = values.text() == Some(b"OE");
        let last = values.text();
        self.wanted.judge(rows, self.of, last, replies);
        let mut rest = values;
        // The address, the telephone and since when.
        for _ in 0..7 {
            rest.text();
        }
        let right = first && middle && last == Some(last_name(loaded.last).as_bytes()) && rest.text() == Some(credit);
        replies.must(right, || format!("customer {number} of {:?} is not as loaded", self.of));
    }

    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        match self.wanted.stage(replies.step - 1) {
            0 => {}
            1 if self.paying(replies.statement) == Paying::Begin => {}
            1 => one(replies, count, "a row that is paid to"),
            _ if replies.statement == 0 => one(replies, count, "the history"),
            _ => {}
        }
    }
}
