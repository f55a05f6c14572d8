//! What the rows hold when they are loaded (clause 4.3.3.1 of TPC-C 5.11): a pure function of (seed, table, key).
//!
//! So what a statement answers can be checked without having been stored, as far as no transaction changes it: names, taxes,
//! prices, discounts. Money is in cents, taxes and discounts in ten-thousandths, times in microseconds since 2000-01-01.

mod facts;

pub(super) use facts::{Customer, Item, Line, Order, Place, Site, Stock};

use super::numbers::{Constants, Text, fill, text};
use super::scale::{CUSTOMERS, DISTRICTS, ITEMS, LINES_MAX, LINES_MIN, ORDERS};
use super::tables::TableId;
use plimsoll_keys::{Permutation, Words};
use std::sync::OnceLock;

/// When customers came, orders were entered and payments made, as the data has it: 2020-01-01. The clock is not asked.
pub(super) const LOADED_AT: i64 = 7305 * 86_400_000_000;
/// Tells the words of the permutations from those of any table's rows.
const PERMUTATIONS: u64 = 0x7065_726d;
/// Orders between two places where the count of lines before them is known.
const ORDERS_A_BLOCK: u64 = 100;

/// The rows at one seed and size.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    seed: u64,
    warehouses: i64,
    constants: Constants,
    /// Lines before each block of orders, and of all; counted when first needed.
    lines_before: OnceLock<Vec<u64>>,
}

impl Rows {
    /// The rows of `warehouses` under `seed`.
    pub(super) fn new(seed: u64, warehouses: u32) -> Self {
        let constants = Constants::of(seed);
        Self { seed, warehouses: warehouses.into(), constants, lines_before: OnceLock::new() }
    }

    pub(super) fn warehouses(&self) -> i64 {
        self.warehouses
    }

    /// The constants of NURand.
    pub(super) fn constants(&self) -> &Constants {
        &self.constants
    }

    fn words(&self, table: TableId, key: i64) -> Words {
        Words::new(self.seed, table as u64, key as u64)
    }

    /// Warehouse `w`, from 1.
    pub(super) fn warehouse(&self, w: i64) -> Site {
        Site::draw(&self.words(TableId::Warehouse, w))
    }

    /// District `d`, from 1, of warehouse `w`.
    pub(super) fn district(&self, w: i64, d: i64) -> Site {
        Site::draw(&self.words(TableId::District, district_place(w, d)))
    }

    /// Customer `c`, from 1, of district `d` of warehouse `w`.
    pub(super) fn customer(&self, w: i64, d: i64, c: i64) -> Customer {
        let words = self.words(TableId::Customer, district_place(w, d) * CUSTOMERS + c - 1);
        Customer::draw(words, c, &self.constants)
    }

    /// H_DATA of the only payment that customer number `place` has made, counted from 0 over all districts.
    pub(super) fn history_data(&self, place: i64) -> Text<24> {
        text(&self.words(TableId::History, place), 0, 12)
    }

    /// Who ordered what in district number `district`, counted from 0 over all warehouses.
    pub(super) fn customers_by_order(&self, district: i64) -> Permutation {
        let seed = Words::new(self.seed, PERMUTATIONS, district as u64).word(0);
        Permutation::new(seed, 0, ORDERS as u64)
    }

    fn lines_of(words: &Words) -> i64 {
        words.between(1, LINES_MIN, LINES_MAX)
    }

    /// Lines of order number `place`, counted from 0 over all districts.
    pub(super) fn lines(&self, place: i64) -> i64 {
        Self::lines_of(&self.words(TableId::Orders, place))
    }

    /// Order number `place`, counted from 0 over all districts; `customers` are those of its district.
    pub(super) fn order(&self, place: i64, customers: &Permutation) -> Order {
        let words = self.words(TableId::Orders, place);
        Order {
            customer: customers.place((place % ORDERS) as u64) as i64 + 1,
            carrier: words.between(0, 1, 10),
            lines: Self::lines_of(&words),
        }
    }

    /// Line `number`, from 1, of order number `order`, counted from 0 over all districts.
    #[inline]
    pub(super) fn line(&self, order: i64, number: i64) -> Line {
        let words = self.words(TableId::OrderLine, order * (LINES_MAX + 1) + number);
        let mut info = [0; 24];
        fill(&mut words.stream(2), &mut info);
        Line { item: words.between(0, 1, ITEMS), amount: words.between(1, 1, 999_999), info }
    }

    fn lines_before(&self) -> &[u64] {
        self.lines_before.get_or_init(|| {
            let orders = self.warehouses * DISTRICTS * ORDERS;
            let mut sum = 0;
            let mut before = vec![0];
            for place in 0..orders {
                sum += self.lines(place) as u64;
                if (place + 1) % ORDERS_A_BLOCK as i64 == 0 {
                    before.push(sum);
                }
            }
            before
        })
    }

    /// Lines of all orders.
    pub(super) fn all_lines(&self) -> u64 {
        self.lines_before().last().copied().unwrap_or(0)
    }

    /// The order, counted from 0 over all districts, that has line `place`, counted from 0 over all orders; and which of its
    /// lines it is, counted from 1.
    pub(super) fn order_of_line(&self, place: u64) -> (i64, i64) {
        let blocks = self.lines_before();
        let block = blocks.partition_point(|&before| before <= place) - 1;
        let mut order = (block as u64 * ORDERS_A_BLOCK) as i64;
        let mut number = (place - blocks[block]) as i64;
        loop {
            let lines = self.lines(order);
            if number < lines {
                return (order, number + 1);
            }
            number -= lines;
            order += 1;
        }
    }

    /// Item `i`, from 1.
    pub(super) fn item(&self, i: i64) -> Item {
        Item::draw(self.words(TableId::Item, i))
    }

    /// The stock of item `i` in warehouse `w`, both from 1.
    pub(super) fn stock(&self, w: i64, i: i64) -> Stock {
        Stock::draw(self.words(TableId::Stock, w * ITEMS + i - 1))
    }
}

/// District `d` of warehouse `w` counted from 0 over all warehouses.
pub(super) fn district_place(w: i64, d: i64) -> i64 {
    (w - 1) * DISTRICTS + d - 1
}
