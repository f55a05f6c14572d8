//! The rows: a pure function of (seed, table, key), of constant width.

use super::tables::TableId;
use bytes::BytesMut;
use plimsoll_keys::{Words, word_text};
use plimsoll_target::postgres::{Form, Parameters, put_row_in};

const NAME_BYTES: usize = 20;
const ADDRESS_BYTES: usize = 40;
const TELEPHONE_BYTES: usize = 12;
const CREDIT_BYTES: usize = 24;
const ITEM_NAME_BYTES: usize = 16;
const DESCRIPTION_BYTES: usize = 64;
/// Items of a loaded order.
const ORDER_ITEMS: usize = 4;
/// Items of a pending order.
pub(super) const PENDING_ITEMS: usize = 3;

/// Loaded dates lie in the ten years from 2010-01-01, counted in days from 2000-01-01.
const FIRST_DAY: i64 = 3653;
const LAST_DAY: i64 = FIRST_DAY + 3652;
/// The day of transaction 0; a day passes every [`TRANSACTIONS_A_DAY`].
const NEW_DAY: i64 = LAST_DAY + 1;
const TRANSACTIONS_A_DAY: u64 = 10_000;
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;
const MICROSECONDS_A_MINUTE: i64 = 60_000_000;

/// The day on which transaction `index` happens, as the data has it; the clock is not asked.
pub(super) fn day_of(index: u64) -> i32 {
    (NEW_DAY + (index / TRANSACTIONS_A_DAY).min(1_000_000) as i64) as i32
}

/// Bytes of a row's values as they are stored: texts and arrays as short values with a one-byte header.
pub(super) fn widths(table: TableId) -> u64 {
    let text = |bytes: usize| 1 + bytes as u64;
    // Array header of one dimension with its 4-byte length replaced by a 1-byte one, then the elements.
    let array = |length: usize, element: u64| 21 + length as u64 * element;
    match table {
        TableId::Customer => 8 + text(NAME_BYTES) + text(ADDRESS_BYTES) + text(TELEPHONE_BYTES) + text(CREDIT_BYTES),
        TableId::CustomerAccount => 8 + 8,
        TableId::History => 8 + 8 + 4 + 4,
        TableId::Item => (8 + text(ITEM_NAME_BYTES) + text(DESCRIPTION_BYTES)).next_multiple_of(8) + 8,
        TableId::Stock => 8 + 8 + 8,
        TableId::Orders => 8 + 8 + 4 + 4 + array(ORDER_ITEMS, 8) + array(ORDER_ITEMS, 4),
        TableId::PendingOrder => (8 + 8 + 8 + array(PENDING_ITEMS, 8)).next_multiple_of(4) + 4,
        TableId::Payment => 8 + 8 + 8 + 4,
        TableId::Delivery => 7 * 8 + text(ADDRESS_BYTES) + text(NAME_BYTES),
    }
}

/// The times of a delivery, in microseconds from 2000-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeliveryTimes {
    pub(super) estimated_arrival: i64,
    pub(super) estimated_departure: i64,
    pub(super) actual_arrival: i64,
    pub(super) actual_departure: i64,
}

impl DeliveryTimes {
    /// Times around `day`, drawn from four fields of `words` from `field` on.
    pub(super) fn draw(words: &Words, field: u64, day: i64) -> Self {
        let minutes = |place: u64, low: i64, high: i64| words.between(field + place, low, high) * MICROSECONDS_A_MINUTE;
        let estimated_departure = day * MICROSECONDS_A_DAY + minutes(0, 0, 1439);
        let estimated_arrival = estimated_departure + minutes(1, 600, 7200);
        Self {
            estimated_arrival,
            estimated_departure,
            actual_arrival: estimated_arrival + minutes(2, -120, 600),
            actual_departure: estimated_departure + minutes(3, 0, 120),
        }
    }

    pub(super) fn put(&self, row: &mut Parameters<'_>) {
        row.timestamp(self.estimated_arrival);
        row.timestamp(self.estimated_departure);
        row.timestamp(self.actual_arrival);
        row.timestamp(self.actual_departure);
    }
}

/// Fills `BYTES` letters from the words of the fields from `field` on, ten letters and a blank each.
fn text<const BYTES: usize>(words: &Words, field: u64) -> [u8; BYTES] {
    let mut text = [b' '; BYTES];
    for (place, part) in text.chunks_mut(11).enumerate() {
        let letters = part.len().min(10);
        word_text(words.word(field + place as u64), &mut part[..letters]);
    }
    text
}

fn telephone(words: &Words, field: u64) -> [u8; TELEPHONE_BYTES] {
    let mut digits = words.below(field, 10_000_000_000);
    let mut text = *b"000-000-0000";
    for place in [11, 10, 9, 8, 6, 5, 4, 2, 1, 0] {
        text[place] = b'0' + (digits % 10) as u8;
        digits /= 10;
    }
    text
}

/// The generator at one seed and size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    seed: u64,
    units: u64,
}

impl Rows {
    pub(super) fn new(seed: u64, units: u64) -> Self {
        Self { seed, units }
    }

    /// Loaded rows of `table`.
    pub(super) fn count(&self, table: TableId) -> u64 {
        table.rows(self.units)
    }

