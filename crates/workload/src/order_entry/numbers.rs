//! Random numbers and strings as clauses 2.1.6 and 4.3.2 of TPC-C 5.11 want them; pure functions.
//!
//! NURand(A, x, y) is (((random(0..A) | random(x..y)) + C) mod (y - x + 1)) + x. C is a constant of the run for each A. That of
//! the last names differs between loading and running by 65 to 119 and neither by 96 nor 112, or some names would be met as
//! often as if it were the same. All of them follow from the seed, and are recorded.

use plimsoll_keys::Words;
use rand::Rng;
use serde::Serialize;

/// A text of at most `N` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    length: u16,
}

impl<const N: usize> Text<N> {
    const EMPTY: Self = Self { bytes: [0; N], length: 0 };

    /// The text.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Puts `other` over what stands from `from` on; it must fit.
    pub(super) fn overwrite(&mut self, from: usize, other: &[u8]) {
        assert!(from + other.len() <= usize::from(self.length), "within the text");
        self.bytes[from..from + other.len()].copy_from_slice(other);
    }

    fn push(&mut self, more: &[u8]) {
        let from = usize::from(self.length);
        self.bytes[from..from + more.len()].copy_from_slice(more);
        self.length += more.len() as u16;
    }
}

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Bytes of the longest last name.
pub(super) const LAST_NAME_BYTES: usize = 15;

/// The last name of `number` (0 to 999): a syllable for each of its three digits.
pub(super) fn last_name(number: i64) -> Text<LAST_NAME_BYTES> {
    assert!((0..1000).contains(&number), "three digits");
    let mut name = Text::EMPTY;
    [number / 100, number / 10 % 10, number % 10]
        .iter()
        .for_each(|&digit| name.push(SYLLABLES[digit as usize].as_bytes()));
    name
}

/// A NURand with its constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NonUniform {
    a: i64,
    low: i64,
    high: i64,
    constant: i64,
}

impl NonUniform {
    /// The number that comes of `small`, drawn from 0..=A, and `wide`, drawn from low..=high.
    #[inline]
    fn of(&self, small: i64, wide: i64) -> i64 {
        ((small | wide) + self.constant) % (self.high - self.low + 1) + self.low
    }

    /// Draws from `field` of `words` and the one after it.
    #[inline]
    pub(super) fn draw(&self, words: &Words, field: u64) -> i64 {
        self.of(words.between(field, 0, self.a), words.between(field + 1, self.low, self.high))
    }
}

const LAST_NAME_A: i64 = 255;
const CUSTOMER_A: i64 = 1023;
const ITEM_A: i64 = 8191;
/// By how much the constants of the last names may differ between loading and running.
const LAST_NAME_APART: std::ops::RangeInclusive<i64> = 65..=119;
const LAST_NAME_NOT_APART: [i64; 2] = [96, 112];
/// Tells these words from those of any table's rows.
const CONSTANTS: u64 = 0x4e55_5261_6e64;

/// The constants C of NURand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Constants {
    /// Of the last names that customers are loaded with.
    pub(super) last_name_load: i64,
    /// Of the last names that transactions look for.
    pub(super) last_name_run: i64,
    /// Of the customers that transactions choose.
    pub(super) customer: i64,
    /// Of the items that transactions choose.
    pub(super) item: i64,
}

impl Constants {
    /// Those of `seed`.
    pub(super) fn of(seed: u64) -> Self {
        let words = Words::new(seed, CONSTANTS, 0);
        let last_name_load = words.between(0, 0, LAST_NAME_A);
        let allowed = |other: &i64| {
            let apart = other.abs_diff(last_name_load) as i64;
            LAST_NAME_APART.contains(&apart) && !LAST_NAME_NOT_APART.contains(&apart)
        };
        let others: Vec<i64> = (0..=LAST_NAME_A).filter(allowed).collect();
        Self {
            last_name_load,
            last_name_run: others[words.below(1, others.len() as u64) as usize],
            customer: words.between(2, 0, CUSTOMER_A),
            item: words.between(3, 0, ITEM_A),
        }
    }

    fn last_name(constant: i64) -> NonUniform {
        NonUniform { a: LAST_NAME_A, low: 0, high: super::scale::LAST_NAMES - 1, constant }
    }

    /// Numbers of the last names that customers are loaded with.
    pub(super) fn last_name_of_load(&self) -> NonUniform {
        Self::last_name(self.last_name_load)
    }

    /// Numbers of the last names that transactions look for.
    pub(super) fn last_name_of_run(&self) -> NonUniform {
        Self::last_name(self.last_name_run)
    }

    /// Customers that transactions choose.
    pub(super) fn customer(&self) -> NonUniform {
        NonUniform { a: CUSTOMER_A, low: 1, high: super::scale::CUSTOMERS, constant: self.customer }
    }

    /// Items that transactions choose.
    pub(super) fn item(&self) -> NonUniform {
        NonUniform { a: ITEM_A, low: 1, high: super::scale::ITEMS, constant: self.item }
    }
}

