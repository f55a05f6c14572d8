//! Numerics on the wire: in groups of four decimal digits, or in words.

use bytes::{BufMut, BytesMut};

const GROUP: u64 = 10_000;
const NEGATIVE: u16 = 0x4000;

/// A numeric in binary form, as the server sends it: groups of four decimal digits, without groups of zeros at either end.
#[inline]
pub(super) fn put_numeric(out: &mut BytesMut, value: i64, scale: u32) {
    let one = 10_u64.pow(scale);
    let (whole, after_point) = (value.unsigned_abs() / one, value.unsigned_abs() % one);
    let after_point = (after_point * (GROUP / one)) as u16;
    let header = (if value < 0 { NEGATIVE } else { 0 }, scale as u16);
    let group = |nth: u32| (whole / GROUP.pow(nth) % GROUP) as u16;
    // Most values are short.
    if whole < GROUP * GROUP {
        put_groups(out, header, [group(1), group(0), after_point]);
    } else {
        put_groups(out, header, [group(4), group(3), group(2), group(1), group(0), after_point]);
    }
}

/// Puts `groups`, of which the last stands after the point, with the sign and the number of digits after the point.
#[inline]
fn put_groups<const GROUPS: usize>(out: &mut BytesMut, (sign, scale): (u16, u16), groups: [u16; GROUPS]) {
    let units = GROUPS - 2;
    let first = groups.iter().position(|&group| group > 0).unwrap_or(units);
    let end = groups.iter().rposition(|&group| group > 0).map_or(units, |last| last + 1);
    let (groups, weight) = (&groups[first..end.max(first)], units as i16 - first as i16);
    let length = 8 + 2 * groups.len();
    let mut bytes = [0; 4 + 8 + 12];
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    let header = [groups.len() as u16, weight as u16, sign, scale];
    let words = header.iter().chain(groups);
    bytes[4..].chunks_exact_mut(2).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    out.put_slice(&bytes[..4 + length]);
}

/// Decimal digits with the last `scale` of them after a point, and a sign if negative.
pub(super) fn put_numeric_in_words(out: &mut BytesMut, value: i64, scale: u32) {
    if scale == 0 {
        return put_decimal(out, value);
    }
    if value < 0 {
        out.put_u8(b'-');
    }
    let digits = value.unsigned_abs();
    put_decimal(out, (digits / 10_u64.pow(scale)) as i64);
    out.put_u8(b'.');
    (0..scale).rev().for_each(|place| out.put_u8(b'0' + (digits / 10_u64.pow(place) % 10) as u8));
}

/// Decimal digits, with a sign if negative.
#[inline]
pub(super) fn put_decimal(out: &mut BytesMut, value: i64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        first -= 1;
        digits[first] = b'-';
    }
    out.put_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::{Form, Parameters};

    /// A numeric in binary form: groups, weight, sign and digits after the point.
    fn numeric(value: i64, scale: u32) -> Vec<i16> {
        let mut out = BytesMut::new();
        Parameters::to(&mut out).numeric(value, scale);
        assert_eq!(out.len() as u32, 4 + u32::from_be_bytes(out[..4].try_into().unwrap()));
        out[4..].chunks(2).map(|word| i16::from_be_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn numerics_are_in_groups_of_four_digits() {
        assert_eq!(numeric(0, 2), [0, 0, 0, 2]);
        assert_eq!(numeric(5, 2), [1, -1, 0, 2, 500]);
        assert_eq!(numeric(-1000, 2), [1, 0, 0x4000, 2, 10]);
        assert_eq!(numeric(30_000_000, 2), [1, 1, 0, 2, 30]);
        assert_eq!(numeric(123_456_789, 2), [3, 1, 0, 2, 123, 4567, 8900]);
        assert_eq!(numeric(2000, 4), [1, -1, 0, 4, 2000]);
        assert_eq!(numeric(i64::MIN, 0), [5, 4, 0x4000, 0, 922, 3372, 368, 5477, 5808]);
    }

    #[test]
    fn numerics_in_words_have_a_point() {
        for (value, scale, words) in
            [(0, 2, "0.00"), (5, 2, "0.05"), (-1000, 2, "-10.00"), (-7, 0, "-7"), (12_345, 4, "1.2345")]
        {
            let mut out = BytesMut::new();
            Parameters::in_form(Form::Sql, &mut out).numeric(value, scale);
            assert_eq!(out, words);
        }
    }
}
