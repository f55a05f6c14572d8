//! Where a transaction is, and how its customer is named and found.

use super::trips::{begin, trip};
use crate::order_entry::answers::Replies;
use crate::order_entry::numbers::last_name;
use crate::order_entry::rows::Rows;
use crate::order_entry::statements::CUSTOMERS_OF_NAME;
use crate::workload::RoundTrip;
use plimsoll_target::postgres::Connection;

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct Site {
    pub(in crate::order_entry) warehouse: i32,
    pub(in crate::order_entry) district: i32,
}

/// How a customer is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) enum Wanted {
    /// By number.
    Number(i32),
    /// By the number of the last name.
    Name(i32),
}

impl Wanted {
    pub(in crate::order_entry) fn is_name(self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// Which round trip comes of a transaction of one customer: looking for the name is left out if there is none to look for.
    pub(super) fn stage(self, step: u8) -> u8 {
        step + u8::from(!self.is_name())
    }

    /// The round trip that looks for the customers of the name at `site`.
    pub(super) fn search(name: i32, site: Site, to: &mut Connection) -> RoundTrip {
        begin(to);
        to.queue_statement(CUSTOMERS_OF_NAME, |values| {
            [site.warehouse, site.district].iter().for_each(|&n| values.integer(n));
            values.text(last_name(name.into()).as_bytes());
        });
        trip(1)
    }

    /// From now on the customer's number is known.
    pub(super) fn settle(self, replies: &mut Replies, to: &mut Connection) {
        match self {
            Self::Number(number) => {
                begin(to);
                replies.customer = number;
            }
            Self::Name(_) => replies.choose_middle(),
        }
    }

    /// The last name of the customer who was found at `site` is the one that the seed says, and the one that was wanted.
    pub(in crate::order_entry) fn judge(self, rows: &Rows, site: Site, last: Option<&[u8]>, replies: &mut Replies) {
        let number = replies.customer;
        let loaded = rows.customer(site.warehouse.into(), site.district.into(), number.into()).last;
        let wanted = match self {
            Self::Number(_) => loaded,
            Self::Name(name) => name.into(),
        };
        replies.must(loaded == wanted && last == Some(last_name(loaded).as_bytes()), || {
            format!("customer {number} of {site:?} has another last name than loaded")
        });
    }
}
