//! What the server has answered to a transaction so far, and how its rows are read.
//!
//! Answers are text in every mode of sending, so there is one reader. A row that is not as the rules have it makes the round
//! trip wrong; the first fault is kept.

use super::scale::{DISTRICTS, LINES_MAX};
use plimsoll_target::postgres::days_from_2000;

/// Walks the values of a DataRow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    rest: &'a [u8],
}

impl<'a> Values<'a> {
    /// Those of a DataRow's body.
    pub(super) fn of(body: &'a [u8]) -> Self {
        Self { rest: body.get(2..).unwrap_or_default() }
    }

    /// The next value; `None` for NULL and at the end.
    #[inline]
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let (length, after) = self.rest.split_first_chunk::<4>()?;
        self.rest = after;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (value, after) = self.rest.split_at_checked(length)?;
        self.rest = after;
        Some(value)
    }

    /// The next value, a whole number.
    #[inline]
    pub(super) fn integer(&mut self) -> Option<i32> {
        self.scaled(0)?.try_into().ok()
    }

    /// The next value, a number with `digits` decimals, in units of the last one.
    #[inline]
    pub(super) fn scaled(&mut self, digits: u32) -> Option<i64> {
        decimal(self.text()?, digits)
    }
}

/// The number that `text` writes, in units of the last of `digits` decimals; it may have fewer decimals and not more.
#[inline]
fn decimal(text: &[u8], digits: u32) -> Option<i64> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let (mut value, mut decimals) = (0_i64, None);
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                decimals = decimals.map(|count: u32| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return None,
        }
    }
    let missing = digits.checked_sub(decimals.unwrap_or(0))?;
    let value = value.checked_mul(10_i64.checked_pow(missing)?)?;
    (!text.is_empty()).then_some(if negative { -value } else { value })
}

const DAYS_FROM_1970_TO_2000: i64 = 10_957;

/// The time that `text` writes as `2024-02-29 23:59:59.5`, in microseconds since 1970 of the same clock.
pub(super) fn timestamp_us(text: &[u8]) -> Option<i64> {
    let field = |from: usize, to: usize| decimal(text.get(from..to)?, 0);
    let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if separators.iter().any(|&(place, byte)| text.get(place) != Some(&byte)) {
        return None;
    }
    let days = DAYS_FROM_1970_TO_2000 + days_from_2000(field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let minutes = (days * 24 + field(11, 13)?) * 60 + field(14, 16)?;
    Some(minutes * 60_000_000 + decimal(text.get(17..)?, 6)?)
}

/// Of a district whose oldest order is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) order: i32,
    pub(super) customer: i32,
    pub(super) cents: i64,
    pub(super) lines: u32,
}

/// What was answered; room for it is kept from one transaction to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Replies {
    /// Round trips sent.
    pub(super) step: u8,
    /// Which statement of the round trip is being answered.
    pub(super) statement: usize,
    wrong: Option<String>,
    /// The order that was made or found.
    pub(super) order: i32,
    /// The customer, once known.
    pub(super) customer: i32,
    /// When the order was entered or the payment made, as the server has it, in microseconds since 1970.
    pub(super) made_us: i64,
    /// New-Order: an item does not exist.
    pub(super) invalid_item: bool,
    /// New-Order: prices of the lines' items, in cents.
    pub(super) prices: [i64; LINES_MAX as usize],
    /// New-Order: what the stocks say of the district.
    pub(super) infos: [[u8; 24]; LINES_MAX as usize],
    /// Customers of a name, by first name.
    pub(super) matches: Vec<i32>,
    /// Payment: what the history says of it.
    pub(super) words: Vec<u8>,
    /// Order-Status: lines that the order says it has.
    pub(super) lines: u32,
    /// Delivery: of the districts that had an order.
    pub(super) delivered: [Option<Delivered>; DISTRICTS as usize],
    /// Stock-Level: the order that the district makes next.
    pub(super) next_order: i32,
}

