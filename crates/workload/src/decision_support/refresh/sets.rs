//! Refresh sets as pure functions of the scale factor and their number.
//!
//! - Set n inserts the orders that follow those loaded and those of the sets before it, as the generator would draw them. Their
//!   keys lie in the gaps that loading leaves: loaded keys have 0 in their fourth and fifth bit, inserted ones 1.
//! - Set n deletes the loaded orders at the places that its number gives it, from the first one on.

use crate::decision_support::function::Function;
use crate::decision_support::rows::{self, RowForm};
use crate::decision_support::scale::{self, ScaleFactor};
use bytes::BytesMut;
use std::fmt::Write;
use std::ops::{Range, RangeInclusive};
use tpchgen::generators::{LineItem, Order};

/// The last set: the thousandth would delete the last of the loaded orders, and its keys would have 2 in those bits.
pub const SETS_MAX: u64 = 999;

/// What of a set can be had as text, for servers that are loaded by their own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPart {
    /// The orders that RF1 inserts.
    Orders,
    /// Their lines.
    Lines,
    /// The keys of the orders that RF2 deletes.
    DeletedKeys,
}

impl SetPart {
    /// The part that goes into the table `name`; `refresh_key` is that of the keys.
    pub fn of_table(name: &str) -> Option<Self> {
        match name {
            "orders" => Some(Self::Orders),
            "lineitem" => Some(Self::Lines),
            "refresh_key" => Some(Self::DeletedKeys),
            _ => None,
        }
    }

    /// The function that needs it.
    pub const fn function(self) -> Function {
        match self {
            Self::Orders | Self::Lines => Function::Rf1,
            Self::DeletedKeys => Function::Rf2,
        }
    }
}

/// A set at a scale factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshSet {
    scale: ScaleFactor,
    number: u64,
}

/// The key of order `index`, counted from 1, with `sequence` in the two bits above the lowest three: each run of eight keys is
/// followed by three that loading leaves free.
pub(in crate::decision_support) fn sparse_key(index: u64, sequence: u64) -> i64 {
    (((((index >> 3) << 2) + sequence) << 3) + (index & 7)) as i64
}

/// Lines of all orders that the first `sets` sets insert.
pub(in crate::decision_support) fn inserted_lines(scale: ScaleFactor, sets: u64) -> u64 {
    scale::lines(scale.orders(), scale.orders() + sets * scale.orders_a_set())
}

/// Lines of all orders that the first `sets` sets delete.
pub(in crate::decision_support) fn deleted_lines(scale: ScaleFactor, sets: u64) -> u64 {
    scale::lines(0, sets * scale.orders_a_set())
}

impl RefreshSet {
    /// Set `number`, counted from 1; `None` above [`SETS_MAX`].
    pub fn new(scale: ScaleFactor, number: u64) -> Option<Self> {
        (1..=SETS_MAX).contains(&number).then_some(Self { scale, number })
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.number
    }

    /// Orders that it inserts, and that it deletes.
    pub fn orders(self) -> u64 {
        self.scale.orders_a_set()
    }

    /// Lines that `function` inserts or deletes.
    pub fn lines(self, function: Function) -> u64 {
        let places = match function {
            Function::Rf1 => self.inserted(),
            Function::Rf2 => self.deleted(),
        };
        scale::lines(places.start, places.end)
    }

    /// Places of the orders that it deletes.
    fn deleted(self) -> Range<u64> {
        (self.number - 1) * self.orders()..self.number * self.orders()
    }

    /// Places of the orders that it inserts, counted on from those loaded.
    fn inserted(self) -> Range<u64> {
        let Range { start, end } = self.deleted();
        self.scale.orders() + start..self.scale.orders() + end
    }

    /// The first and the last key of those that `function` inserts or deletes, and what all of them, and no others between these,
    /// have in the bits of 24.
    pub(super) fn keys(self, function: Function) -> (RangeInclusive<i64>, i64) {
        let (Range { start, end }, sequence) = (self.deleted(), u64::from(function == Function::Rf1));
        (sparse_key(start + 1, sequence)..=sparse_key(end, sequence), 8 * sequence as i64)
    }

    /// Keys of the orders that it deletes, in order.
    pub fn deleted_keys(self) -> impl Iterator<Item = i64> {
        self.deleted().map(|place| sparse_key(place + 1, 0))
    }

    /// Keys of the orders that it inserts, in order.
    pub fn inserted_keys(self) -> impl Iterator<Item = i64> {
        self.deleted().map(|place| sparse_key(place + 1, 1))
    }

