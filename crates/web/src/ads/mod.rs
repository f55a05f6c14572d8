//! Which advertisement a user is shown: the users and the advertisements, the two files that hold them, and the choice.
//!
//! The fact that constrains it: client and server must choose alike without asking each other. So the files follow from a seed, and
//! whether an advertisement has expired does not hang on the moment: its time lies far behind the one it was made at, or far ahead.

mod ad;
mod choice;
mod records;

pub use ad::Ad;
pub use choice::{Chosen, FIELDS, choose};
pub use records::{AD_BYTES, PERSONALITY_BYTES, read_ads, read_personalities, write_ads, write_personalities};

use plimsoll_keys::Words;

/// How many advertisements there are.
pub const ADS: u16 = 360;
/// The number of the first user.
pub const FIRST_USER: u32 = 10_000;
/// Users whose numbers have five digits.
pub const USERS_MAX: u32 = 90_000;
/// Advertisements whose time is over, of 100.
const EXPIRED_PERCENT: u64 = 10;
/// Ten years: further from now than any run lasts.
const FAR_S: i64 = 315_360_000;

/// Tables of addressed random words.
const PERSONALITIES: u64 = 1;
const CUSTOM_ADS: u64 = 2;

/// Who `user` (from 0) is: one bit in each of the fields.
pub fn personality(seed: u64, user: u32) -> u32 {
    let words = Words::new(seed, PERSONALITIES, u64::from(user));
    let one_of = |(place, field): (usize, &choice::Field)| {
        1 << (field.lowest + words.below(place as u64, field.bits.into()) as u32)
    };
    FIELDS.iter().enumerate().map(one_of).fold(0, |all, bit: u32| all | bit)
}

/// All advertisements, made at `made_s`.
pub fn ads(seed: u64, made_s: i64) -> Vec<Ad> {
    (0..ADS).map(|id| ad(seed, id, made_s)).collect()
}

fn ad(seed: u64, id: u16, made_s: i64) -> Ad {
    let words = Words::new(seed, CUSTOM_ADS, id.into());
    let (mut demographics, mut weights, mut sum) = (0, 0, 0);
    for (place, field) in FIELDS.iter().enumerate() {
        let first = 10 * place as u64;
        // Any half of the field's bits, and one at least.
        let some = words.word(first) as u32 & ((1 << field.bits) - 1);
        let one = 1 << words.below(first + 1, field.bits.into());
        demographics |= (some | one) << field.lowest;
        let weight = words.between(first + 2, 1, 9) as u32;
        weights = weights << 4 | weight;
        sum += weight;
    }
    // A user matches about half of it, so the scan goes over some that do not suit and ends soon.
    let minimum = words.between(100, i64::from(sum / 3), i64::from(sum)) as u32;
    let expired = words.below(101, 100) < EXPIRED_PERCENT;
    Ad { id, demographics, weights, minimum, expires_s: if expired { made_s - FAR_S } else { made_s + FAR_S } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_set::Place;

    #[test]
    fn a_user_has_one_bit_in_each_field() {
        for user in 0..1000 {
            let who = personality(5, user);
            assert!(FIELDS.iter().all(|field| (who & field.mask()).count_ones() == 1));
        }
        assert_eq!(personality(5, 3), personality(5, 3));
        assert_ne!(personality(5, 3), personality(6, 3));
    }

    #[test]
    fn users_are_shown_something_that_suits_them_soon() {
        let ads = ads(5, 1_000_000_000);
        let (mut none, mut first, mut scanned) = (0, 0, 0u64);
        for user in 0..2000 {
            let last = (user % u32::from(ADS)) as u16;
            match choose(&ads, personality(5, user), last, 1_000_000_000) {
                None => none += 1,
                Some(chosen) => {
                    let steps = (chosen.ad + ADS - last - 1) % ADS;
                    scanned += u64::from(steps);
                    first += u32::from(steps == 0);
                }
            }
        }
        assert_eq!(none, 0, "every user finds one of {ADS}");
        assert!((100..1500).contains(&first), "{first} of 2000 found it without a scan");
        assert!((1..20).contains(&(scanned / 2000)), "{scanned} scanned");
        let expired = ads.iter().filter(|ad| ad.expires_s < 1_000_000_000).count();
        assert!((15..60).contains(&expired), "{expired}");
    }

    #[test]
    fn pictures_are_where_the_number_says() {
        let ad = |id| Ad { id, demographics: 0, weights: 0, minimum: 0, expires_s: 0 };
        assert_eq!(ad(0).picture(25), Place { directory: 0, class: 0, file: 0 });
        assert_eq!(ad(359).picture(25), Place { directory: 9, class: 3, file: 8 });
        assert_eq!(ad(46).picture(25), Place { directory: 1, class: 1, file: 1 });
        assert_eq!(ad(359).picture(4), Place { directory: 1, class: 3, file: 8 });
    }
}
