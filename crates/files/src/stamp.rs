//! Blocks that say what they are: every word of a sector is one that only one file, place and version has.
//!
//! The fact that constrains it: what is measured is the file system, so a byte may cost no more than a copy of it does. A word is
//! that of a table of random ones with the sector's tag, by exclusive or: that is one instruction for sixteen bytes, to make it
//! and to compare it. No two sectors have a word in common but by chance, so that nothing of them compresses or is stored once
//! for several.
//!
//! | bytes of a sector | hold |
//! |---|---|
//! | 0 to 7 | the tag of file, sector and version |
//! | 8 to 15 | the version, from 1, little-endian |
//! | 16 to 503 | the table's words with the tag |
//! | 504 to 511 | the tag once more |

use plimsoll_keys::{Words, mixed};

/// Bytes of a sector, by which blocks are stamped; offsets and lengths are multiples of it.
pub const SECTOR: usize = 512;
const SECTOR_BYTES: u64 = SECTOR as u64;
const WORDS: usize = SECTOR / 8;
/// Words of a sector: the version's, and the last one.
const VERSION: usize = 1;
const TAIL: usize = WORDS - 1;
/// What each word of a sector is made of.
static TABLE: [u64; WORDS] = table();
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
    /// It says which write it is of, and holds other bytes than that has written.
    #[error("byte {at} is not what was written there, in a sector of version {version}")]
    Damaged {
        /// Of the file: the first word that differs.
        at: u64,
        /// Of the sector.
        version: u64,
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
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(block.as_chunks_mut::<SECTOR>().0) {
            let tag = self.tag(sector, version);
            let (words, _) = bytes.as_chunks_mut::<8>();
            for (word, filler) in words.iter_mut().zip(&TABLE) {
                *word = (filler ^ tag).to_le_bytes();
            }
            (words[0], words[VERSION], words[TAIL]) = (tag.to_le_bytes(), version.to_le_bytes(), tag.to_le_bytes());
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
        for (sector, bytes) in (offset / SECTOR_BYTES..).zip(block.as_chunks::<SECTOR>().0) {
            let version = self.version_of(bytes, sector);
            if version.is_none() || *first.get_or_insert(version) != version {
                return Err(self.wrong(bytes, sector, first.flatten()));
            }
        }
        Ok(first.flatten().unwrap_or(0))
    }

    /// The version of a sector of which every byte is as it was written; 0 where nothing was.
    #[inline]
    fn version_of(&self, bytes: &[u8; SECTOR], sector: u64) -> Option<u64> {
        let (tag, version) = (word(bytes, 0), word(bytes, VERSION));
        if version == 0 {
            return bytes.iter().all(|&byte| byte == 0).then_some(0);
        }
        // Every word is looked at, whatever the ones before it were, so that many are compared at once.
        let words = bytes.as_chunks::<8>().0.iter().zip(&TABLE);
        let others = words.take(TAIL).skip(VERSION + 1);
        let differs = others.fold(0, |differs, (word, filler)| differs | (u64::from_le_bytes(*word) ^ filler ^ tag));
        let is_so = version <= VERSION_MAX && tag == self.tag(sector, version) && word(bytes, TAIL) == tag;
        (is_so && differs == 0).then_some(version)
    }

    /// What is wrong with a sector. `first`: the version of the block's first one, if this is another one.
    #[cold]
    fn wrong(&self, bytes: &[u8; SECTOR], sector: u64, first: Option<u64>) -> Wrong {
        let at = sector * SECTOR_BYTES;
        let (tag, version, tail) = (word(bytes, 0), word(bytes, VERSION), word(bytes, TAIL));
        if let (Some(first), Some(other)) = (first, self.version_of(bytes, sector)) {
            return Wrong::Torn { at, first, other };
        }
        let is_known = if version == 0 { tag == 0 } else { version <= VERSION_MAX && tag == self.tag(sector, version) };
        if !is_known {
            return Wrong::Foreign { at };
        }
        if tail != tag {
            return Wrong::Torn { at, first: first.unwrap_or(version), other: 0 };
        }
        let is_other = |place: &usize| word(bytes, *place) != if version == 0 { 0 } else { TABLE[*place] ^ tag };
        let place = (VERSION + 1..TAIL).find(is_other).unwrap_or(VERSION);
        Wrong::Damaged { at: at + 8 * place as u64, version }
    }
}

#[inline]
fn word(bytes: &[u8; SECTOR], place: usize) -> u64 {
    u64::from_le_bytes(bytes.as_chunks::<8>().0[place])
}

/// Random words, the same ones always: by the generator splitmix64.
const fn table() -> [u64; WORDS] {
    let (mut words, mut place) = ([0; WORDS], 0);
    while place < WORDS {
        words[place] = mixed((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        place += 1;
    }
    words
}

#[inline]
fn check_place(block: &[u8], offset: u64) {
    assert!(block.len().is_multiple_of(SECTOR) && offset.is_multiple_of(SECTOR_BYTES), "whole sectors");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(stamps: &Stamps, offset: u64, version: u64) -> Vec<u8> {
        let mut block = vec![0; 8 * SECTOR];
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

    #[test]
    fn every_bit_of_every_byte_is_compared() {
        let stamps = Stamps::of_file(1, 1);
        for (written, version) in [(block(&stamps, 8192, 3), 3), (vec![0; 8 * SECTOR], 0)] {
            let mut block = written.clone();
            for at in 0..block.len() {
                for bit in 0..8 {
                    block[at] ^= 1 << bit;
                    assert!(stamps.read(&block, 8192).is_err(), "bit {bit} of byte {at}, version {version}");
                    block[at] ^= 1 << bit;
                }
            }
            assert_eq!(stamps.read(&block, 8192), Ok(version));
        }
        let mut damaged = block(&stamps, 8192, 3);
        damaged[2 * SECTOR + 100] ^= 64;
        let wrong = stamps.read(&damaged, 8192).unwrap_err();
        assert_eq!(wrong, Wrong::Damaged { at: 8192 + 2 * 512 + 96, version: 3 });
    }

    #[test]
    fn no_part_of_what_is_written_is_like_another() {
        // Any eight bytes that are there twice, wherever they begin, would be found by what compresses or stores things once.
        let mut seen = std::collections::HashSet::new();
        for (file, version) in [(1, 1), (1, 2), (2, 1)] {
            let mut block = vec![0; 64 * SECTOR];
            Stamps::of_file(7, file).write(&mut block, 0, version);
            for sector in block.chunks(SECTOR) {
                // But for the version, and the tag that stands at both ends.
                assert!(sector[16..].windows(8).all(|bytes| seen.insert(bytes.to_vec())));
            }
        }
    }
}
