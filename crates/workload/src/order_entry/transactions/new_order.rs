//! New-Order (clause 2.4): reads the customer and the taxes, takes the next number of the district, takes each line from its
//! stock, and inserts the order with its lines.
//!
//! Two round trips: what the plan alone decides; then what hangs on the order's number, the prices and the stocks' words. Lines
//! are in the order of their items, so stocks are locked in one order by all. One in a hundred orders asks for an item that does
//! not exist in its last line: everything else is done, and then rolled back. That is done work, and no failure.

use super::customer::Site;
use super::draw::Draw;
use super::trips::{begin, commit, one, trip};
use crate::order_entry::answers::{Replies, Values, timestamp_us};
use crate::order_entry::numbers::last_name;
use crate::order_entry::rows::Rows;
use crate::order_entry::scale::{ITEMS, LINES_MAX, LINES_MIN, ORDERS};
use crate::order_entry::statements::{
    CUSTOMER_AND_TAX, INSERT_LINE, INSERT_NEW_ORDER, INSERT_ORDER, ITEM, NEXT_ORDER, ROLLBACK, STOCK,
};
use crate::workload::RoundTrip;
use plimsoll_keys::Words;
use plimsoll_target::postgres::Connection;

/// A quantity in stock is never outside these: it starts inside, and the rule keeps it there.
const STOCK_QUANTITIES: std::ops::RangeInclusive<i32> = 10..=100;
/// Statements before those of the lines in the first round trip: BEGIN, the district, the customer.
const BEFORE_LINES: usize = 3;
/// The statements of a line in the first round trip: its item, its stock.
const A_LINE: usize = 2;
/// In the second round trip the order and the new order stand before the lines.
const BEFORE_INSERTED_LINES: usize = 2;
/// An item that does not exist.
const UNUSED_ITEM: i32 = ITEMS as i32 + 1;

/// A line of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::order_entry) struct Line {
    pub(in crate::order_entry) item: i32,
    /// The warehouse that supplies it.
    pub(in crate::order_entry) supply: i32,
    pub(in crate::order_entry) quantity: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::order_entry) struct NewOrder {
    pub(in crate::order_entry) site: Site,
    pub(in crate::order_entry) customer: i32,
    lines: [Line; LINES_MAX as usize],
    count: usize,
}

/// Fields of the transaction's words; those of the lines begin at the last, eight for each.
const LINES_FIELD: u64 = 16;
const FIELDS_A_LINE: u64 = 8;

impl NewOrder {
    pub(super) fn draw(draw: &Draw, words: &Words, warehouse: i32) -> Self {
        let count = words.between(4, LINES_MIN, LINES_MAX) as usize;
        let mut lines = [Line::default(); LINES_MAX as usize];
        for (place, line) in lines[..count].iter_mut().enumerate() {
            let field = LINES_FIELD + FIELDS_A_LINE * place as u64;
            let remote = words.below(field + 3, 100) == 0;
            *line = Line {
                item: draw.items.draw(words, field) as i32,
                supply: if remote { draw.other_than(warehouse, words, field + 4) } else { warehouse },
                quantity: words.between(field + 2, 1, 10) as i32,
            };
        }
        if words.below(5, 100) == 0 {
            lines[count - 1].item = UNUSED_ITEM;
        }
        lines[..count].sort_unstable_by_key(|line| (line.item, line.supply));
        let site = Site { warehouse, district: Draw::district(words, 0) };
        Self { site, customer: draw.customers.draw(words, 2) as i32, lines, count }
    }

    pub(in crate::order_entry) fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    /// Whether the last item does not exist.
    pub(in crate::order_entry) fn rolls_back(&self) -> bool {
        self.lines[self.count - 1].item == UNUSED_ITEM
    }

    pub(in crate::order_entry) fn remote_lines(&self) -> usize {
        self.lines().iter().filter(|line| line.supply != self.site.warehouse).count()
    }

    pub(super) fn next(&self, replies: &mut Replies, to: &mut Connection) -> Option<RoundTrip> {
        match replies.step {
            0 => Some(self.look(to)),
            1 => Some(self.insert(replies, to)),
            _ => None,
        }
    }

    fn look(&self, to: &mut Connection) -> RoundTrip {
        let Site { warehouse, district } = self.site;
        begin(to);
        to.queue_statement(NEXT_ORDER, |values| [warehouse, district].iter().for_each(|&id| values.integer(id)));
        to.queue_statement(CUSTOMER_AND_TAX, |values| {
            [warehouse, district, self.customer].iter().for_each(|&id| values.integer(id));
        });
        for line in self.lines() {
            to.queue_statement(ITEM, |values| values.integer(line.item));
            let remote = i32::from(line.supply != warehouse);
            to.queue_statement(STOCK, |values| {
                [line.supply, line.item, line.quantity, remote, district].iter().for_each(|&n| values.integer(n));
            });
        }
        trip(BEFORE_LINES - 1 + A_LINE * self.count)
    }

