//! The parameters of each query: drawn, or those of the validation.
//!
//! The fact that constrains it: every query of every stream draws from words of its own, addressed by the stream's seed and the
//! query's number, so that no query's parameters hang on which were drawn before it.
//!
//! Ranges are those of TPC-H 2.17.1, clause 2.4.

use super::domains::{self, WORDS};
use super::orders::QUERIES;
use plimsoll_keys::Words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Tells these words from those of other workloads under the same seed.
const PARAMETERS: u64 = 0x6473;
const MONTHS_OF_A_YEAR: i64 = 12;
/// January 1993 is month 0.
const FIRST_YEAR: i64 = 1993;
/// Country codes are the nations' keys and this.
const CODE_OF_FIRST_NATION: i64 = 10;

/// What is put in the place of each name in braces.
pub(super) type Values = BTreeMap<&'static str, String>;

/// From where parameters are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ranges {
    /// As the specification words them.
    #[default]
    #[serde(rename = "specified")]
    Specified,
    /// As qgen 2.14 draws them, to compare with parameters that were published: query 4's months lie one later, and query 22's
    /// country codes from 20 to 44, of which those above 34 are nobody's.
    #[serde(rename = "qgen 2.14")]
    Qgen214,
}

/// Draws one query's parameters, one after the other.
struct Draws {
    words: Words,
    field: u64,
}

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.field += 1;
        self.words.below(self.field, bound as u64) as usize
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        self.field += 1;
        self.words.between(self.field, low, high)
    }

    fn one_of(&mut self, values: &[&'static str]) -> &'static str {
        values[self.below(values.len())]
    }

    /// `count` different ones of `0..of`, every order of them alike.
    fn different(&mut self, count: usize, of: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..of).collect();
        (0..count).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }

    /// The first day of one of `count` months, from month `first` on.
    fn month(&mut self, first: i64, count: i64) -> String {
        let month = self.between(first, first + count - 1);
        format!("{}-{:02}-01", FIRST_YEAR + month / MONTHS_OF_A_YEAR, month % MONTHS_OF_A_YEAR + 1)
    }

    /// The first day of a year of 1993 to 1997.
    fn year(&mut self) -> String {
        format!("{}-01-01", self.between(FIRST_YEAR, FIRST_YEAR + 4))
    }

    fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.between(1, 5), self.between(1, 5))
    }

    fn nation(&mut self) -> domains::Nation {
        domains::nation(self.below(domains::nations()))
    }
}

/// The words of a part type, without the last.
fn first_two_words(part_type: &str) -> &str {
    part_type.rsplit_once(' ').map_or(part_type, |(first, _)| first)
}

/// The last word of a part type.
fn last_word(part_type: &str) -> &str {
    part_type.rsplit_once(' ').map_or(part_type, |(_, last)| last)
}

/// The share of query 11, in ten decimals like the old generator's.
fn fraction(scale_factor: f64) -> String {
    format!("{:.10}", 0.0001 / scale_factor).trim_end_matches('0').to_owned()
}

