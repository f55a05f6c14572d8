//! The two files that a server reads, User.Personality and Custom.Ads: a line each, of a fixed length.

use super::{ADS, Ad, FIRST_USER, ads, personality};
use std::fmt::Write;

/// Bytes of a user's line: number and demographics.
pub const PERSONALITY_BYTES: usize = 15;
/// Bytes of an advertisement's line: number, demographics, weights, minimum and time.
pub const AD_BYTES: usize = 39;

/// The file of so many users.
pub fn write_personalities(seed: u64, users: u32) -> String {
    let mut file = String::with_capacity(users as usize * PERSONALITY_BYTES);
    for user in 0..users {
        // Writing to a string cannot fail.
        let _ = writeln!(file, "{:>5} {:08X}", FIRST_USER + user, personality(seed, user));
    }
    file
}

/// The file of advertisements that are made at `made_s`.
pub fn write_ads(seed: u64, made_s: i64) -> String {
    let mut file = String::with_capacity(usize::from(ADS) * AD_BYTES);
    for Ad { id, demographics, weights, minimum, expires_s } in ads(seed, made_s) {
        let _ = writeln!(file, "{id:>5} {demographics:08X} {weights:08X} {minimum:>3} {expires_s:>10}");
    }
    file
}

/// The demographics of every user, in order.
///
/// # Errors
/// A sentence that names the line.
pub fn read_personalities(file: &str) -> Result<Vec<u32>, String> {
    let line = |(place, line): (usize, &str)| {
        let wrong = || format!("User.Personality, line {}: \"{line}\" is no user", place + 1);
        let [id, demographics] = fields(line, PERSONALITY_BYTES).ok_or_else(wrong)?;
        let id: usize = id.parse().map_err(|_| wrong())?;
        let demographics = u32::from_str_radix(demographics, 16).map_err(|_| wrong())?;
        if id == FIRST_USER as usize + place { Ok(demographics) } else { Err(wrong()) }
    };
    file.lines().enumerate().map(line).collect()
}

/// Every advertisement, in order.
///
/// # Errors
/// A sentence that names the line.
pub fn read_ads(file: &str) -> Result<Vec<Ad>, String> {
    let line = |(place, line): (usize, &str)| {
        let read = || {
            let [id, demographics, weights, minimum, expires_s] = fields(line, AD_BYTES)?;
            let hex = |text| u32::from_str_radix(text, 16).ok();
            let id = id.parse().ok().filter(|&id: &u16| usize::from(id) == place)?;
            let (minimum, expires_s) = (minimum.parse().ok()?, expires_s.parse().ok()?);
            Some(Ad { id, demographics: hex(demographics)?, weights: hex(weights)?, minimum, expires_s })
        };
        read().ok_or_else(|| format!("Custom.Ads, line {}: \"{line}\" is no advertisement", place + 1))
    };
    file.lines().enumerate().map(line).collect()
}

/// The fields of a line that has as many bytes, its end included.
fn fields<const N: usize>(line: &str, bytes: usize) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    fields.try_into().ok().filter(|_| line.len() + 1 == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_lengths_and_are_read_back() {
        let (users, advertisements) = (write_personalities(7, 500), write_ads(7, 1_700_000_000));
        assert!(users.lines().all(|line| line.len() == PERSONALITY_BYTES - 1));
        assert!(advertisements.lines().all(|line| line.len() == AD_BYTES - 1));
        let read = read_personalities(&users).unwrap();
        assert!(read.len() == 500 && (0..).zip(&read).all(|(user, &who)| who == personality(7, user)));
        assert_eq!(read_ads(&advertisements).unwrap(), ads(7, 1_700_000_000));
    }

    #[test]
    fn a_line_that_is_cut_or_out_of_place_is_refused() {
        let users = write_personalities(7, 3);
        let second = "10001 0";
        for wrong in [users[1..].to_owned(), users.replace("10001", "10009"), users.replace("10001", "1000x")] {
            assert!(read_personalities(&wrong).unwrap_err().starts_with("User.Personality, line "), "{wrong}");
        }
        assert!(read_personalities(second).is_err());
        let advertisements = write_ads(7, 1_700_000_000);
        for wrong in [&advertisements[1..], &advertisements[AD_BYTES..], "    0 zz 0 0 0"] {
            assert!(read_ads(wrong).unwrap_err().starts_with("Custom.Ads, line "));
        }
    }
}
