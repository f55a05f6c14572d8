//! The rows as clause 4.3.3.1 wants them, looked at as they are sent.

use super::*;
use crate::order_entry::encode::NEXT_ORDER;
use crate::order_entry::numbers::last_name;
use crate::order_entry::rows::district_place;
use crate::order_entry::scale::ORDERS;
use bytes::BytesMut;
use plimsoll_target::postgres::wire::row_values;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

type Row = Vec<Option<Vec<u8>>>;

fn data(warehouses: u32) -> Data {
    Data::new(11, warehouses, true)
}

/// Rows `from..to` of `table`.
fn rows(data: &Data, table: TableId, from: u64, to: u64) -> Vec<Row> {
    let row = |place: u64| {
        let mut out = BytesMut::new();
        data.write_rows(table, place, place + 1, &mut out);
        row_values(&out).unwrap().into_iter().map(|value| value.map(<[u8]>::to_vec)).collect()
    };
    (from..to).map(row).collect()
}

fn integer(row: &Row, column: usize) -> i64 {
    let bytes: [u8; 4] = row[column].as_deref().unwrap().try_into().unwrap();
    i32::from_be_bytes(bytes).into()
}

/// A numeric in units of its last digit.
fn numeric(row: &Row, column: usize) -> i64 {
    let words: Vec<i64> = row[column]
        .as_deref()
        .unwrap()
        .chunks(2)
        .map(|word| i16::from_be_bytes(word.try_into().unwrap()).into())
        .collect();
    let (groups, weight, scale) = (&words[4..], words[1], words[3]);
    let groups =
        groups.iter().enumerate().map(|(place, group)| group * 10_i64.pow((4 * (weight + 1 - place as i64)) as u32));
    let ten_thousandths: i64 = groups.sum();
    let sign = if words[2] == 0 { 1 } else { -1 };
    sign * ten_thousandths / 10_i64.pow((4 - scale) as u32)
}

fn text(row: &Row, column: usize) -> &str {
    std::str::from_utf8(row[column].as_deref().unwrap()).unwrap()
}

/// All values lie in `range` and both of its ends are met.
fn fills(range: RangeInclusive<i64>, values: impl Iterator<Item = i64>) {
    let values: BTreeSet<i64> = values.collect();
    assert_eq!((values.first(), values.last()), (Some(range.start()), Some(range.end())));
}

fn lengths(rows: &[Row], column: usize) -> impl Iterator<Item = i64> {
    rows.iter().map(move |row| text(row, column).len() as i64)
}

#[test]
fn a_range_of_rows_is_that_part_of_the_whole() {
    let data = data(2);
    for table in TableId::ALL {
        let count = data.count(table);
        let write = |cuts: &[u64]| {
            let mut out = BytesMut::new();
            cuts.windows(2).for_each(|pair| data.write_rows(table, pair[0], pair[1], &mut out));
            out
        };
        let (from, to) = (count / 2 - count.min(700) / 2, count / 2 + count.min(700) / 2);
        let whole = write(&[from, to]);
        let cuts: Vec<u64> = (from..=to).collect();
        assert_eq!(whole, write(&cuts), "{}", table.name());
        assert_eq!(whole, write(&[from, from + (to - from) / 3, to]), "{}", table.name());
        let mut other = BytesMut::new();
        Data::new(12, 2, true).write_rows(table, from, to, &mut other);
        assert_eq!(whole == other, table == TableId::NewOrder, "{}", table.name());
    }
}

