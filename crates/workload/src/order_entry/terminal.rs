//! A terminal: what one connection keeps.
//!
//! Connection n belongs to warehouse 1 + n mod W for good, and to its district 1 + (n div W) mod 10, whose stock level it looks
//! at. Ten connections a warehouse are the specification's terminals.

use super::answers::Replies;
use super::deck::{Deck, Kind};
use super::scale::DISTRICTS;
use super::transactions::{Plan, Site};

/// What one connection keeps.
#[derive(Clone, Debug)]
pub struct Terminal {
    pub(super) number: u64,
    pub(super) home: Site,
    pub(super) deck: Deck,
    /// The kind that was drawn while the user paused.
    pub(super) drawn: Option<Kind>,
    /// What is performed, or was last.
    pub(super) index: u64,
    pub(super) plan: Option<Plan>,
    pub(super) replies: Replies,
}

impl Terminal {
    pub(super) fn new(number: u32, warehouses: i64) -> Self {
        let number = u64::from(number);
        let (warehouse, turn) = (number % warehouses as u64, number / warehouses as u64);
        let home = Site { warehouse: 1 + warehouse as i32, district: 1 + (turn % DISTRICTS as u64) as i32 };
        Self { number, home, deck: Deck::PLAYED, drawn: None, index: 0, plan: None, replies: Replies::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_spread_over_warehouses_and_then_districts() {
        let homes: Vec<(i32, i32)> =
            (0..70).map(|number| Terminal::new(number, 3).home).map(|home| (home.warehouse, home.district)).collect();
        assert_eq!(homes[..4], [(1, 1), (2, 1), (3, 1), (1, 2)]);
        assert_eq!((homes[29], homes[30]), ((3, 10), (1, 1)));
        let first_thirty: std::collections::BTreeSet<_> = homes[..30].iter().collect();
        assert_eq!(first_thirty.len(), 30, "ten terminals a warehouse have ten districts");
    }
}