    /// The orders that it inserts, each with its key.
    fn keyed_orders(self) -> impl Iterator<Item = (Order<'static>, i64)> {
        let Range { start, end } = self.inserted();
        rows::orders(self.scale, start, end).zip(self.inserted_keys())
    }

    /// Their lines, each with the key of its order.
    fn keyed_lines(self) -> impl Iterator<Item = (LineItem<'static>, i64)> {
        let Range { start, end } = self.inserted();
        let (mut keys, mut key) = (self.inserted_keys(), 0);
        rows::lines(self.scale, start, end).map(move |line| {
            if line.l_linenumber == 1 {
                key = keys.next().unwrap_or_else(|| unreachable!("an order for each first line"));
            }
            (line, key)
        })
    }

    /// Appends the orders that it inserts, in the form of COPY BINARY.
    pub fn write_orders(self, out: &mut BytesMut) {
        self.keyed_orders().for_each(|(order, key)| rows::order(&order, key, out));
    }

    /// Appends their lines.
    pub fn write_lines(self, out: &mut BytesMut) {
        self.keyed_lines().for_each(|(line, key)| rows::line(&line, key, out));
    }

    /// Hands `part` of it to `take` as text, a line a row as [`DecisionSupport::text_of`] has them, or a line a key. Gives how
    /// many they are.
    ///
    /// # Errors
    /// That of `take`.
    ///
    /// [`DecisionSupport::text_of`]: crate::decision_support::DecisionSupport::text_of
    pub fn text_of<E>(self, part: SetPart, take: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let mut text = BytesMut::new();
        let rows = match part {
            SetPart::Orders => {
                let keyed = self.keyed_orders().map(|(order, key)| Order { o_orderkey: key, ..order });
                RowForm::Text.put_all(keyed, &mut text);
                self.orders()
            }
            SetPart::Lines => {
                let keyed = self.keyed_lines().map(|(line, key)| LineItem { l_orderkey: key, ..line });
                RowForm::Text.put_all(keyed, &mut text);
                self.lines(Function::Rf1)
            }
            SetPart::DeletedKeys => {
                for key in self.deleted_keys() {
                    // Room is made as it is needed, so that this cannot fail.
                    let _ = writeln!(text, "{key}");
                }
                self.orders()
            }
        };
        take(&text).map(|()| rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_target::postgres::wire::row_values;
    use std::collections::BTreeSet;
    use tpchgen::generators::OrderGenerator;

    fn scale(value: f64) -> ScaleFactor {
        ScaleFactor::new(value).unwrap()
    }

    fn set(value: f64, number: u64) -> RefreshSet {
        RefreshSet::new(scale(value), number).unwrap()
    }

    #[test]
    fn keys_lie_in_the_gaps_and_no_set_has_one_of_another() {
        assert_eq!([1, 7, 8, 9, 15].map(|index| sparse_key(index, 0)), [1, 7, 32, 33, 39]);
        assert_eq!([1, 7, 8, 9, 15].map(|index| sparse_key(index, 1)), [9, 15, 40, 41, 47]);
        let loaded: BTreeSet<i64> = (1..=15_000).map(OrderGenerator::make_order_key).collect();
        let (mut inserted, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        for number in 1..=SETS_MAX {
            let set = set(0.01, number);
            assert_eq!((set.inserted_keys().count(), set.deleted_keys().count()), (15, 15));
            assert!(set.inserted_keys().all(|key| !loaded.contains(&key) && inserted.insert(key)), "{number}");
            assert!(set.deleted_keys().all(|key| loaded.contains(&key) && deleted.insert(key)), "{number}");
            let between = |function| {
                let (keys, mark) = set.keys(function);
                keys.filter(move |key| key & 24 == mark).collect::<Vec<_>>()
            };
            assert_eq!(between(Function::Rf1), set.inserted_keys().collect::<Vec<_>>(), "{number}");
            assert_eq!(between(Function::Rf2), set.deleted_keys().collect::<Vec<_>>(), "{number}");
        }
        assert_eq!(RefreshSet::new(scale(1.0), 0), None);
        assert_eq!(RefreshSet::new(scale(1.0), SETS_MAX + 1), None);
    }

    /// What of an order does not hang on the scale factor is that of the same place in a larger data set: its date, priority,
    /// comment and the number of its lines (but not its clerk and its customer, of whom there are more).
    #[test]
    fn orders_follow_those_that_were_loaded() {
        let larger: Vec<_> = OrderGenerator::new(0.02, 1, 1).iter().collect();
        for number in [1, 2, 500] {
            let Range { start, end } = set(0.01, number).inserted();
            assert_eq!(start, 15_000 + 15 * (number - 1));
            let orders: Vec<_> = rows::orders(scale(0.01), start, end).collect();
            assert_eq!(orders.len(), 15);
            for (order, other) in orders.iter().zip(&larger[start as usize..end as usize]) {
                assert_eq!(order.o_orderdate, other.o_orderdate);
                assert_eq!((order.o_orderpriority, order.o_comment), (other.o_orderpriority, other.o_comment));
                assert_eq!(order.o_clerk, other.o_clerk, "below scale factor 1 there are as many clerks");
            }
        }
    }

    /// Rows of COPY BINARY follow each other with nothing between; the number of their columns tells where one ends.
    fn rows_of(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut rows = Vec::new();
        while !bytes.is_empty() {
            let (mut at, columns) = (2, u16::from_be_bytes([bytes[0], bytes[1]]));
            (0..columns).for_each(|_| {
                at += 4 + u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            });
            let values = row_values(&bytes[..at]).unwrap();
            rows.push(values.into_iter().map(|value| value.unwrap().to_vec()).collect());
            bytes = &bytes[at..];
        }
        rows
    }

    #[test]
    fn lines_have_the_keys_of_their_orders() {
        let key = |row: &Vec<Vec<u8>>| i64::from_be_bytes(row[0].as_slice().try_into().unwrap());
        for set in [set(0.01, 1), set(0.01, 999), set(0.05, 3)] {
            let (mut orders, mut lines) = (BytesMut::new(), BytesMut::new());
            set.write_orders(&mut orders);
            set.write_lines(&mut lines);
            let (orders, lines) = (rows_of(&orders), rows_of(&lines));
            assert_eq!(orders.iter().map(key).collect::<Vec<_>>(), set.inserted_keys().collect::<Vec<_>>());
            assert_eq!(lines.len() as u64, set.lines(Function::Rf1));
            let of_lines: BTreeSet<i64> = lines.iter().map(key).collect();
            assert_eq!(of_lines, set.inserted_keys().collect());
            let mut last = (0, 0);
            for line in &lines {
                let now = (key(line), i32::from_be_bytes(line[3].as_slice().try_into().unwrap()));
                assert!(now.1 == 1 && now.0 > last.0 || now == (last.0, last.1 + 1), "{last:?} {now:?}");
                last = now;
            }
        }
    }

    /// The text of a set has the keys of its binary form, and otherwise the values of the generator.
    #[test]
    fn a_set_as_text_is_the_set() {
        let text = |set: RefreshSet, name: &str| {
            let part = SetPart::of_table(name).unwrap();
            let mut text = String::new();
            let taken = set.text_of(part, |bytes| std::str::from_utf8(bytes).map(|of_part| text.push_str(of_part)));
            let rows = taken.unwrap();
            assert!(text.ends_with('\n'));
            assert_eq!(
                (rows, part == SetPart::DeletedKeys),
                (text.lines().count() as u64, part.function() == Function::Rf2)
            );
            text.lines().map(|line| line.split('|').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let keys = |rows: &[Vec<String>]| rows.iter().map(|row| row[0].parse::<i64>().unwrap()).collect::<Vec<_>>();
        for set in [set(0.01, 1), set(0.02, 7)] {
            let (orders, lines) = (text(set, "orders"), text(set, "lineitem"));
            assert!(orders.iter().all(|row| row.len() == 9) && lines.iter().all(|row| row.len() == 16));
            assert_eq!(keys(&orders), set.inserted_keys().collect::<Vec<_>>());
            let Range { start, end } = set.inserted();
            let drawn: Vec<Order<'_>> = rows::orders(set.scale, start, end).collect();
            let comments: Vec<&str> = drawn.iter().map(|order| order.o_comment).collect();
            assert_eq!(orders.iter().map(|row| row[8].as_str()).collect::<Vec<_>>(), comments);
            let of_lines: BTreeSet<i64> = keys(&lines).into_iter().collect();
            assert_eq!(of_lines, set.inserted_keys().collect());
            assert_eq!(keys(&text(set, "refresh_key")), set.deleted_keys().collect::<Vec<_>>());
        }
        assert_eq!(SetPart::of_table("customer"), None);
    }

    #[test]
    fn lines_are_counted_without_being_drawn() {
        let sum = |function, sets| (1..=sets).map(|number| set(0.02, number).lines(function)).sum::<u64>();
        assert_eq!(inserted_lines(scale(0.02), 7), sum(Function::Rf1, 7));
        assert_eq!(deleted_lines(scale(0.02), 7), sum(Function::Rf2, 7));
        assert_eq!((inserted_lines(scale(0.02), 0), deleted_lines(scale(0.02), 0)), (0, 0));
    }
}
