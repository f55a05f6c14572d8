//! Values of expressions: their conversions and their text, as pgbench's.

use std::borrow::Cow;
use std::io::Write;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

/// Significant decimal digits of a double in SQL text.
const DIGITS: i32 = 15;

impl Value {
    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// As a condition: NULL is false, a number is true unless it is 0.
    pub(super) fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// # Errors
    /// If it is no boolean.
    pub(super) fn boolean(self) -> Result<bool, String> {
        match self {
            Self::Boolean(value) => Ok(value),
            other => Err(format!("cannot coerce {} to boolean", other.kind())),
        }
    }

    /// A double is rounded, halves to even.
    ///
    /// # Errors
    /// If it is no number, or does not fit.
    pub(super) fn integer(self) -> Result<i64, String> {
        match self {
            Self::Integer(value) => Ok(value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                let limit = -(i64::MIN as f64);
                if (-limit..limit).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(format!("double to int overflow for {}", in_words(value)))
                }
            }
            other => Err(format!("cannot coerce {} to int", other.kind())),
        }
    }

    /// # Errors
    /// If it is no number.
    pub(super) fn double(self) -> Result<f64, String> {
        match self {
            Self::Integer(value) => Ok(value as f64),
            Self::Double(value) => Ok(value),
            other => Err(format!("cannot coerce {} to double", other.kind())),
        }
    }

    /// The value that a variable's text stands for. `None` if there is none.
    pub(super) fn from_text(text: &[u8]) -> Option<Self> {
        let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
        let begins =
            |word: &str| word.as_bytes().get(..text.len()).is_some_and(|start| text.eq_ignore_ascii_case(start));
        if text.is_empty() {
            return None;
        }
        if is("null") {
            return Some(Self::Null);
        }
        if is("on") || begins("true") || begins("yes") {
            return Some(Self::Boolean(true));
        }
        if is("off") || is("of") || begins("false") || begins("no") {
            return Some(Self::Boolean(false));
        }
        let text = std::str::from_utf8(text.trim_ascii_start()).ok()?;
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Integer);
        }
        parse_double(text).map(Self::Double)
    }

    /// Appends it as text: as pgbench puts it into SQL.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            // Writing to memory cannot fail.
            Self::Integer(value) => drop(write!(out, "{value}")),
            Self::Double(value) => write_double(value, out),
        }
    }
}

/// A number in decimal or in words. `None` if it is malformed or outside of the range of doubles.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let in_words = text.bytes().any(|byte| b"nN".contains(&byte));
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = value == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    (in_words || (value.is_finite() && !value.is_subnormal() && !vanished)).then_some(value)
}

/// With six digits behind the point, as in pgbench's messages; what is not finite in PostgreSQL's words.
pub(super) fn in_words(value: f64) -> Cow<'static, str> {
    match (value.is_nan(), value.is_finite()) {
        (true, _) => "NaN".into(),
        (_, true) => format!("{value:.6}").into(),
        _ => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
    }
}

/// The form of PostgreSQL's `%.15g`: that of C, but for its words for what is not finite.
fn write_double(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return out.extend_from_slice(in_words(value).as_bytes());
    }
    let start = out.len();
    drop(write!(out, "{value:.*e}", DIGITS as usize - 1));
    let place = out[start..].iter().position(|&byte| byte == b'e').map_or(out.len(), |place| start + place);
    let exponent = std::str::from_utf8(&out[place + 1..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        out.truncate(start);
        drop(write!(out, "{value:.*}", (DIGITS - 1 - exponent) as usize));
        trim_zeros(start, out);
    } else {
        out.truncate(place);
        trim_zeros(start, out);
        let sign = if exponent < 0 { '-' } else { '+' };
        drop(write!(out, "e{sign}{:02}", exponent.unsigned_abs()));
    }
}

/// Cuts the zeros that end the fraction of the number from `start` on.
fn trim_zeros(start: usize, out: &mut Vec<u8>) {
    if !out[start..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut out = b"x".to_vec();
        Value::Double(value).write(&mut out);
        String::from_utf8(out).unwrap()[1..].to_owned()
    }

    #[test]
    fn doubles_have_fifteen_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (-2.5e-5, "-2.5e-05"),
            (0.0001, "0.0001"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1_234_567_890_123_456.0, "1.23456789012346e+15"),
            (1e300, "1e+300"),
            // Halves go to the even digit.
            (1_000_000_000_000_005.0, "1e+15"),
            (1_000_000_000_000_015.0, "1.00000000000002e+15"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-f64::NAN, "NaN"),
        ];
        for (value, wanted) in cases {
            assert_eq!(text(value), wanted);
        }
    }

    #[test]
    fn texts_of_variables_have_values() {
        let cases = [
            ("", None),
            ("nUll", Some(Value::Null)),
            ("t", Some(Value::Boolean(true))),
            ("YES", Some(Value::Boolean(true))),
            ("on", Some(Value::Boolean(true))),
            ("o", None),
            ("of", Some(Value::Boolean(false))),
            ("n", Some(Value::Boolean(false))),
            ("fals", Some(Value::Boolean(false))),
            ("falsey", None),
            (" -12", Some(Value::Integer(-12))),
            ("007", Some(Value::Integer(7))),
            ("9223372036854775808", None),
            ("12 ", None),
            (".5", Some(Value::Double(0.5))),
            ("1e3", Some(Value::Double(1000.0))),
            ("1e400", None),
            ("inf", Some(Value::Double(f64::INFINITY))),
            ("-", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(Value::from_text(text.as_bytes()), wanted, "{text:?}");
        }
    }
}