impl Replies {
    /// Nothing was answered yet of a transaction that begins, or begins again.
    pub(super) fn forget(&mut self) {
        (self.step, self.statement, self.wrong) = (0, 0, None);
        (self.order, self.customer, self.made_us, self.invalid_item) = (0, 0, 0, false);
        (self.lines, self.next_order) = (0, 0);
        self.matches.clear();
        self.words.clear();
        self.delivered = [None; DISTRICTS as usize];
    }

    /// A round trip is sent.
    pub(super) fn sent(&mut self) {
        self.step += 1;
        self.statement = 0;
    }

    /// An answer is not as the rules have it: `what`, unless `right`.
    #[inline]
    pub(super) fn must(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right && self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    /// The same for a value that must be there.
    #[inline]
    pub(super) fn needs<T: Default>(&mut self, value: Option<T>, what: &str) -> T {
        self.must(value.is_some(), || format!("{what} is missing or malformed"));
        value.unwrap_or_default()
    }

    /// What is wrong, if anything is.
    pub(super) fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }

    /// The customer of position ceil(n / 2) among those of the name, which came ordered by first name (clause 2.5.2.2).
    pub(super) fn choose_middle(&mut self) {
        let middle = self.matches.len().div_ceil(2).checked_sub(1).map(|place| self.matches[place]);
        self.customer = self.needs(middle, "a customer of the name");
    }
}

/// The count at the end of a command tag such as `INSERT 0 10`.
pub(super) fn count_of(tag: &[u8]) -> Option<i64> {
    let digits = tag.rsplit(|&byte| byte == b' ').next()?;
    decimal(digits, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, digits, value) in [
            ("0.01", 2, Some(1)),
            ("-10.00", 2, Some(-1000)),
            ("50000", 2, Some(5_000_000)),
            ("0.1234", 4, Some(1234)),
            ("7", 0, Some(7)),
            ("1.005", 2, None),
            ("", 0, None),
            ("-", 0, None),
            ("1.2.3", 4, None),
            ("NaN", 2, None),
            ("99999999999999999999", 0, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), digits), value, "{text}");
        }
        assert_eq!((count_of(b"INSERT 0 10"), count_of(b"UPDATE 1"), count_of(b"BEGIN")), (Some(10), Some(1), None));
    }

    #[test]
    fn values_are_walked_without_the_missing_ones() {
        let body = [&[0, 3][..], &[0, 0, 0, 2], b"12", &[255, 255, 255, 255], &[0, 0, 0, 1], b"x"].concat();
        let mut values = Values::of(&body);
        assert_eq!(
            (values.integer(), values.text(), values.text(), values.text()),
            (Some(12), None, Some(&b"x"[..]), None)
        );
        let mut cut = Values::of(&body[..7]);
        assert_eq!((cut.text(), cut.text()), (None, None));
    }

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(timestamp_us(b"1970-01-01 00:00:00"), Some(0));
        assert_eq!(timestamp_us(b"2000-03-01 00:00:00.5"), Some(951_868_800_500_000));
        assert_eq!(timestamp_us(b"2024-02-29 23:59:59.999999"), Some(1_709_251_199_999_999));
        assert_eq!(timestamp_us(b"29.02.2024 23:59:59"), None);
    }

    #[test]
    fn the_middle_is_rounded_up() {
        for (matches, middle) in
            [(&[5][..], 5), (&[5, 7], 5), (&[5, 7, 9], 7), (&[5, 7, 9, 2], 7), (&[5, 7, 9, 2, 1], 9)]
        {
            let mut replies = Replies { matches: matches.to_vec(), ..Replies::default() };
            replies.choose_middle();
            assert_eq!((replies.customer, replies.wrong()), (middle, None));
        }
        let mut replies = Replies::default();
        replies.choose_middle();
        assert!(replies.wrong().unwrap().contains("name"));
    }
}