/// Six bits choose one; two letters are twice as likely as the others, for 62 is no power of two.
const ALPHANUMERIC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ae";

/// Fills `text` with letters and digits, eight from each word of `source`.
#[inline]
pub(super) fn fill(source: &mut impl Rng, text: &mut [u8]) {
    for part in text.chunks_mut(8) {
        let letters = source.next_u64().to_le_bytes().map(|byte| ALPHANUMERIC[usize::from(byte & 63)]);
        part.copy_from_slice(&letters[..part.len()]);
    }
}

/// A random text of `low..=N` letters and digits; its length and its letters come of `field` of `words`.
pub(super) fn text<const N: usize>(words: &Words, field: u64, low: usize) -> Text<N> {
    let mut source = words.stream(field);
    let length = low + below(&mut source, (N - low + 1) as u64) as usize;
    let mut text = Text { bytes: [0; N], length: length as u16 };
    fill(&mut source, &mut text.bytes[..length]);
    text
}

/// `N` random digits from `field` of `words`; at most 16.
pub(super) fn digits<const N: usize>(words: &Words, field: u64) -> [u8; N] {
    let mut rest = words.below(field, 10_u64.pow(N as u32));
    std::array::from_fn(|_| {
        let digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        digit
    })
}

/// A number from 0 up to and without `bound`.
#[inline]
pub(super) fn below(source: &mut impl Rng, bound: u64) -> u64 {
    ((u128::from(source.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_name_has_three_syllables() {
        for (number, name) in [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (999, "EINGEINGEING"), (40, "BARPRESBAR")] {
            assert_eq!(last_name(number).as_bytes(), name.as_bytes());
        }
        assert_eq!((0..1000).map(|number| last_name(number).as_bytes().len()).max(), Some(LAST_NAME_BYTES));
    }

    #[test]
    fn nurand_is_that_of_the_specification() {
        let numbers = NonUniform { a: 1023, low: 1, high: 3000, constant: 259 };
        // 5 | 8 = 13, 13 + 259 = 272, 272 mod 3000 + 1.
        assert_eq!(numbers.of(5, 8), 273);
        // 1023 | 3000 = 3071, 3071 + 259 = 3330, 3330 mod 3000 + 1.
        assert_eq!(numbers.of(1023, 3000), 331);
        // 0 | 2741 + 259 = 3000: the first again.
        assert_eq!(numbers.of(0, 2741), 1);
        let names = NonUniform { a: 255, low: 0, high: 999, constant: 0 };
        assert_eq!((names.of(255, 768), names.of(0, 999)), (23, 999));
    }

    #[test]
    fn nurand_stays_inside_and_prefers_some() {
        let constants = Constants::of(7);
        for (numbers, low, high) in
            [(constants.customer(), 1, 3000), (constants.item(), 1, 100_000), (constants.last_name_of_run(), 0, 999)]
        {
            let mut counts = vec![0u32; high + 1];
            for key in 0..200_000 {
                let number = numbers.draw(&Words::new(7, 1, key), 0);
                assert!((low..=high as i64).contains(&number), "{number}");
                counts[number as usize] += 1;
            }
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let of_first_tenth: u32 = counts[..counts.len() / 10].iter().sum();
            // An even draw would put some 47,000 on the tenth of the items that it meets most often, fewer on the others.
            assert!(of_first_tenth > 60_000, "{high}: {of_first_tenth}");
        }
    }

    #[test]
    fn the_constants_of_last_names_are_far_enough_apart() {
        let mut loads = std::collections::BTreeSet::new();
        for seed in 0..20_000 {
            let constants = Constants::of(seed);
            let apart = constants.last_name_load.abs_diff(constants.last_name_run);
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{seed}: {apart}");
            assert!((0..=255).contains(&constants.last_name_run));
            assert!((0..=1023).contains(&constants.customer) && (0..=8191).contains(&constants.item));
            loads.insert(constants.last_name_load);
        }
        assert_eq!(loads.len(), 256);
        assert_ne!(Constants::of(1), Constants::of(2));
    }

    #[test]
    fn texts_are_alphanumeric_and_of_every_length() {
        let texts: Vec<Text<14>> = (0..2000).map(|key| text(&Words::new(3, 0, key), 5, 4)).collect();
        let lengths: std::collections::BTreeSet<usize> = texts.iter().map(|text| text.as_bytes().len()).collect();
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (4..=14).collect::<Vec<_>>());
        let letters: std::collections::BTreeSet<u8> =
            texts.iter().flat_map(|text| text.as_bytes().iter().copied()).collect();
        assert_eq!(letters.len(), 62);
        assert!(letters.iter().all(u8::is_ascii_alphanumeric));
        let mut numbers: Vec<[u8; 4]> = (0..2000).map(|key| digits(&Words::new(3, 0, key), 5)).collect();
        assert!(numbers.iter().flatten().all(u8::is_ascii_digit));
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.len() > 1500);
    }
}
