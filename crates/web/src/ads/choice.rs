//! The choice: the first advertisement after the last one that counts enough for this user.

use super::ad::Ad;
use std::fmt;

/// One of the five fields of a word of demographics.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its lowest bit.
    pub lowest: u32,
    /// How many bits it has.
    pub bits: u32,
}

impl Field {
    /// Its bits in the word.
    pub const fn mask(&self) -> u32 {
        ((1 << self.bits) - 1) << self.lowest
    }
}

/// Gender, age, region and two fields of interests.
pub const FIELDS: [Field; 5] = [
    Field { lowest: 28, bits: 2 },
    Field { lowest: 24, bits: 4 },
    Field { lowest: 20, bits: 4 },
    Field { lowest: 10, bits: 10 },
    Field { lowest: 0, bits: 10 },
];

/// What a user is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its number.
    pub ad: u16,
    /// What the matches count together.
    pub weight: u32,
    /// Whether its time is over.
    pub expired: bool,
}

impl Chosen {
    /// The cookie that tells a client what was found; of an error without it.
    pub fn cookie(found: Option<Self>) -> String {
        let mut cookie = String::new();
        // Writing to a string cannot fail.
        let _ = Self::write_cookie(found, &mut cookie);
        cookie
    }

    pub(crate) fn write_cookie(found: Option<Self>, to: &mut impl fmt::Write) -> fmt::Result {
        match found {
            Some(Self { ad, weight, expired }) => {
                write!(to, "found_cookie=Ad_id={ad}&Ad_weight={weight}&Expired={}", u8::from(expired))
            }
            None => to.write_str("found_cookie=Ad_id=-1&Ad_weight=0&Expired=1"),
        }
    }
}

/// The advertisement for a user with these demographics who has seen `last`, at `now_s`. `None` if none counts enough.
pub fn choose(ads: &[Ad], demographics: u32, last: u16, now_s: i64) -> Option<Chosen> {
    let start = (usize::from(last) + 1) % ads.len().max(1);
    let mut after = ads[start.min(ads.len())..].iter().chain(&ads[..start.min(ads.len())]);
    after.find_map(|ad| {
        let weight = weight(ad, demographics);
        let found = Chosen { ad: ad.id, weight, expired: now_s > ad.expires_s };
        (weight >= ad.minimum).then_some(found)
    })
}

fn weight(ad: &Ad, demographics: u32) -> u32 {
    let both = ad.demographics & demographics;
    let counted = FIELDS.iter().rev().enumerate();
    let of_field = |(place, field): (usize, &Field)| {
        let weight = ad.weights >> (4 * place) & 0xf;
        if both & field.mask() == 0 { 0 } else { weight }
    };
    counted.map(of_field).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ad(id: u16, demographics: u32, minimum: u32) -> Ad {
        Ad { id, demographics, weights: 0x12345, minimum, expires_s: 100 }
    }

    #[test]
    fn fields_are_those_of_the_public_implementations() {
        assert_eq!(FIELDS.map(|field| field.mask()), [0x3000_0000, 0x0f00_0000, 0x00f0_0000, 0x000f_fc00, 0x0000_03ff]);
    }

    #[test]
    fn weights_of_the_fields_that_overlap_are_summed() {
        for (demographics, sum) in [
            (0x1000_0000, 1),
            (0x0100_0000, 2),
            (0x0010_0000, 3),
            (0x0000_0400, 4),
            (0x0000_0001, 5),
            (0x1100_0001, 8),
            (0x2000_0002, 0),
            (0x1110_0401, 15),
        ] {
            assert_eq!(weight(&ad(0, 0x1110_0401, 0), demographics), sum, "{demographics:x}");
        }
    }

    #[test]
    fn the_scan_begins_after_the_last_one_and_wraps() {
        let all = 0x3fff_ffff;
        let ads = [ad(0, all, 15), ad(1, 0, 1), ad(2, all, 15)];
        let chosen = |last| choose(&ads, all, last, 50).map(|chosen| chosen.ad);
        assert_eq!([0, 1, 2].map(chosen), [Some(2), Some(2), Some(0)], "the second suits nobody");
        assert_eq!(choose(&ads[..1], all, 0, 50).map(|chosen| chosen.ad), Some(0), "and it may be the last one again");
        assert_eq!(choose(&ads[1..2], all, 0, 50), None);
        assert_eq!(choose(&[], all, 0, 50), None);
    }

    #[test]
    fn what_was_found_is_told_in_a_cookie() {
        let ads = [ad(7, 0x1110_0401, 3)];
        let expired = |now_s| choose(&ads, 0x1010_0000, 0, now_s).unwrap();
        assert_eq!(Chosen::cookie(Some(expired(100))), "found_cookie=Ad_id=7&Ad_weight=4&Expired=0");
        assert_eq!(Chosen::cookie(Some(expired(101))), "found_cookie=Ad_id=7&Ad_weight=4&Expired=1");
        assert_eq!(Chosen::cookie(None), "found_cookie=Ad_id=-1&Ad_weight=0&Expired=1");
    }
}
