//! Values on their way to the server, and the rows it is expected to answer with, in each of the three forms in use.

use super::calendar::{put_date, put_timestamp};
use super::numeric::{put_decimal, put_numeric, put_numeric_in_words};
use bytes::{BufMut, BytesMut};
use std::fmt::{Display, Write};

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// With their length, in the server's binary form: a Bind's parameters, a result row, a row of COPY BINARY.
    #[default]
    Binary,
    /// With their length, as text.
    Text,
    /// As they stand in SQL.
    Sql,
}

/// Appends values, one after the other.
#[derive(Debug)]
pub struct Parameters<'a> {
    out: &'a mut BytesMut,
    form: Form,
    /// Where each value ended, for values that stand in SQL.
    ends: Option<&'a mut Vec<usize>>,
}

impl<'a> Parameters<'a> {
    /// Appends values to `out`, in binary form.
    #[inline]
    pub fn to(out: &'a mut BytesMut) -> Self {
        Self::in_form(Form::Binary, out)
    }

    /// Appends values to `out` in `form`.
    #[inline]
    pub fn in_form(form: Form, out: &'a mut BytesMut) -> Self {
        Self { out, form, ends: None }
    }

    pub(super) fn in_sql(out: &'a mut BytesMut, ends: &'a mut Vec<usize>) -> Self {
        Self { out, form: Form::Sql, ends: Some(ends) }
    }

    /// A bigint.
    #[inline]
    pub fn bigint(&mut self, value: i64) {
        if self.form == Form::Binary {
            self.out.put_u32(8);
            self.out.put_i64(value);
        } else {
            self.in_words(false, |out| put_decimal(out, value));
        }
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i32) {
        if self.form == Form::Binary {
            self.out.put_u32(4);
            self.out.put_i32(value);
        } else {
            self.in_words(false, |out| put_decimal(out, value.into()));
        }
    }

    /// A date: days since 2000-01-01, in the years 1 to 9999.
    #[inline]
    pub fn date(&mut self, days: i32) {
        if self.form == Form::Binary {
            self.integer(days);
        } else {
            self.in_words(true, |out| put_date(out, days.into()));
        }
    }

    /// A timestamp: microseconds since 2000-01-01 00:00, in the years 1 to 9999. As text, whole seconds only.
    #[inline]
    pub fn timestamp(&mut self, microseconds: i64) {
        if self.form == Form::Binary {
            self.bigint(microseconds);
        } else {
            self.in_words(true, |out| put_timestamp(out, microseconds));
        }
    }

    /// A numeric: `value` divided by ten to the power of `scale`, which is 0 to 4 and the number of its digits after the point.
    #[inline]
    pub fn numeric(&mut self, value: i64, scale: u32) {
        assert!(scale <= 4, "one group of digits after the point");
        if self.form == Form::Binary {
            put_numeric(self.out, value, scale);
        } else {
            self.in_words(false, |out| put_numeric_in_words(out, value, scale));
        }
    }

    /// A text. In SQL it is quoted.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        if self.form == Form::Sql {
            self.in_words(true, |out| {
                for part in value.split_inclusive(|&byte| byte == b'\'') {
                    out.put_slice(part);
                    if part.ends_with(b"'") {
                        out.put_u8(b'\'');
                    }
                }
            });
        } else {
            self.out.put_u32(value.len() as u32);
            self.out.put_slice(value);
        }
    }

    /// A text that `value` writes.
    pub fn displayed(&mut self, value: &impl Display) {
        if self.form == Form::Sql {
            return self.text(value.to_string().as_bytes());
        }
        sized(self.out, false, |out| {
            // Room is made as it is needed, so that this cannot fail.
            let _ = write!(out, "{value}");
        });
    }

    /// A value in its own words, whatever its type: as text where the statement's values are text, and in SQL as it is,
    /// without quotes. Not for binary values.
    pub fn verbatim(&mut self, value: &[u8]) {
        assert!(self.form != Form::Binary, "binary values have a type");
        self.in_words(false, |out| out.put_slice(value));
    }

    /// NULL.
    #[inline]
    pub fn null(&mut self) {
        match self.form {
            Form::Sql => self.in_words(false, |out| out.put_slice(b"NULL")),
            Form::Binary | Form::Text => self.out.put_i32(-1),
        }
    }

    /// A bigint[] of one dimension.
    pub fn bigint_array(&mut self, values: &[i64]) {
        self.array(20, values, |inner, value| inner.bigint(value));
    }

    /// An integer[] of one dimension.
    pub fn integer_array(&mut self, values: &[i32]) {
        self.array(23, values, |inner, value| inner.integer(value));
    }

    /// `element` is the type's object identifier, fixed in the server's catalogue.
    fn array<T: Copy + Into<i64>>(&mut self, element: u32, values: &[T], put: impl Fn(&mut Parameters<'_>, T)) {
        if self.form != Form::Binary {
            return self.in_words(true, |out| {
                out.put_u8(b'{');
                for (place, &value) in values.iter().enumerate() {
                    if place > 0 {
                        out.put_u8(b',');
                    }
                    put_decimal(out, value.into());
                }
                out.put_u8(b'}');
            });
        }
        sized(self.out, false, |out| {
            // One dimension, no NULL, the element's type, how many, the first has subscript 1.
            [1, 0, element, values.len() as u32, 1].iter().for_each(|&word| out.put_u32(word));
            let mut inner = Parameters::to(out);
            values.iter().for_each(|&value| put(&mut inner, value));
        });
    }

    /// What `write` writes, with its length or, in SQL, in quotes if it needs them.
    fn in_words(&mut self, quoted: bool, write: impl FnOnce(&mut BytesMut)) {
        if self.form == Form::Text {
            return sized(self.out, false, write);
        }
        let quote: &[u8] = if quoted { b"'" } else { b"" };
        self.out.put_slice(quote);
        write(self.out);
        self.out.put_slice(quote);
        if let Some(ends) = &mut self.ends {
            ends.push(self.out.len());
        }
    }
}

