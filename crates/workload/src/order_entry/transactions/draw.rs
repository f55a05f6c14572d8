//! What transactions draw, and from what.

use super::customer::Wanted;
use crate::order_entry::numbers::{Constants, NonUniform};
use crate::order_entry::scale::DISTRICTS;
use plimsoll_keys::Words;

/// What transactions draw from.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Draw {
    pub(super) warehouses: i64,
    pub(super) customers: NonUniform,
    pub(super) items: NonUniform,
    pub(super) names: NonUniform,
}

impl Draw {
    pub(in crate::order_entry) fn new(warehouses: i64, constants: &Constants) -> Self {
        let (customers, items) = (constants.customer(), constants.item());
        Self { warehouses, customers, items, names: constants.last_name_of_run() }
    }

    pub(super) fn district(words: &Words, field: u64) -> i32 {
        words.between(field, 1, DISTRICTS) as i32
    }

    /// Any warehouse but `home`, all alike; `home` if there is no other.
    pub(super) fn other_than(&self, home: i32, words: &Words, field: u64) -> i32 {
        if self.warehouses == 1 {
            return home;
        }
        let other = words.between(field, 1, self.warehouses - 1) as i32;
        other + i32::from(other >= home)
    }

    /// 60 % by last name, 40 % by number; takes `field` and the two after it.
    pub(super) fn customer(&self, words: &Words, field: u64) -> Wanted {
        if words.below(field, 100) < 60 {
            Wanted::Name(self.names.draw(words, field + 1) as i32)
        } else {
            Wanted::Number(self.customers.draw(words, field + 1) as i32)
        }
    }
}
