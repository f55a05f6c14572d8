//! The rows in the form of COPY BINARY, a range of a table at a time.

use super::data::Data;
use super::numbers::last_name;
use super::rows::{LOADED_AT, Place, Rows, Site};
use super::scale::{CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS, ORDERS, UNDELIVERED};
use super::tables::TableId;
use bytes::BytesMut;
use plimsoll_target::postgres::{Parameters, put_row};

/// Digits after the point of money.
pub(super) const MONEY: u32 = 2;
/// Digits after the point of taxes and discounts.
pub(super) const RATE: u32 = 4;
/// What each customer has paid when it is loaded, in cents.
pub(super) const PAID: i64 = 1000;
/// D_NEXT_O_ID when it is loaded.
pub(super) const NEXT_ORDER: i64 = ORDERS + 1;
/// OL_QUANTITY of lines that are loaded.
const QUANTITY: i32 = 5;

impl Data {
    /// Appends rows `from..to` of `table`.
    pub(super) fn write_rows(&self, table: TableId, from: u64, to: u64, out: &mut BytesMut) {
        let (rows, range) = (&self.rows, from as i64..to as i64);
        match table {
            TableId::Warehouse => range.for_each(|place| warehouse(rows, place + 1, out)),
            TableId::District => range.for_each(|place| district(rows, place, out)),
            TableId::Customer => range.for_each(|place| customer(rows, place, out)),
            TableId::History => range.for_each(|place| history(rows, place, out)),
            TableId::Orders => orders(rows, range, out),
            TableId::NewOrder => range.for_each(|place| new_order(place, out)),
            TableId::OrderLine => order_lines(rows, from, to, out),
            TableId::Stock => range.for_each(|place| stock(rows, place / ITEMS + 1, place % ITEMS + 1, out)),
            TableId::Item => range.for_each(|place| item(rows, place + 1, out)),
        }
    }
}

/// Columns of `table`, as the form wants them.
fn width(table: TableId) -> u16 {
    table.columns().len() as u16
}

/// Number, district and warehouse of a row of a table with `each` rows a district.
fn address(place: i64, each: i64) -> [i32; 3] {
    let district = place / each;
    [place % each + 1, district % DISTRICTS + 1, district / DISTRICTS + 1].map(|id| id as i32)
}

fn put_place(row: &mut Parameters<'_>, place: &Place) {
    place.street.iter().for_each(|street| row.text(street.as_bytes()));
    row.text(place.city.as_bytes());
    row.text(place.state.as_bytes());
    row.text(&place.zip);
}

fn put_site(row: &mut Parameters<'_>, site: &Site, paid: i64) {
    row.text(site.name.as_bytes());
    put_place(row, &site.place);
    row.numeric(site.tax, RATE);
    row.numeric(paid, MONEY);
}

fn warehouse(rows: &Rows, w: i64, out: &mut BytesMut) {
    put_row(out, width(TableId::Warehouse), |row| {
        row.integer(w as i32);
        put_site(row, &rows.warehouse(w), DISTRICTS * CUSTOMERS * PAID);
    });
}

fn district(rows: &Rows, place: i64, out: &mut BytesMut) {
    let (w, d) = (place / DISTRICTS + 1, place % DISTRICTS + 1);
    put_row(out, width(TableId::District), |row| {
        [d, w].iter().for_each(|&id| row.integer(id as i32));
        put_site(row, &rows.district(w, d), CUSTOMERS * PAID);
        row.integer(NEXT_ORDER as i32);
    });
}

