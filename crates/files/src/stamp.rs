//! Blocks that say what they are: every sector bears, at both of its ends, a word that only one file, place and version has.
//!
//! The fact that constrains it: what is measured is the file system, so a block may cost a few nanoseconds a sector, not a pass over
//! its bytes. What lies between the stamps of a sector is left as it is in the buffer.
//!
//! | bytes of a sector | hold |
//! |---|---|
//! | 0 to 7 | the tag of file, sector and version |
//! | 8 to 15 | the version, from 1, little-endian |
//! | 16 to 503 | whatever the buffer holds |
//! | 504 to 511 | the tag once more |

use plimsoll_keys::Words;

/// Bytes of a sector, by which blocks are stamped; offsets and lengths are multiples of it.
pub const SECTOR: usize = 512;
const SECTOR_BYTES: u64 = SECTOR as u64;
const TAIL: usize = SECTOR - 8;
/// Versions are below this, so that a sector and its version make one number.
pub const VERSION_MAX: u64 = (1 << 28) - 1;

/// What is wrong with a block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Its sectors, or the two ends of one, are not of one write.
    #[error("torn at byte {at}: version {first} before, {other} there")]
    Torn {
        /// Of the file: the sector's first byte.
        at: u64,
        /// The version of the first sector.
        first: u64,
        /// That of this one.
        other: u64,
    },
    /// Neither written here nor empty: of another file or place, or damaged.
    #[error("byte {at} holds nothing that was written there")]
    Foreign {
        /// Of the file: the sector's first byte.
        at: u64,
    },
}

/// The stamps of one file.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    words: Words,
}

impl Stamps {
    /// Those of file number `file` under `seed`.
    pub fn of_file(seed: u64, file: u64) -> Self {
        Self { words: Words::new(seed, file, 0) }
    }

    #[inline]
    fn tag(&self, sector: u64, version: u64) -> u64 {
        self.words.word((sector << 28) | version)
    }

    /// Makes `block`, which begins at byte `offset`, one of `version` (1 to [`VERSION_MAX`]).
    ///
    /// # Panics
    /// Where `offset` or the block's length is no multiple of [`SECTOR`], or the version is out of range.
    #[inline]
    pub fn write(&self, block: &mut [u8], offset: u64, version: u64) {
        check_place(block, offset);
        assert!((1..=VERSION_MAX).contains(&version), "a version from 1 to {VERSION_MAX}");
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(block.chunks_exact_mut(SECTOR)) {
            let tag = self.tag(sector, version).to_le_bytes();
            bytes[..8].copy_from_slice(&tag);
            bytes[8..16].copy_from_slice(&version.to_le_bytes());
            bytes[TAIL..].copy_from_slice(&tag);
        }
    }

    /// The version of a block that was read from byte `offset`; 0 where nothing was written yet.
    ///
    /// # Errors
    /// When it is not one block of this file and place.
    ///
    /// # Panics
    /// Where `offset` or the block's length is no multiple of [`SECTOR`].
    #[inline]
    pub fn read(&self, block: &[u8], offset: u64) -> Result<u64, Wrong> {
        check_place(block, offset);
        let mut first = None;
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(block.chunks_exact(SECTOR)) {
            let at = sector * SECTOR_BYTES;
            let version = self.version_of(bytes, sector).ok_or(Wrong::Foreign { at })?;
            let tail = word(bytes, TAIL);
            let is_whole = if version == 0 { tail == 0 } else { tail == word(bytes, 0) };
            let first = *first.get_or_insert(version);
            if !is_whole || version != first {
                let other = if is_whole { version } else { 0 };
                return Err(Wrong::Torn { at, first, other });
            }
        }
        Ok(first.unwrap_or(0))
    }

    /// What the head of a sector says, if it can be true.
    #[inline]
    fn version_of(&self, bytes: &[u8], sector: u64) -> Option<u64> {
        let (tag, version) = (word(bytes, 0), word(bytes, 8));
        let is_so = if version == 0 { tag == 0 } else { version <= VERSION_MAX && tag == self.tag(sector, version) };
        is_so.then_some(version)
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline]
fn check_place(block: &[u8], offset: u64) {
    assert!(block.len().is_multiple_of(SECTOR) && offset.is_multiple_of(SECTOR_BYTES), "whole sectors");
}

/// Fills a buffer with bytes that do not compress, once, before it is stamped again and again.
pub fn fill(buffer: &mut [u8], seed: u64) {
    let words = Words::new(seed, u64::MAX, 0);
    for (place, bytes) in (0..).zip(buffer.chunks_mut(8)) {
        bytes.copy_from_slice(&words.word(place).to_le_bytes()[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(stamps: &Stamps, offset: u64, version: u64) -> Vec<u8> {
        let mut block = vec![0; 8 * SECTOR];
        fill(&mut block, 1);
        stamps.write(&mut block, offset, version);
        block
    }

    #[test]
    fn a_block_is_known_by_file_place_and_version() {
        let (ours, other) = (Stamps::of_file(7, 3), Stamps::of_file(7, 4));
        let mut block = block(&ours, 4096, 5);
        assert_eq!(ours.read(&block, 4096), Ok(5));
        assert_eq!(ours.read(&block[SECTOR..], 4096 + SECTOR as u64), Ok(5), "and so is each part of it");
        assert_eq!(ours.read(&block, 8192), Err(Wrong::Foreign { at: 8192 }), "written elsewhere");
        assert_eq!(other.read(&block, 4096), Err(Wrong::Foreign { at: 4096 }), "another file's");
        assert_eq!(Stamps::of_file(8, 3).read(&block, 4096), Err(Wrong::Foreign { at: 4096 }), "another seed's");
        ours.write(&mut block, 4096, 6);
        assert_eq!(ours.read(&block, 4096), Ok(6));
        assert_eq!(ours.read(&vec![0; 4096], 0), Ok(0), "a hole");
    }

    #[test]
    fn torn_blocks_are_found_between_sectors_and_within_one() {
        let stamps = Stamps::of_file(1, 1);
        let (old, new) = (block(&stamps, 0, 1), block(&stamps, 0, 2));
        for cut in (8..old.len()).step_by(8) {
            let torn = [&new[..cut], &old[cut..]].concat();
            assert!(stamps.read(&torn, 0).is_err(), "cut at byte {cut}");
        }
        let half_a_hole = [&new[..SECTOR], &vec![0; 7 * SECTOR]].concat();
        assert_eq!(stamps.read(&half_a_hole, 0), Err(Wrong::Torn { at: 512, first: 2, other: 0 }));
        let mut damaged = new.clone();
        damaged[3 * SECTOR] ^= 1;
        assert_eq!(stamps.read(&damaged, 0), Err(Wrong::Foreign { at: 3 * 512 }));
    }
}