    fn words(&self, table: TableId, key: i64) -> Words {
        Words::new(self.seed, table as u64, key as u64)
    }

    /// A key of `table` that `field` of `words` refers to.
    fn reference(&self, words: &Words, field: u64, table: TableId) -> i64 {
        1 + words.below(field, self.count(table)) as i64
    }

    /// A customer's address and name, which deliveries repeat.
    pub(super) fn put_address_and_name(&self, account: i64, row: &mut Parameters<'_>) {
        let words = self.words(TableId::Customer, account);
        row.text(&text::<ADDRESS_BYTES>(&words, 2));
        row.text(&text::<NAME_BYTES>(&words, 0));
    }

    /// What a customer had spent when the data was loaded, in cents.
    pub(super) fn history_total_spent(&self, account: i64) -> i64 {
        self.words(TableId::History, account).between(0, 0, 50_000_000)
    }

    /// Appends the loaded row `key` (from 1) of `table`, its values in `form`.
    pub(super) fn write(&self, table: TableId, key: i64, form: Form, out: &mut BytesMut) {
        let words = self.words(table, key);
        let cents = |field: u64, high: i64| words.between(field, 100, high);
        let day = |field: u64| words.between(field, FIRST_DAY, LAST_DAY - 30);
        put_row_in(form, out, table.columns().len() as u16, |row| {
            row.bigint(key);
            match table {
                TableId::Customer => {
                    row.text(&text::<NAME_BYTES>(&words, 0));
                    row.text(&text::<ADDRESS_BYTES>(&words, 2));
                    row.text(&telephone(&words, 6));
                    row.text(&text::<CREDIT_BYTES>(&words, 7));
                }
                TableId::CustomerAccount => row.bigint(words.between(0, -100_000, 1_000_000)),
                TableId::History => {
                    let first = day(1);
                    row.bigint(self.history_total_spent(key));
                    row.date(first as i32);
                    row.date(words.between(2, first, LAST_DAY) as i32);
                }
                TableId::Item => {
                    row.text(&text::<ITEM_NAME_BYTES>(&words, 0));
                    row.text(&text::<DESCRIPTION_BYTES>(&words, 2));
                    row.bigint(cents(8, 100_000));
                }
                TableId::Stock => {
                    row.integer(words.between(0, 0, 10_000) as i32);
                    row.bigint(cents(1, 80_000));
                }
                TableId::Orders => {
                    let ordered = day(1);
                    row.bigint(self.reference(&words, 0, TableId::Customer));
                    row.date(ordered as i32);
                    row.date(words.between(2, ordered, ordered + 30) as i32);
                    let place = |offset: u64| std::array::from_fn::<u64, ORDER_ITEMS, _>(|i| offset + i as u64);
                    row.bigint_array(&place(3).map(|field| self.reference(&words, field, TableId::Item)));
                    row.integer_array(&place(7).map(|field| words.between(field, 1, 20) as i32));
                }
                TableId::PendingOrder => {
                    row.bigint(self.reference(&words, 0, TableId::Customer));
                    row.bigint(cents(1, 100_000));
                    let fields: [u64; PENDING_ITEMS] = [3, 4, 5];
                    row.bigint_array(&fields.map(|field| self.reference(&words, field, TableId::Item)));
                    row.date(day(2) as i32);
                }
                TableId::Payment => {
                    row.bigint(self.reference(&words, 0, TableId::Customer));
                    row.bigint(cents(1, 100_000));
                    row.date(day(2) as i32);
                }
                TableId::Delivery => {
                    let account = self.reference(&words, 0, TableId::Customer);
                    row.bigint(account);
                    row.bigint(self.reference(&words, 1, TableId::Item));
                    DeliveryTimes::draw(&words, 3, day(2)).put(row);
                    self.put_address_and_name(account, row);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_target::postgres::wire::row_values;

    #[test]
    fn rows_are_pure_and_every_part_matters() {
        for table in TableId::ALL {
            let written = |seed: u64, key: i64| {
                let mut out = BytesMut::new();
                Rows::new(seed, 1000).write(table, key, Form::Binary, &mut out);
                out
            };
            assert_eq!(written(1, 5), written(1, 5));
            assert_ne!(written(1, 5), written(2, 5));
            assert_ne!(written(1, 5)[12..], written(1, 6)[12..]);
            let values = row_values(&written(1, 5)).unwrap().len();
            assert_eq!(values, table.columns().len());
            let lengths: Vec<usize> = (1..200).map(|key| written(1, key).len()).collect();
            assert!(lengths.iter().all(|length| *length == lengths[0]), "{} has a constant width", table.name());
        }
    }

    #[test]
    fn a_delivery_goes_to_its_customers_address() {
        let rows = Rows::new(3, 100);
        let (mut delivery, mut customer) = (BytesMut::new(), BytesMut::new());
        rows.write(TableId::Delivery, 17, Form::Binary, &mut delivery);
        let delivery = row_values(&delivery).unwrap();
        let account = i64::from_be_bytes(delivery[1].unwrap().try_into().unwrap());
        rows.write(TableId::Customer, account, Form::Binary, &mut customer);
        let customer = row_values(&customer).unwrap();
        assert_eq!((delivery[7], delivery[8]), (customer[2], customer[1]));
    }
}