/// Appends a row of COPY BINARY (and so the body of the DataRow that would return it).
#[inline]
pub fn put_row(out: &mut BytesMut, columns: u16, values: impl FnOnce(&mut Parameters<'_>)) {
    put_row_in(Form::Binary, out, columns, values);
}

/// Appends the body of a DataRow whose values have `form`.
#[inline]
pub fn put_row_in(form: Form, out: &mut BytesMut, columns: u16, values: impl FnOnce(&mut Parameters<'_>)) {
    out.put_u16(columns);
    values(&mut Parameters::in_form(form, out));
}

/// Writes a 32-bit length and what `body` writes; `inclusive` counts the length's own four bytes.
pub(super) fn sized(out: &mut BytesMut, inclusive: bool, body: impl FnOnce(&mut BytesMut)) {
    let place = out.len();
    out.put_u32(0);
    body(out);
    let length = out.len() - place - if inclusive { 0 } else { 4 };
    out[place..place + 4].copy_from_slice(&(length as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::wire::row_values;

    fn all_kinds(values: &mut Parameters<'_>) {
        values.bigint(-7);
        values.integer(2_147_483_647);
        values.date(59);
        values.timestamp(-1_000_000);
        values.displayed(&"it's");
        values.bigint_array(&[5, -6]);
        values.integer_array(&[]);
        values.null();
    }

    #[test]
    fn rows_have_the_form_that_the_server_sends() {
        let mut out = BytesMut::new();
        put_row(&mut out, 8, all_kinds);
        let values = row_values(&out).unwrap();
        assert_eq!(values[0], Some(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9][..]));
        assert_eq!(values[4], Some(&b"it's"[..]));
        assert_eq!(values[5].unwrap().len(), 20 + 2 * 12);
        assert_eq!(values[7], None);
    }

    #[test]
    fn text_is_what_the_server_writes() {
        let mut out = BytesMut::new();
        put_row_in(Form::Text, &mut out, 8, all_kinds);
        let values: Vec<_> =
            row_values(&out).unwrap().into_iter().map(|value| value.map(|v| std::str::from_utf8(v).unwrap())).collect();
        let expected = ["-7", "2147483647", "2000-02-29", "1999-12-31 23:59:59", "it's", "{5,-6}", "{}"];
        assert_eq!(values[..7], expected.map(Some));
        assert_eq!(values[7], None);
    }

    #[test]
    fn sql_is_quoted_where_it_must_be() {
        let (mut out, mut ends) = (BytesMut::new(), Vec::new());
        let mut values = Parameters::in_sql(&mut out, &mut ends);
        all_kinds(&mut values);
        values.verbatim(b"now()");
        let cuts: Vec<(usize, usize)> =
            std::iter::once(0).chain(ends.iter().copied()).zip(ends.iter().copied()).collect();
        let parts: Vec<&str> = cuts.iter().map(|&(from, to)| std::str::from_utf8(&out[from..to]).unwrap()).collect();
        let dates = ["'2000-02-29'", "'1999-12-31 23:59:59'"];
        let expected = ["-7", "2147483647", dates[0], dates[1], "'it''s'", "'{5,-6}'", "'{}'", "NULL", "now()"];
        assert_eq!(parts, expected);
    }
}
