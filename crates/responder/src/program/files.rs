//! The files of the program: who the users are, what they are shown, and the log.
//!
//! The fact that constrains it: the program may read the two data files while they are made anew. So each takes the place of the one
//! before as a whole.

use super::log;
use plimsoll_web::ads::{USERS_MAX, write_ads, write_personalities};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

pub(super) const PERSONALITIES: &str = "User.Personality";
pub(super) const CUSTOM_ADS: &str = "Custom.Ads";

/// Makes the two data files in `folder` anew, as of `now_s` in seconds since 1970, and the log empty.
///
/// # Errors
/// When one cannot be written, by its name.
pub fn reset(folder: &Path, seed: u64, users: u32, now_s: i64) -> io::Result<()> {
    for (name, content) in [(PERSONALITIES, write_personalities(seed, users)), (CUSTOM_ADS, write_ads(seed, now_s))] {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.join(name).display()));
        replace(folder, name, content.as_bytes()).map_err(named)?;
    }
    log::clear(folder)
}

fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    File::create(&new)?.write_all(content)?;
    fs::rename(new, folder.join(name))
}

/// Seed and users as a command names them; else what is wrong with it.
pub(super) fn asked(fields: &str) -> Result<(u64, u32), String> {
    let (mut seed, mut users) = (None, None);
    for field in fields.split('&') {
        let wrong = || format!("\"{field}\" is not seed=S or users=U, U from 1 to {USERS_MAX}");
        match field.split_once('=').ok_or_else(wrong)? {
            ("seed", value) => seed = Some(value.parse().map_err(|_| wrong())?),
            ("users", value) => {
                let within = value.parse().ok().filter(|users| (1..=USERS_MAX).contains(users));
                users = Some(within.ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    seed.zip(users).ok_or_else(|| "seed and users are both needed".to_owned())
}
