//! What a row of each table holds, from the words of its key.

use crate::order_entry::numbers::{Constants, Text, below, digits, fill, text};
use crate::order_entry::scale::LAST_NAMES;
use plimsoll_keys::Words;

/// Rows that contain "ORIGINAL", and customers with bad credit: one in so many.
const ONE_IN: u64 = 10;
const ORIGINAL: &[u8] = b"ORIGINAL";

/// Fields of the words of a customer.
mod customer_field {
    pub(super) const FIRST: u64 = 0;
    pub(super) const ADDRESS: u64 = 1;
    pub(super) const PHONE: u64 = 6;
    pub(super) const CREDIT: u64 = 7;
    pub(super) const DISCOUNT: u64 = 8;
    pub(super) const DATA: u64 = 9;
    /// And the one after it.
    pub(super) const LAST: u64 = 10;
}

/// Fields of the words of an item or a stock.
mod stock_field {
    pub(super) const IS_ORIGINAL: u64 = 0;
    pub(super) const DATA: u64 = 1;
    /// Quantity, or price.
    pub(super) const NUMBER: u64 = 2;
    pub(super) const NAME: u64 = 3;
    pub(super) const IMAGE: u64 = 4;
    /// And the nine after it.
    pub(super) const INFO: u64 = 5;
}

/// Streets, city, state and zip.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Place {
    pub(in crate::order_entry) street: [Text<20>; 2],
    pub(in crate::order_entry) city: Text<20>,
    pub(in crate::order_entry) state: Text<2>,
    pub(in crate::order_entry) zip: [u8; 9],
}

impl Place {
    fn draw(words: &Words, field: u64) -> Self {
        let mut zip = *b"000011111";
        zip[..4].copy_from_slice(&digits::<4>(words, field + 4));
        Self {
            street: [text(words, field, 10), text(words, field + 1, 10)],
            city: text(words, field + 2, 10),
            state: text(words, field + 3, 2),
            zip,
        }
    }
}

/// A warehouse or a district: what never changes.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Site {
    pub(in crate::order_entry) name: Text<10>,
    pub(in crate::order_entry) place: Place,
    /// Ten-thousandths.
    pub(in crate::order_entry) tax: i64,
}

impl Site {
    pub(super) fn draw(words: &Words) -> Self {
        Self { name: text(words, 0, 6), place: Place::draw(words, 1), tax: words.between(6, 0, 2000) }
    }
}

/// What never changes of a customer and is returned by transactions.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Customer {
    pub(in crate::order_entry) first: Text<16>,
    /// The number of the last name, 0 to 999.
    pub(in crate::order_entry) last: i64,
    pub(in crate::order_entry) is_bad_credit: bool,
    /// Ten-thousandths.
    pub(in crate::order_entry) discount: i64,
    words: Words,
}

impl Customer {
    pub(super) fn draw(words: Words, c: i64, constants: &Constants) -> Self {
        let drawn = || constants.last_name_of_load().draw(&words, customer_field::LAST);
        Self {
            first: text(&words, customer_field::FIRST, 8),
            last: if c <= LAST_NAMES { c - 1 } else { drawn() },
            is_bad_credit: words.below(customer_field::CREDIT, ONE_IN) == 0,
            discount: words.between(customer_field::DISCOUNT, 0, 5000),
            words,
        }
    }

    pub(in crate::order_entry) fn place(&self) -> Place {
        Place::draw(&self.words, customer_field::ADDRESS)
    }

    pub(in crate::order_entry) fn phone(&self) -> [u8; 16] {
        digits(&self.words, customer_field::PHONE)
    }

    /// C_DATA as loaded; payments change that of customers with bad credit.
    pub(in crate::order_entry) fn data(&self) -> Text<500> {
        text(&self.words, customer_field::DATA, 300)
    }
}

/// An order as it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct Order {
    pub(in crate::order_entry) customer: i64,
    pub(in crate::order_entry) carrier: i64,
    pub(in crate::order_entry) lines: i64,
}

/// A line of an order as it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct Line {
    pub(in crate::order_entry) item: i64,
    /// In cents, if it is not delivered.
    pub(in crate::order_entry) amount: i64,
    pub(in crate::order_entry) info: [u8; 24],
}

/// An item; nothing changes it.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Item {
    words: Words,
}

impl Item {
    pub(super) fn draw(words: Words) -> Self {
        Self { words }
    }

    pub(in crate::order_entry) fn image(&self) -> i64 {
        self.words.between(stock_field::IMAGE, 1, 10_000)
    }

    pub(in crate::order_entry) fn name(&self) -> Text<24> {
        text(&self.words, stock_field::NAME, 14)
    }

    /// In cents.
    pub(in crate::order_entry) fn price(&self) -> i64 {
        self.words.between(stock_field::NUMBER, 100, 10_000)
    }

    /// True if I_DATA contains "ORIGINAL".
    pub(in crate::order_entry) fn is_original(&self) -> bool {
        is_original(&self.words)
    }

    pub(in crate::order_entry) fn data(&self) -> Text<50> {
        maybe_original(&self.words)
    }
}

/// The stock of an item in a warehouse.
#[derive(Clone, Copy, Debug)]
pub(in crate::order_entry) struct Stock {
    words: Words,
}

impl Stock {
    pub(super) fn draw(words: Words) -> Self {
        Self { words }
    }

    /// As loaded.
    pub(in crate::order_entry) fn quantity(&self) -> i64 {
        self.words.between(stock_field::NUMBER, 10, 100)
    }

    /// S_DIST_01 to S_DIST_10, by district `d` from 1.
    pub(in crate::order_entry) fn info(&self, d: i64) -> [u8; 24] {
        let mut info = [0; 24];
        fill(&mut self.words.stream(stock_field::INFO + d as u64 - 1), &mut info);
        info
    }

    /// True if S_DATA contains "ORIGINAL".
    pub(in crate::order_entry) fn is_original(&self) -> bool {
        is_original(&self.words)
    }

    pub(in crate::order_entry) fn data(&self) -> Text<50> {
        maybe_original(&self.words)
    }
}

fn is_original(words: &Words) -> bool {
    words.below(stock_field::IS_ORIGINAL, ONE_IN) == 0
}

/// I_DATA or S_DATA: 26 to 50 characters, with "ORIGINAL" at a random place if it is an original.
fn maybe_original(words: &Words) -> Text<50> {
    let mut data = text::<50>(words, stock_field::DATA, 26);
    if is_original(words) {
        let room = data.as_bytes().len() - ORIGINAL.len() + 1;
        let from = below(&mut words.stream(stock_field::IS_ORIGINAL), room as u64) as usize;
        data.overwrite(from, ORIGINAL);
    }
    data
}
