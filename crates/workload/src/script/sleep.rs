//! `\sleep`: how long, as a number or a variable, in us, ms or s (the default).

use super::names::{Names, continues};
use super::source::Problem;
use super::variables::Variables;

const UNITS_NS: [(&str, i64); 3] = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const SECOND_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Number(i64),
    Variable(usize),
}

/// How long to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sleep {
    amount: Amount,
    unit_ns: i64,
}

impl Sleep {
    /// From the words that follow `\sleep`, which stands at `at`. The unit may follow a number without a space.
    pub(super) fn parse(words: &[(usize, String)], at: usize, names: &mut Names) -> Result<Self, Problem> {
        let problem = |at, message: String| Err(Problem { at, message });
        let Some((first_at, first)) = words.first() else {
            return problem(at, "\\sleep lacks a time".to_owned());
        };
        if let Some((place, _)) = words.get(2) {
            return problem(*place, "\\sleep takes a time and a unit".to_owned());
        }
        let (amount, joined_unit) = match first.strip_prefix(':') {
            Some(name) if !name.is_empty() && name.bytes().all(continues) => (Amount::Variable(names.place(name)), ""),
            _ => match number(first) {
                Some((amount, unit)) if unit.is_empty() || words.len() == 1 => (Amount::Number(amount), unit),
                _ => return problem(*first_at, format!("\\sleep {first}: must be an integer or a variable")),
            },
        };
        let unit = words.get(1).map_or(joined_unit, |(_, unit)| unit);
        let known = UNITS_NS.into_iter().find(|(known, _)| unit.eq_ignore_ascii_case(known));
        match known {
            Some((_, unit_ns)) => Ok(Self { amount, unit_ns }),
            None if unit.is_empty() => Ok(Self { amount, unit_ns: SECOND_NS }),
            None => problem(*first_at, format!("\\sleep: unknown unit {unit}; allowed: us, ms, s")),
        }
    }

    /// Nanoseconds, 0 or below for not at all.
    ///
    /// # Errors
    /// If the variable holds no integer.
    pub(super) fn ns(&self, variables: &Variables, names: &Names, room: &mut Vec<u8>) -> Result<i64, String> {
        let amount = match self.amount {
            Amount::Number(amount) => amount,
            Amount::Variable(place) => {
                room.clear();
                if !variables.write(place, room) {
                    return Err(format!("undefined variable \"{}\"", names.name(place)));
                }
                let text = String::from_utf8_lossy(room);
                let found = number(text.trim_start()).map(|(amount, _)| amount);
                found.ok_or_else(|| format!("invalid sleep time \"{text}\" for variable \"{}\"", names.name(place)))?
            }
        };
        Ok(amount.saturating_mul(self.unit_ns))
    }
}

/// The integer at the start of `text`, and what follows. What is too large is the largest there is.
fn number(text: &str) -> Option<(i64, &str)> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(sign + digits);
    (digits > 0).then(|| (number.parse().unwrap_or(if number.starts_with('-') { i64::MIN } else { i64::MAX }), rest))
}
