//! Which transaction a terminal performs next: the cards of a shuffled deck (clause 5.2.4.2), or weights.
//!
//! Each terminal has a deck of its own and plays it to the end before it shuffles the next, so its shares are exact over every
//! whole deck. A deck's order comes of the words of the transaction that draws its first card: decks differ between terminals
//! and between segments.

use plimsoll_keys::Words;
use serde::{Deserialize, Serialize};

/// A transaction; its number is its place in [`Kind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }
}

/// Weights of the kinds; a kind that is left out has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Weight of New-Orders.
    pub new_order: u32,
    /// Weight of Payments.
    pub payment: u32,
    /// Weight of Order-Statuses.
    pub order_status: u32,
    /// Weight of Deliveries.
    pub delivery: u32,
    /// Weight of Stock-Levels.
    pub stock_level: u32,
}

impl Weights {
    fn each(&self) -> [u64; 5] {
        [self.new_order, self.payment, self.order_status, self.delivery, self.stock_level].map(u64::from)
    }
}

/// The one word that `mix` may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dealt {
    /// 23 cards: ten New-Orders, ten Payments, one of each other.
    #[default]
    Deck,
}

/// How the next transaction is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged, expecting = "\"deck\" or weights: new_order, payment, order_status, delivery, stock_level")]
pub enum Mix {
    /// From each terminal's deck.
    Dealt(Dealt),
    /// Each time anew.
    Weights(Weights),
}

impl Default for Mix {
    fn default() -> Self {
        Self::Dealt(Dealt::Deck)
    }
}

impl Mix {
    /// # Errors
    /// A sentence that names the field.
    pub(super) fn validate(&self) -> Result<(), String> {
        match self {
            Self::Weights(weights) if weights.each().iter().all(|&weight| weight == 0) => {
                Err("workload.mix: every weight is 0".to_owned())
            }
            _ => Ok(()),
        }
    }
}

const CARDS: usize = 23;
const SORTED: [Kind; CARDS] = {
    let mut cards = [Kind::NewOrder; CARDS];
    let mut place = 10;
    while place < 20 {
        cards[place] = Kind::Payment;
        place += 1;
    }
    cards[20] = Kind::OrderStatus;
    cards[21] = Kind::Delivery;
    cards[22] = Kind::StockLevel;
    cards
};

/// A terminal's cards, and how many of them are played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deck {
    cards: [Kind; CARDS],
    played: usize,
}

impl Deck {
    pub(super) const PLAYED: Self = Self { cards: SORTED, played: CARDS };

    /// The next kind by `mix`, drawn with `words` where something is to be drawn.
    pub(super) fn next(&mut self, mix: &Mix, words: &Words) -> Kind {
        match mix {
            Mix::Dealt(Dealt::Deck) => {
                if self.played == CARDS {
                    self.shuffle(words);
                }
                self.played += 1;
                self.cards[self.played - 1]
            }
            Mix::Weights(weights) => by_weight(weights, words),
        }
    }

    /// Fisher and Yates: every order is equally likely.
    fn shuffle(&mut self, words: &Words) {
        *self = Self { cards: SORTED, played: 0 };
        for last in (1..CARDS).rev() {
            self.cards.swap(last, words.below(last as u64, last as u64 + 1) as usize);
        }
    }
}

fn by_weight(weights: &Weights, words: &Words) -> Kind {
    let weights = weights.each();
    let mut bucket = words.below(0, weights.iter().sum());
    for (&weight, kind) in weights.iter().zip(Kind::ALL) {
        match bucket.checked_sub(weight) {
            Some(rest) => bucket = rest,
            None => return kind,
        }
    }
    Kind::StockLevel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(kinds: impl Iterator<Item = Kind>) -> [usize; 5] {
        let mut counts = [0; 5];
        kinds.for_each(|kind| counts[kind as usize] += 1);
        counts
    }

    #[test]
    fn the_shares_of_each_deck_are_exact() {
        let mut deck = Deck::PLAYED;
        let drawn: Vec<Kind> = (0..2300).map(|index| deck.next(&Mix::default(), &Words::new(7, 1, index))).collect();
        for cards in drawn.chunks(CARDS) {
            assert_eq!(counted(cards.iter().copied()), [10, 10, 1, 1, 1]);
        }
        assert_ne!(drawn[..CARDS], drawn[CARDS..2 * CARDS]);
    }

    #[test]
    fn every_place_has_every_kind() {
        // A Delivery is at each of the 23 places once in 23 decks: 435 of 10,000, with a standard deviation of 20.
        let mut counts = [0; CARDS];
        for index in 0..10_000 {
            let mut deck = Deck::PLAYED;
            deck.shuffle(&Words::new(3, 0, index));
            counts[deck.cards.iter().position(|&card| card == Kind::Delivery).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (335..=535).contains(count)), "{counts:?}");
    }

    #[test]
    fn weights_are_kept() {
        let mix: Mix = serde_json::from_str(r#"{"payment": 3, "stock_level": 1}"#).unwrap();
        let mut deck = Deck::PLAYED;
        let counts = counted((0..40_000).map(|index| deck.next(&mix, &Words::new(7, 1, index))));
        assert_eq!(counts[1] + counts[4], 40_000);
        assert!(counts[1].abs_diff(30_000) < 400, "{counts:?}");
    }
}
