//! Users and advertisements as the program has read them.

use crate::ads::{Ad, Chosen, choose, read_ads, read_personalities};
use crate::file_set::{PATH_BYTES, Place};
use std::path::Path;
use std::time::SystemTime;

/// Pictures are in so many directories at most.
pub(super) const PICTURE_DIRECTORIES: u32 = 10;
const FILES: [&str; 2] = ["User.Personality", "Custom.Ads"];
const TAG: &[u8] = b"<!WEB99CAD><IMG SRC=\"";

/// What tells a file from the one that was there before.
type Stamp = Option<(SystemTime, u64)>;

#[derive(Debug, Default)]
pub(super) struct Shown {
    stamps: [Stamp; 2],
    personalities: Vec<u32>,
    ads: Vec<Ad>,
}

impl Shown {
    /// Reads the two files in `folder` anew where they are others than before.
    pub(super) fn renew(&mut self, folder: &Path) -> Result<(), String> {
        let stamps = FILES.map(|name| {
            let metadata = std::fs::metadata(folder.join(name)).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        });
        if stamps == self.stamps && stamps.iter().all(Option::is_some) {
            return Ok(());
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        self.personalities = read_personalities(&read(FILES[0])?)?;
        self.ads = read_ads(&read(FILES[1])?)?;
        self.stamps = stamps;
        Ok(())
    }

    pub(super) fn choose(&self, user: usize, last: u16, now_s: i64, directories: u32) -> Option<(Chosen, Place)> {
        let chosen = choose(&self.ads, *self.personalities.get(user)?, last, now_s)?;
        Some((chosen, self.ads.get(usize::from(chosen.ad))?.picture(directories)))
    }
}

/// Puts the path of a picture into every tag.
pub(super) fn replace(file: &mut [u8], picture: Place) {
    let path = picture.path();
    let mut at = 0;
    while let Some(found) = file[at..].windows(TAG.len()).position(|window| window == TAG) {
        let begins = at + found + TAG.len();
        let Some(place) = file.get_mut(begins..begins + PATH_BYTES) else { return };
        place.copy_from_slice(path.as_bytes());
        at = begins + PATH_BYTES;
    }
}