    fn insert(&self, replies: &Replies, to: &mut Connection) -> RoundTrip {
        let Site { warehouse, district } = self.site;
        let all_local = i32::from(self.remote_lines() == 0);
        to.queue_statement(INSERT_ORDER, |values| {
            let numbers = [warehouse, district, replies.order, self.customer, self.count as i32, all_local];
            numbers.iter().for_each(|&n| values.integer(n));
        });
        to.queue_statement(INSERT_NEW_ORDER, |values| {
            [warehouse, district, replies.order].iter().for_each(|&n| values.integer(n));
        });
        let known = self.count - usize::from(replies.invalid_item);
        for (place, line) in self.lines()[..known].iter().enumerate() {
            to.queue_statement(INSERT_LINE, |values| {
                let numbers =
                    [warehouse, district, replies.order, place as i32 + 1, line.item, line.supply, line.quantity];
                numbers.iter().for_each(|&n| values.integer(n));
                values.numeric(replies.prices[place] * i64::from(line.quantity), 2);
                values.text(&replies.infos[place]);
            });
        }
        let statements = BEFORE_INSERTED_LINES + known;
        if replies.invalid_item {
            to.queue_statement(ROLLBACK, |_| {});
            return trip(statements);
        }
        commit(to, statements)
    }

    pub(super) fn row(&self, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
        let Site { warehouse, district } = self.site;
        match (replies.step, replies.statement) {
            (1, 1) => {
                replies.order = replies.needs(values.integer(), "the order's number");
                let (order, loaded) = (replies.order, i64::from(replies.order) > ORDERS);
                replies.must(loaded, || format!("order {order} is one of those that were loaded"));
                let tax = values.scaled(4) == Some(rows.district(warehouse.into(), district.into()).tax);
                replies.must(tax, || format!("the tax of district {district} is not as loaded"));
            }
            (1, 2) => self.judge_customer(rows, replies, values),
            (1, statement) => {
                let place = (statement - BEFORE_LINES) / A_LINE;
                match (statement - BEFORE_LINES) % A_LINE {
                    0 => self.hear_item(rows, replies, place, values),
                    _ => self.hear_stock(rows, replies, place, values),
                }
            }
            (_, 0) => replies.made_us = replies.needs(values.text().and_then(timestamp_us), "the order's time"),
            _ => {}
        }
    }

    fn judge_customer(&self, rows: &Rows, replies: &mut Replies, mut values: Values<'_>) {
        let Site { warehouse, district } = self.site;
        let loaded = rows.customer(warehouse.into(), district.into(), self.customer.into());
        let credit: &[u8] = if loaded.is_bad_credit { b"BC" } else { b"GC" };
        let right = values.text() == Some(last_name(loaded.last).as_bytes())
            && values.text() == Some(credit)
            && values.scaled(4) == Some(loaded.discount)
            && values.scaled(4) == Some(rows.warehouse(warehouse.into()).tax);
        replies.must(right, || format!("customer {} of {:?} is not as loaded", self.customer, self.site));
    }

    fn hear_item(&self, rows: &Rows, replies: &mut Replies, place: usize, mut values: Values<'_>) {
        let item = self.lines[place].item;
        replies.prices[place] = replies.needs(values.scaled(2), "an item's price");
        let right = replies.prices[place] == rows.item(item.into()).price()
            && values.text().is_some_and(|name| (14..=24).contains(&name.len()))
            && values.text().is_some_and(is_original) == rows.item(item.into()).is_original();
        replies.must(right, || format!("item {item} is not as loaded"));
    }

    fn hear_stock(&self, rows: &Rows, replies: &mut Replies, place: usize, mut values: Values<'_>) {
        let Line { item, supply, .. } = self.lines[place];
        let quantity = replies.needs(values.integer(), "a quantity in stock");
        replies
            .must(STOCK_QUANTITIES.contains(&quantity), || format!("{quantity} of item {item} in warehouse {supply}"));
        let right = values.text().is_some_and(is_original) == rows.stock(supply.into(), item.into()).is_original();
        replies.must(right, || format!("stock of item {item} in warehouse {supply} is not as loaded"));
        let info = replies.needs(values.text().and_then(|info| info.try_into().ok()), "a stock's word on the district");
        replies.infos[place] = info;
    }

    pub(super) fn completed(&self, replies: &mut Replies, count: Option<i64>) {
        let statement = replies.statement;
        if replies.step == 1 && statement >= BEFORE_LINES {
            let line = self.lines[(statement - BEFORE_LINES) / A_LINE];
            let exists = line.item != UNUSED_ITEM;
            replies.invalid_item |= count == Some(0);
            replies.must(count == Some(i64::from(exists)), || format!("{count:?} rows of item {}", line.item));
            return;
        }
        let known = self.count - usize::from(replies.invalid_item);
        let has_count = match replies.step {
            1 => statement > 0,
            _ => statement < BEFORE_INSERTED_LINES + known,
        };
        if has_count {
            one(replies, count, "a statement of New-Order");
        }
    }
}

/// The mark in the data of an item or a stock (clause 2.4.2.2: both have it, and the line is a brand's).
fn is_original(data: &[u8]) -> bool {
    data.windows(8).any(|part| part == b"ORIGINAL")
}
