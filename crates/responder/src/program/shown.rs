//! Users and advertisements as the program has read them.

use super::files::{CUSTOM_ADS, PERSONALITIES};
use plimsoll_web::ads::{Ad, Chosen, choose, read_ads, read_personalities};
use plimsoll_web::{PATH_BYTES, Place};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Pictures are in so many directories at most.
const PICTURE_DIRECTORIES: u32 = 10;
const FILES: [&str; 2] = [PERSONALITIES, CUSTOM_ADS];
const TAG: &[u8] = b"<!WEB99CAD><IMG SRC=\"";

/// What tells a file from the one that was there before: two that are made within a tick of the file system's clock by their inodes.
type Stamp = Option<(i64, i64, u64, u64)>;

#[derive(Debug, Default)]
pub(super) struct Shown {
    stamps: [Stamp; 2],
    personalities: Vec<u32>,
    ads: Vec<Ad>,
    /// How many directories of pictures there are.
    directories: u32,
}

impl Shown {
    /// Reads the two files in `folder` anew where they are others than before, and counts the directories below `root`.
    pub(super) fn renew(&mut self, root: &Path, folder: &Path) -> Result<(), String> {
        let stamps = FILES.map(|name| {
            let metadata = std::fs::metadata(folder.join(name)).ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()))
        });
        if stamps == self.stamps && stamps.iter().all(Option::is_some) {
            return Ok(());
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        self.personalities = read_personalities(&read(FILES[0])?)?;
        self.ads = read_ads(&read(FILES[1])?)?;
        let is_there = |directory: &u32| root.join(format!("file_set/dir{directory:05}")).is_dir();
        self.directories = (0..PICTURE_DIRECTORIES).take_while(is_there).count().max(1) as u32;
        self.stamps = stamps;
        Ok(())
    }

    pub(super) fn choose(&self, user: usize, last: u16, now_s: i64) -> Option<(Chosen, Place)> {
        let chosen = choose(&self.ads, *self.personalities.get(user)?, last, now_s)?;
        Some((chosen, self.ads.get(usize::from(chosen.ad))?.picture(self.directories)))
    }
}

/// Puts the path of a picture into every tag.
pub(super) fn replace(file: &mut [u8], picture: Place) {
    let path = picture.path();
    let mut at = 0;
    // Byte by byte for the first one of a tag, which texts have nowhere else: whole tags are compared with few places.
    while let Some(found) = file[at..].iter().position(|byte| *byte == TAG[0]) {
        at += found;
        let begins = at + TAG.len();
        match file.get_mut(at..begins + PATH_BYTES).and_then(|tag| tag.split_at_mut_checked(TAG.len())) {
            Some((tag, place)) if *tag == *TAG => {
                place.copy_from_slice(path.as_bytes());
                at = begins + PATH_BYTES;
            }
            _ => at += 1,
        }
    }
}
