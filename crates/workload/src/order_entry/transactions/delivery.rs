//! Delivery (clause 2.7): the oldest undelivered order of each district of a warehouse gets a carrier, its lines a time, and
//! its customer the sum. A district without one is skipped, and counted.
//!
//! One transaction for all districts, in three round trips.

use super::customer::Site;
use super::trips::{begin, commit, one, trip};
use crate::order_entry::answers::{Delivered, Replies, Values};
use crate::order_entry::scale::{CUSTOMERS, DISTRICTS};
use crate::order_entry::statements::{CREDIT_CUSTOMER, SET_CARRIER, STAMP_LINES, TAKE_OLDEST};
use crate::workload::RoundTrip;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;

/// The statements of a district in the second round trip: its order, its lines.
const A_DISTRICT: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct Delivery {
    pub(in crate::order_entry) warehouse: i32,
    pub(in crate::order_entry) carrier: i32,
}

impl Delivery {
    pub(super) fn draw(words: &Words, warehouse: i32) -> Self {
        Self { warehouse, carrier: words.between(0, 1, 10) as i32 }
    }

    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Option<RoundTrip> {
        match replies.step {
            0 => {
                begin(to);
                for district in 1..=DISTRICTS as i32 {
                    to.queue_statement(TAKE_OLDEST, |values| {
                        [self.warehouse, district].iter().for_each(|&n| values.integer(n));
                    });
                }
                Some(trip(DISTRICTS as usize))
            }
            // Every district was skipped: nothing was changed.
            1 if taken(replies).next().is_none() => Some(commit(to, 0)),
            1 => {
                for (site, delivered) in taken(replies).map(|(district, of)| (self.site(district), of)) {
                    let key = [site.warehouse, site.district, delivered.order];
                    to.queue_statement(SET_CARRIER, |values| {
                        key.iter().chain([&self.carrier]).for_each(|&n| values.integer(n));
                    });
                    to.queue_statement(STAMP_LINES, |values| key.iter().for_each(|&n| values.integer(n)));
                }
                Some(trip(A_DISTRICT * taken(replies).count()))
            }
            2 if taken(replies).next().is_some() => {
                for (site, delivered) in taken(replies).map(|(district, of)| (self.site(district), of)) {
                    to.queue_statement(CREDIT_CUSTOMER, |values| {
                        [site.warehouse, site.district, delivered.customer].iter().for_each(|&n| values.integer(n));
                        values.numeric(delivered.cents, 2);
                    });
                }
                Some(commit(to, taken(replies).count()))
            }
            _ => None,
        }
    }

    fn site(&self, district: usize) -> Site {
        Site { warehouse: self.warehouse, district: district as i32 + 1 }
    }

    pub(super) fn row(&self, replies: &mut Replies, mut values: Values<'_>) {
        match replies.step {
            1 => {
                let order = replies.needs(values.integer(), "an order's number");
                let district = replies.statement - 1;
                replies.delivered[district] = Some(Delivered { order, ..Delivered::default() });
            }
            2 => {
                let Some(district) = taken(replies).nth(replies.statement / A_DISTRICT).map(|(district, _)| district)
                else {
                    return;
                };
                let mut delivered = replies.delivered[district].unwrap_or_default();
                if replies.statement.is_multiple_of(A_DISTRICT) {
                    delivered.customer = replies.needs(values.integer(), "an order's customer");
                    delivered.lines = replies.needs(values.integer(), "an order's count of lines").unsigned_abs();
                    replies.must((1..=CUSTOMERS).contains(&delivered.customer.into()), || {
                        format!("order {} of customer {}", delivered.order, delivered.customer)
                    });
                } else {
                    let cents = replies.needs(values.scaled(2), "a line's amount");
                    replies.must(cents >= 0, || format!("a line of {cents} cents"));
                    delivered.cents += cents;
                }
                replies.delivered[district] = Some(delivered);
            }
            _ => {}
        }
    }

    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        match replies.step {
            2 => {
                let Some((_, delivered)) = taken(replies).nth(replies.statement / A_DISTRICT) else { return };
                if replies.statement.is_multiple_of(A_DISTRICT) {
                    one(replies, count, "an order that is delivered");
                } else {
                    let Delivered { order, lines, .. } = delivered;
                    replies.must(count == Some(lines.into()), || {
                        format!("{count:?} lines of order {order} and not {lines}")
                    });
                }
            }
            3 if replies.statement < taken(replies).count() => one(replies, count, "a customer"),
            _ => {}
        }
    }
}

/// The districts (from 0) that had an order.
fn taken(replies: &Replies) -> impl Iterator<Item = (usize, Delivered)> {
    let delivered = replies.delivered;
    delivered.into_iter().enumerate().filter_map(|(district, of)| of.map(|of| (district, of)))
}
