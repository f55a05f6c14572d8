//! Stock-Level (clause 2.8): how many items of a district's last 20 orders are low in stock. Reads only.
//!
//! Two round trips: the last orders are counted from the district's next one.

use super::customer::Site;
use super::trips::{begin, commit, one, trip};
use crate::order_entry::answers::{Replies, Values};
use crate::order_entry::scale::LINES_MAX;
use crate::order_entry::statements::{DISTRICT, LOW_STOCKS};
use crate::workload::RoundTrip;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;

/// Orders that are looked at.
const ORDERS: i64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct StockLevel {
    pub(in crate::order_entry) site: Site,
    /// A stock below this is low.
    pub(in crate::order_entry) threshold: i32,
}

impl StockLevel {
    pub(super) fn draw(words: &Words, site: Site) -> Self {
        Self { site, threshold: words.between(0, 10, 20) as i32 }
    }

    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Option<RoundTrip> {
        let Site { warehouse, district } = self.site;
        match replies.step {
            0 => {
                begin(to);
                to.queue_statement(DISTRICT, |values| [warehouse, district].iter().for_each(|&n| values.integer(n)));
                Some(trip(1))
            }
            1 => {
                to.queue_statement(LOW_STOCKS, |values| {
                    [warehouse, district, replies.next_order, self.threshold].iter().for_each(|&n| values.integer(n));
                });
                Some(commit(to, 1))
            }
            _ => None,
        }
    }

    pub(super) fn row(&self, replies: &mut Replies, mut values: Values<'_>) {
        if replies.step == 1 {
            replies.next_order = replies.needs(values.integer(), "the district's next order");
        } else {
            judge_count(replies, values.integer());
        }
    }

    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        if (replies.step, replies.statement) == (1, 1) || (replies.step, replies.statement) == (2, 0) {
            one(replies, count, "a count of low stocks");
        }
    }
}

/// There are no more items than lines.
pub(in crate::order_entry) fn judge_count(replies: &mut Replies, found: Option<i32>) {
    let found = replies.needs(found, "the count of low stocks");
    replies.must((0..=ORDERS * LINES_MAX).contains(&found.into()), || format!("{found} items of {ORDERS} orders"));
}