fn values<const N: usize>(pairs: [(&'static str, String); N]) -> Values {
    Values::from(pairs)
}

/// `names` with their values, in this order.
fn listed<const N: usize>(names: [&'static str; N], found: impl IntoIterator<Item = String>) -> Values {
    names.into_iter().zip(found).collect()
}

const SIZES: [&str; 8] = ["size1", "size2", "size3", "size4", "size5", "size6", "size7", "size8"];
const CODES: [&str; 7] = ["code1", "code2", "code3", "code4", "code5", "code6", "code7"];

/// What is drawn for `query` in the stream that has `seed`.
pub(super) fn drawn(query: u32, seed: u64, scale_factor: f64, ranges: Ranges) -> Values {
    let mut draws = Draws { words: Words::new(seed, PARAMETERS, u64::from(query)), field: 0 };
    match query {
        ..=11 => first_half(query, &mut draws, scale_factor, ranges),
        _ => second_half(query, &mut draws, ranges),
    }
}

fn first_half(query: u32, draws: &mut Draws, scale_factor: f64, ranges: Ranges) -> Values {
    let later = i64::from(ranges == Ranges::Qgen214);
    match query {
        1 => values([("delta", draws.between(60, 120).to_string())]),
        2 => values([
            ("size", draws.between(1, 50).to_string()),
            ("type", last_word(draws.one_of(domains::part_types())).to_owned()),
            ("region", draws.one_of(domains::regions()).to_owned()),
        ]),
        3 => values([
            ("segment", draws.one_of(domains::segments()).to_owned()),
            ("date", format!("1995-03-{:02}", draws.between(1, 31))),
        ]),
        4 => values([("date", draws.month(later, 58))]),
        5 => values([("region", draws.one_of(domains::regions()).to_owned()), ("date", draws.year())]),
        6 => values([
            ("date", draws.year()),
            ("discount", format!("0.{:02}", draws.between(2, 9))),
            ("quantity", draws.between(24, 25).to_string()),
        ]),
        7 => {
            let names =
                draws.different(2, domains::nations()).into_iter().map(|key| domains::nation(key).name.to_owned());
            listed(["nation1", "nation2"], names)
        }
        8 => {
            let nation = draws.nation();
            values([
                ("nation", nation.name.to_owned()),
                ("region", nation.region.to_owned()),
                ("type", draws.one_of(domains::part_types()).to_owned()),
            ])
        }
        9 => values([("color", draws.one_of(domains::colors()).to_owned())]),
        10 => values([("date", draws.month(1, 24))]),
        _ => values([("nation", draws.nation().name.to_owned()), ("fraction", fraction(scale_factor))]),
    }
}

fn second_half(query: u32, draws: &mut Draws, ranges: Ranges) -> Values {
    match query {
        12 => {
            let modes = domains::ship_modes();
            let two = draws.different(2, modes.len()).into_iter().map(|at| modes[at].to_owned());
            let mut found = listed(["shipmode1", "shipmode2"], two);
            found.insert("date", draws.year());
            found
        }
        13 => listed(["word1", "word2"], WORDS.map(|words| draws.one_of(&words).to_owned())),
        14 => values([("date", draws.month(0, 60))]),
        15 => values([("date", draws.month(0, 58))]),
        16 => {
            let (brand, part_type) = (draws.brand(), draws.one_of(domains::part_types()));
            let sizes = draws.different(SIZES.len(), 50).into_iter().map(|size| (size + 1).to_string());
            let mut found = listed(SIZES, sizes);
            found.extend([("brand", brand), ("type", first_two_words(part_type).to_owned())]);
            found
        }
        17 => values([("brand", draws.brand()), ("container", draws.one_of(domains::containers()).to_owned())]),
        18 => values([("quantity", draws.between(312, 315).to_string())]),
        19 => values([
            ("brand1", draws.brand()),
            ("brand2", draws.brand()),
            ("brand3", draws.brand()),
            ("quantity1", draws.between(1, 10).to_string()),
            ("quantity2", draws.between(10, 20).to_string()),
            ("quantity3", draws.between(20, 30).to_string()),
        ]),
        20 => values([
            ("color", draws.one_of(domains::colors()).to_owned()),
            ("date", draws.year()),
            ("nation", draws.nation().name.to_owned()),
        ]),
        21 => values([("nation", draws.nation().name.to_owned())]),
        _ => {
            let above = if ranges == Ranges::Qgen214 { 2 * CODE_OF_FIRST_NATION } else { CODE_OF_FIRST_NATION };
            let keys = draws.different(CODES.len(), domains::nations()).into_iter();
            listed(CODES, keys.map(|key| (key as i64 + above).to_string()))
        }
    }
}

/// The validation's values in the order of the names; those of query 11 are for scale factor 1.
const VALIDATION: [&[(&str, &str)]; QUERIES as usize] = [
    &[("delta", "90")],
    &[("size", "15"), ("type", "BRASS"), ("region", "EUROPE")],
    &[("segment", "BUILDING"), ("date", "1995-03-15")],
    &[("date", "1993-07-01")],
    &[("region", "ASIA"), ("date", "1994-01-01")],
    &[("date", "1994-01-01"), ("discount", "0.06"), ("quantity", "24")],
    &[("nation1", "FRANCE"), ("nation2", "GERMANY")],
    &[("nation", "BRAZIL"), ("region", "AMERICA"), ("type", "ECONOMY ANODIZED STEEL")],
    &[("color", "green")],
    &[("date", "1993-10-01")],
    &[("nation", "GERMANY"), ("fraction", "0.0001")],
    &[("shipmode1", "MAIL"), ("shipmode2", "SHIP"), ("date", "1994-01-01")],
    &[("word1", "special"), ("word2", "requests")],
    &[("date", "1995-09-01")],
    &[("date", "1996-01-01")],
    &[
        ("brand", "Brand#45"),
        ("type", "MEDIUM POLISHED"),
        ("size1", "49"),
        ("size2", "14"),
        ("size3", "23"),
        ("size4", "45"),
        ("size5", "19"),
        ("size6", "3"),
        ("size7", "36"),
        ("size8", "9"),
    ],
    &[("brand", "Brand#23"), ("container", "MED BOX")],
    &[("quantity", "300")],
    &[
        ("brand1", "Brand#12"),
        ("brand2", "Brand#23"),
        ("brand3", "Brand#34"),
        ("quantity1", "1"),
        ("quantity2", "10"),
        ("quantity3", "20"),
    ],
    &[("color", "forest"), ("date", "1994-01-01"), ("nation", "CANADA")],
    &[("nation", "SAUDI ARABIA")],
    &[
        ("code1", "13"),
        ("code2", "31"),
        ("code3", "23"),
        ("code4", "29"),
        ("code5", "30"),
        ("code6", "18"),
        ("code7", "17"),
    ],
];

/// The validation's values for `query`.
pub(super) fn validation(query: u32) -> Values {
    VALIDATION[query as usize - 1].iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests;
