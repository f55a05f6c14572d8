//! Whether what was read is what was written last.

use super::versions::{BLOCK, Before, Versions};
use crate::stamp::{SECTOR, Stamps};

/// Blocks of a file about to be read: what is known of each.
pub(super) fn before(versions: &Versions, first_block: u64, (offset, bytes): (u64, u64), known: &mut Vec<Before>) {
    known.clear();
    known.extend(covered(offset, bytes).map(|block| versions.before(first_block + block)));
}

fn covered(offset: u64, bytes: u64) -> std::ops::Range<u64> {
    offset / BLOCK..(offset + bytes).div_ceil(BLOCK)
}

/// Holds the bytes that were read from `offset` on to what was known before.
///
/// # Errors
/// What is wrong with the first block that is, in words.
#[inline]
pub(super) fn after(
    versions: &Versions,
    stamps: &Stamps,
    first_block: u64,
    (offset, bytes): (u64, &[u8]),
    known: &[Before],
) -> Result<(), String> {
    let end = offset + bytes.len() as u64;
    for (block, before) in covered(offset, bytes.len() as u64).zip(known) {
        let (from, to) = (offset.max(block * BLOCK), end.min((block + 1) * BLOCK));
        let part = &bytes[(from - offset) as usize..(to - offset) as usize];
        let undisturbed = versions.undisturbed(first_block + block, before);
        if undisturbed.is_none_or(|version| stamps.read(part, from) != Ok(u64::from(version))) {
            closely(versions, stamps, first_block + block, (from, part), before)?;
        }
    }
    Ok(())
}

/// A block that was not what it usually is: it was written meanwhile, or it is wrong.
#[cold]
fn closely(
    versions: &Versions,
    stamps: &Stamps,
    block: u64,
    (offset, bytes): (u64, &[u8]),
    before: &Before,
) -> Result<(), String> {
    let allowed = versions.allowed(block, before);
    let (oldest, newest) = allowed.ends();
    let hold = |at: u64, version: u64| {
        if allowed.has(version) {
            return Ok(());
        }
        let why = if version < u64::from(newest) { "stale" } else { "not written yet" };
        Err(format!("byte {at}: {why}: version {version}, where {oldest} to {newest} were written"))
    };
    if !allowed.may_be_torn() {
        let version = stamps.read(bytes, offset).map_err(|wrong| wrong.to_string())?;
        return hold(offset, version);
    }
    // Sectors may be of several writes, and one may be half written: that one says nothing.
    for (at, sector) in (offset..).step_by(SECTOR).zip(bytes.chunks(SECTOR)) {
        if let Ok(version) = stamps.read(sector, at) {
            hold(at, version)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        versions: Versions,
        stamps: Stamps,
        bytes: Vec<u8>,
    }

    impl World {
        /// A file of three blocks that begins at block 4 of the table.
        fn new() -> Self {
            let mut world =
                Self { versions: Versions::new(7), stamps: Stamps::of_file(1, 2), bytes: vec![0; 3 * 4096] };
            world.stamps.write(&mut world.bytes, 0, 1);
            world
        }

        fn write(&mut self, block: u64, bytes: usize) -> u32 {
            let version = self.versions.begin(4 + block).unwrap();
            let (at, mut written) = (block as usize * 4096, vec![0; 4096]);
            self.stamps.write(&mut written, block * BLOCK, version.into());
            self.bytes[at..at + bytes].copy_from_slice(&written[..bytes]);
            version
        }

        fn read(&self, offset: u64, bytes: u64) -> Result<(), String> {
            let mut known = Vec::new();
            before(&self.versions, 4, (offset, bytes), &mut known);
            self.judged(offset, bytes, &known)
        }

        fn judged(&self, offset: u64, bytes: u64, known: &[Before]) -> Result<(), String> {
            let read = &self.bytes[offset as usize..(offset + bytes) as usize];
            after(&self.versions, &self.stamps, 4, (offset, read), known)
        }
    }

    #[test]
    fn reads_of_any_sectors_find_the_last_version() {
        let mut world = World::new();
        let version = world.write(1, 4096);
        world.versions.end(5, version, true);
        for (offset, bytes) in [(0, 12_288), (512, 512), (3_584, 1_024), (4_096, 4_096), (7_680, 4_608)] {
            assert_eq!(world.read(offset, bytes), Ok(()), "{offset} {bytes}");
        }
    }

    #[test]
    fn a_stale_a_torn_and_a_foreign_block_are_told_apart() {
        let mut world = World::new();
        let version = world.write(1, 0);
        world.versions.end(5, version, true);
        assert_eq!(world.read(0, 12_288), Err("byte 4096: stale: version 1, where 2 to 2 were written".to_owned()));
        let version = world.write(1, 1_024);
        world.versions.end(5, version, true);
        assert_eq!(world.read(4096, 4096), Err("torn at byte 5120: version 3 before, 1 there".to_owned()));
        let copied = world.bytes[..4096].to_vec();
        world.bytes[8192..].copy_from_slice(&copied);
        assert_eq!(world.read(8192, 512), Err("byte 8192 holds nothing that was written there".to_owned()));
    }

    #[test]
    fn a_read_that_overlaps_a_write_is_not_called_torn() {
        let mut world = World::new();
        let mut known = Vec::new();
        before(&world.versions, 4, (0, 8192), &mut known);
        let version = world.write(1, 1_000);
        assert_eq!(world.judged(0, 8192, &known), Ok(()), "half of a sector is there");
        world.versions.end(5, version, true);
        assert_eq!(world.judged(0, 8192, &known), Ok(()), "it was under way then");
        assert!(world.read(4096, 4096).is_err(), "it is not now");
        let again = world.write(1, 0);
        world.stamps.write(&mut world.bytes[4096..8192], 4096, 1);
        before(&world.versions, 4, (4096, 4096), &mut known);
        assert!(world.judged(4096, 4096, &known).unwrap_err().contains("stale"), "one older than both");
        world.versions.end(5, again, false);
    }

    #[test]
    fn after_a_write_that_failed_parts_of_it_may_be_there() {
        let mut world = World::new();
        let version = world.write(0, 2_048);
        world.versions.end(4, version, false);
        assert_eq!(world.read(0, 4096), Ok(()));
        let version = world.write(0, 4096);
        world.versions.end(4, version, true);
        assert_eq!(world.read(0, 4096), Ok(()));
        world.stamps.write(&mut world.bytes[..4096], 0, 2);
        assert!(world.read(0, 4096).unwrap_err().contains("stale: version 2"));
    }
}