#[test]
fn a_warehouse_and_its_districts_begin_with_the_same_payments() {
    let data = data(200);
    let warehouses = rows(&data, TableId::Warehouse, 0, 200);
    assert!(warehouses.iter().enumerate().all(|(place, row)| integer(row, 0) == place as i64 + 1));
    assert!(warehouses.iter().all(|row| (0..=2000).contains(&numeric(row, 7)) && numeric(row, 8) == 30_000_000));
    fills(6..=10, lengths(&warehouses, 1));
    let districts = rows(&data, TableId::District, 0, 2000);
    assert_eq!((integer(&districts[13], 0), integer(&districts[13], 1)), (4, 2));
    for row in &districts {
        assert!((0..=2000).contains(&numeric(row, 8)));
        assert_eq!((numeric(row, 9), integer(row, 10)), (3_000_000, NEXT_ORDER));
        let zip = text(row, 7);
        assert!(zip.len() == 9 && zip.ends_with("11111") && zip.bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!(text(row, 6).len(), 2);
    }
    (3..6).for_each(|column| fills(10..=20, lengths(&districts, column)));
}

#[test]
fn customers_are_those_of_the_specification() {
    let data = data(1);
    let customers = rows(&data, TableId::Customer, 3000, 6000);
    for (place, row) in customers.iter().enumerate() {
        assert_eq!([integer(row, 0), integer(row, 1), integer(row, 2)], [place as i64 + 1, 2, 1]);
        assert_eq!((text(row, 4), text(row, 11).len()), ("OE", 16));
        assert_eq!([14, 16, 17].map(|column| numeric(row, column)), [5_000_000, -1000, 1000]);
        assert_eq!((integer(row, 18), integer(row, 19)), (1, 0));
        assert!((0..=5000).contains(&numeric(row, 15)) && ["BC", "GC"].contains(&text(row, 13)));
    }
    fills(8..=16, lengths(&customers, 3));
    fills(300..=500, lengths(&customers, 20));
    let bad = rows(&data, TableId::Customer, 0, 30_000).iter().filter(|row| text(row, 13) == "BC").count();
    // 3000 of 30,000; the standard deviation is 52.
    assert!((2740..=3260).contains(&bad), "{bad}");
}

#[test]
fn every_last_name_is_borne_and_some_are_borne_often() {
    let data = data(1);
    let names: Vec<String> =
        rows(&data, TableId::Customer, 0, 3000).iter().map(|row| text(row, 5).to_owned()).collect();
    let name = |number: i64| String::from_utf8(last_name(number).as_bytes().to_vec()).unwrap();
    assert!((0..1000).all(|number| names[number as usize] == name(number)));
    let mut drawn: Vec<usize> =
        (0..1000).map(|number| names[1000..].iter().filter(|&other| *other == name(number)).count()).collect();
    drawn.sort_unstable_by(|a, b| b.cmp(a));
    // An even draw would put some 630 on the 140 names that it meets most often.
    let often: usize = drawn[..140].iter().sum();
    assert!(often > 900, "{often} of 2000");
}

#[test]
fn each_customer_of_a_district_has_ordered_once() {
    let data = data(1);
    let mut ordered = Vec::new();
    for district in [0, 7] {
        let orders = rows(&data, TableId::Orders, district * 3000, (district + 1) * 3000);
        let by: Vec<i64> = orders.iter().map(|row| integer(row, 3)).collect();
        assert_eq!(by.iter().copied().collect::<BTreeSet<_>>(), (1..=ORDERS).collect());
        for (place, row) in orders.iter().enumerate() {
            assert_eq!([integer(row, 0), integer(row, 1), integer(row, 2)], [place as i64 + 1, district as i64 + 1, 1]);
            assert_eq!(row[5].is_none(), place >= 2100);
            assert_eq!(integer(row, 7), 1);
        }
        fills(1..=10, orders[..2100].iter().map(|row| integer(row, 5)));
        fills(5..=15, orders.iter().map(|row| integer(row, 6)));
        let in_place = by.iter().enumerate().filter(|(place, by)| *place as i64 + 1 == **by).count();
        assert!(in_place < 10, "one is expected to be in its place, {in_place} are");
        ordered.push(by);
    }
    assert_ne!(ordered[0], ordered[1]);
}

#[test]
fn lines_follow_their_orders() {
    let data = data(1);
    let (orders, count) = (rows(&data, TableId::Orders, 0, 30_000), data.count(TableId::OrderLine));
    let said: i64 = orders.iter().map(|row| integer(row, 6)).sum();
    assert_eq!(said as u64, count);
    let lines = rows(&data, TableId::OrderLine, 0, 40_000);
    let mut next = lines.iter();
    for order in orders.iter().take(2900) {
        for number in 1..=integer(order, 6) {
            let line = next.next().unwrap();
            let ids: Vec<i64> = (0..4).map(|column| integer(line, column)).collect();
            assert_eq!(ids, [integer(order, 0), integer(order, 1), integer(order, 2), number]);
            let is_delivered = order[5].is_some();
            assert_eq!((line[6].is_some(), numeric(line, 8) == 0), (is_delivered, is_delivered));
            assert_eq!((integer(line, 5), integer(line, 7), text(line, 9).len()), (1, 5, 24));
        }
    }
    let items: BTreeSet<i64> = lines.iter().map(|line| integer(line, 4)).collect();
    assert!(items.first() >= Some(&1) && items.last() <= Some(&100_000));
    // Of 100,000 items, 40,000 draws meet 33,000.
    assert!((32_600..33_400).contains(&items.len()), "{}", items.len());
    let amounts = || lines.iter().map(|line| numeric(line, 8)).filter(|&amount| amount > 0);
    assert!(amounts().max() <= Some(999_999) && amounts().max() > Some(990_000) && amounts().min() < Some(9_999));
    let undelivered = rows(&data, TableId::NewOrder, 900, 1800);
    assert!(undelivered.iter().enumerate().all(|(place, row)| integer(row, 0) == 2101 + place as i64));
    assert!(undelivered.iter().all(|row| (integer(row, 1), integer(row, 2)) == (2, 1)));
}

#[test]
fn items_and_stocks_are_those_of_the_specification() {
    let data = data(2);
    let items = rows(&data, TableId::Item, 0, 100_000);
    fills(1..=10_000, items.iter().map(|row| integer(row, 1)));
    fills(14..=24, lengths(&items, 2));
    fills(100..=10_000, items.iter().map(|row| numeric(row, 3)));
    fills(26..=50, lengths(&items, 4));
    assert!(items.iter().zip(1..).all(|(row, i)| integer(row, 0) == i && numeric(row, 3) == data.rows.item(i).price()));
    let stocks = rows(&data, TableId::Stock, 100_000, 150_000);
    assert!(stocks.iter().zip(1..).all(|(row, i)| (integer(row, 0), integer(row, 1)) == (i, 2)));
    fills(10..=100, stocks.iter().map(|row| integer(row, 2)));
    assert!((3..13).all(|column| lengths(&stocks, column).all(|length| length == 24)));
    assert!(stocks.iter().all(|row| [13, 14, 15].map(|column| integer(row, column)) == [0; 3]));
    assert_eq!(text(&stocks[6], 5).as_bytes(), data.rows.stock(2, 7).info(3));
    let originals = |rows: &[Row], column: usize| -> Vec<i64> {
        rows.iter().filter(|row| text(row, column).contains("ORIGINAL")).map(|row| integer(row, 0)).collect()
    };
    let (of_items, of_stocks) = (originals(&items, 4), originals(&stocks, 16));
    // A tenth; the standard deviations are 95 and 67.
    assert!((9_500..=10_500).contains(&of_items.len()), "{}", of_items.len());
    assert!((4_650..=5_350).contains(&of_stocks.len()), "{}", of_stocks.len());
    assert!(of_items.iter().all(|&i| data.rows.item(i).is_original()));
    assert!(of_stocks.iter().all(|&i| data.rows.stock(2, i).is_original()));
    let begins = items.iter().filter_map(|row| text(row, 4).find("ORIGINAL"));
    fills(0..=42, begins.map(|place| place as i64));
}

#[test]
fn a_payment_was_made_by_each_customer() {
    let data = data(2);
    let history = rows(&data, TableId::History, 33_000, 36_000);
    for (place, row) in history.iter().enumerate() {
        let ids: Vec<i64> = (0..5).map(|column| integer(row, column)).collect();
        assert_eq!((ids, numeric(row, 6)), (vec![place as i64 + 1, 2, 2, 2, 2], 1000));
    }
    fills(12..=24, lengths(&history, 7));
}

#[test]
fn what_is_looked_up_is_what_is_sent() {
    let data = data(3);
    let customer = data.rows.customer(3, 9, 2222);
    let place = district_place(3, 9) as u64 * 3000 + 2221;
    let row = &rows(&data, TableId::Customer, place, place + 1)[0];
    assert_eq!(text(row, 3).as_bytes(), customer.first.as_bytes());
    assert_eq!(text(row, 5).as_bytes(), last_name(customer.last).as_bytes());
    assert_eq!((text(row, 13) == "BC", numeric(row, 15)), (customer.is_bad_credit, customer.discount));
    let district = &rows(&data, TableId::District, 28, 29)[0];
    assert_eq!(numeric(district, 8), data.rows.district(3, 9).tax);
    assert_eq!(text(district, 2).as_bytes(), data.rows.district(3, 9).name.as_bytes());
}