fn customer(rows: &Rows, place: i64, out: &mut BytesMut) {
    let [c, d, w] = address(place, CUSTOMERS);
    let customer = rows.customer(w.into(), d.into(), c.into());
    put_row(out, width(TableId::Customer), |row| {
        [c, d, w].iter().for_each(|&id| row.integer(id));
        row.text(customer.first.as_bytes());
        row.text(b"OE");
        row.text(last_name(customer.last).as_bytes());
        put_place(row, &customer.place());
        row.text(&customer.phone());
        row.timestamp(LOADED_AT);
        row.text(if customer.is_bad_credit { b"BC" } else { b"GC" });
        row.numeric(5_000_000, MONEY);
        row.numeric(customer.discount, RATE);
        row.numeric(-PAID, MONEY);
        row.numeric(PAID, MONEY);
        row.integer(1);
        row.integer(0);
        row.text(customer.data().as_bytes());
    });
}

fn history(rows: &Rows, place: i64, out: &mut BytesMut) {
    let [c, d, w] = address(place, CUSTOMERS);
    put_row(out, width(TableId::History), |row| {
        [c, d, w, d, w].iter().for_each(|&id| row.integer(id));
        row.timestamp(LOADED_AT);
        row.numeric(PAID, MONEY);
        row.text(rows.history_data(place).as_bytes());
    });
}

fn orders(rows: &Rows, range: std::ops::Range<i64>, out: &mut BytesMut) {
    for place in range {
        let [o, d, w] = address(place, ORDERS);
        let order = rows.order(place, &rows.customers_by_order(place / ORDERS));
        put_row(out, width(TableId::Orders), |row| {
            [o, d, w, order.customer as i32].iter().for_each(|&id| row.integer(id));
            row.timestamp(LOADED_AT);
            if i64::from(o) < FIRST_UNDELIVERED {
                row.integer(order.carrier as i32)
            } else {
                row.null()
            }
            row.integer(order.lines as i32);
            row.integer(1);
        });
    }
}

fn new_order(place: i64, out: &mut BytesMut) {
    let [o, d, w] = address(place, UNDELIVERED);
    put_row(out, width(TableId::NewOrder), |row| {
        [o + FIRST_UNDELIVERED as i32 - 1, d, w].iter().for_each(|&id| row.integer(id));
    });
}

fn order_lines(rows: &Rows, from: u64, to: u64, out: &mut BytesMut) {
    let (mut order, mut number) = rows.order_of_line(from);
    let mut left = to - from;
    while left > 0 {
        let lines = rows.lines(order);
        let address = address(order, ORDERS);
        while number <= lines && left > 0 {
            order_line(rows, order, address, number, out);
            (number, left) = (number + 1, left - 1);
        }
        (order, number) = (order + 1, 1);
    }
}

#[inline]
fn order_line(rows: &Rows, order: i64, [o, d, w]: [i32; 3], number: i64, out: &mut BytesMut) {
    let line = rows.line(order, number);
    put_row(out, width(TableId::OrderLine), |row| {
        [o, d, w, number as i32, line.item as i32, w].iter().for_each(|&id| row.integer(id));
        let is_delivered = i64::from(o) < FIRST_UNDELIVERED;
        if is_delivered {
            row.timestamp(LOADED_AT)
        } else {
            row.null()
        }
        row.integer(QUANTITY);
        row.numeric(if is_delivered { 0 } else { line.amount }, MONEY);
        row.text(&line.info);
    });
}

fn stock(rows: &Rows, w: i64, i: i64, out: &mut BytesMut) {
    let stock = rows.stock(w, i);
    put_row(out, width(TableId::Stock), |row| {
        [i, w, stock.quantity()].iter().for_each(|&number| row.integer(number as i32));
        (1..=DISTRICTS).for_each(|d| row.text(&stock.info(d)));
        (0..3).for_each(|_| row.integer(0));
        row.text(stock.data().as_bytes());
    });
}

fn item(rows: &Rows, i: i64, out: &mut BytesMut) {
    let item = rows.item(i);
    put_row(out, width(TableId::Item), |row| {
        row.integer(i as i32);
        row.integer(item.image() as i32);
        row.text(item.name().as_bytes());
        row.numeric(item.price(), MONEY);
        row.text(item.data().as_bytes());
    });
}
