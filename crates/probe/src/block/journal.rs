//! Where on its disk a file system keeps its journal, by the file system's own first block: what is written there is told from
//! other metadata by its place alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SECTOR: u64 = 512;
const EXT4_AT: u64 = 1024;
const EXT4_MAGIC: u16 = 0xef53;
const EXT4_HAS_JOURNAL: u32 = 4;
/// The journal's map of blocks is kept in the first block, too, for when the journal's own file is lost.
const EXT4_KEEPS_MAP: u8 = 1;
const EXTENTS_MAGIC: u16 = 0xf30a;
const ENTRY_BYTES: usize = 12;
const DEPTH_MAX: u16 = 5;
/// An extent that is longer is one that has not been written; how long it is stands above this.
const EXTENT_BLOCKS_MAX: u64 = 32_768;

/// From a sector of the volume to before another.
pub(super) type Range = (u64, u64);

fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from(le16(bytes, at)) | u32::from(le16(bytes, at + 2)) << 16
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    le32(bytes, at).swap_bytes()
}

/// The blocks that a node of a tree of extents names, and those below it.
fn extents(volume: &File, node: &[u8], block_bytes: u64, found: &mut Vec<Range>) -> io::Result<()> {
    let (magic, entries, depth) = (le16(node, 0), usize::from(le16(node, 2)), le16(node, 6));
    if magic != EXTENTS_MAGIC || depth > DEPTH_MAX || (entries + 1) * ENTRY_BYTES > node.len() {
        return Err(io::Error::other("its journal is not mapped by extents"));
    }
    for entry in node[ENTRY_BYTES..].chunks_exact(ENTRY_BYTES).take(entries) {
        if depth == 0 {
            let blocks = u64::from(le16(entry, 4));
            let blocks = if blocks > EXTENT_BLOCKS_MAX { blocks - EXTENT_BLOCKS_MAX } else { blocks };
            let first = u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8));
            let sectors = block_bytes / SECTOR;
            found.push((first * sectors, (first + blocks) * sectors));
        } else {
            let below = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
            let mut bytes = vec![0; block_bytes as usize];
            volume.read_exact_at(&mut bytes, below * block_bytes)?;
            if le16(&bytes, 6) >= depth {
                return Err(io::Error::other("its journal's extent map has a cycle"));
            }
            extents(volume, &bytes, block_bytes, found)?;
        }
    }
    Ok(())
}

fn of_ext4(volume: &File) -> io::Result<Vec<Range>> {
    let mut first = [0; 1024];
    volume.read_exact_at(&mut first, EXT4_AT)?;
    if le16(&first, 0x38) != EXT4_MAGIC {
        return Err(io::Error::other("its superblock is not ext4's"));
    }
    if le32(&first, 0x5c) & EXT4_HAS_JOURNAL == 0 {
        return Ok(Vec::new());
    }
    if le32(&first, 0xe0) == 0 || first[0xfd] != EXT4_KEEPS_MAP {
        return Err(io::Error::other("its journal is on another device, or its location is not in the superblock"));
    }
    let block_bytes = 1024_u64 << le32(&first, 0x18).min(6);
    let mut found = Vec::new();
    extents(volume, &first[0x10c..0x10c + 60], block_bytes, &mut found)?;
    Ok(found)
}

fn of_xfs(volume: &File) -> io::Result<Vec<Range>> {
    let mut first = [0; 512];
    volume.read_exact_at(&mut first, 0)?;
    if &first[..4] != b"XFSB" {
        return Err(io::Error::other("its superblock is not XFS's"));
    }
    let begins = u64::from(be32(&first, 48)) << 32 | u64::from(be32(&first, 52));
    if begins == 0 {
        return Err(io::Error::other("its log is on another device"));
    }
    // Blocks are numbered by group, each as if it had a power of two of them.
    let (group_log2, group_blocks) = (u32::from(first[124].min(63)), u64::from(be32(&first, 84)));
    let block = (begins >> group_log2) * group_blocks + (begins & ((1 << group_log2) - 1));
    let sectors = u64::from(be32(&first, 4)) / SECTOR;
    Ok(vec![(block * sectors, (block + u64::from(be32(&first, 96))) * sectors)])
}

/// The ranges of the journal on a volume; None of a kind of file system that has none in one place.
pub(super) fn ranges(kind: &str, volume: &File) -> io::Result<Option<Vec<Range>>> {
    match kind {
        "ext4" | "ext3" => of_ext4(volume).map(Some),
        "xfs" => of_xfs(volume).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(parts: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        for (at, bytes) in parts {
            file.write_all_at(bytes, *at).unwrap();
        }
        file
    }

    fn node(depth: u16, entries: &[[u8; 12]]) -> Vec<u8> {
        let head = [EXTENTS_MAGIC, entries.len() as u16, 4, depth, 0, 0];
        let mut bytes: Vec<u8> = head.iter().flat_map(|half| half.to_le_bytes()).collect();
        bytes.extend(entries.iter().flatten());
        bytes
    }

    fn extent(from: u16, blocks: u16, first: u32) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&from.to_le_bytes());
        bytes[4..6].copy_from_slice(&blocks.to_le_bytes());
        bytes[8..].copy_from_slice(&first.to_le_bytes());
        bytes
    }

    fn ext4(map: &[u8]) -> Vec<u8> {
        let mut first = vec![0; 1024];
        first[0x18] = 2;
        first[0x38..0x3a].copy_from_slice(&EXT4_MAGIC.to_le_bytes());
        (first[0x5c], first[0xe0], first[0xfd]) = (4, 8, 1);
        first[0x10c..0x10c + map.len()].copy_from_slice(map);
        first
    }

    #[test]
    fn ext4_says_where_its_journal_is() {
        let first = ext4(&node(0, &[extent(0, 100, 32), extent(100, 4 + 32_768, 1000)]));
        let found = ranges("ext4", &volume(&[(1024, &first)])).unwrap();
        assert_eq!(found, Some(vec![(256, 1056), (8000, 8032)]));
    }

    #[test]
    fn a_map_with_a_level_below_is_followed() {
        let mut below = [0; 12];
        below[4] = 7;
        let first = ext4(&node(1, &[below]));
        let leaf = node(0, &[extent(0, 2, 16)]);
        let found = ranges("ext4", &volume(&[(1024, &first), (7 * 4096, &leaf)])).unwrap();
        assert_eq!(found, Some(vec![(128, 144)]));
        let round = volume(&[(1024, &first), (7 * 4096, &node(1, &[below]))]);
        assert!(ranges("ext4", &round).is_err());
    }

    #[test]
    fn what_is_not_told_is_an_error_and_no_journal_is_none() {
        let mut first = ext4(&[]);
        assert!(ranges("ext4", &volume(&[(1024, &first)])).is_err());
        first[0x5c] = 0;
        assert_eq!(ranges("ext4", &volume(&[(1024, &first)])).unwrap(), Some(Vec::new()));
        assert!(ranges("ext4", &volume(&[])).is_err());
        assert_eq!(ranges("btrfs", &volume(&[])).unwrap(), None);
    }

    #[test]
    fn xfs_numbers_its_blocks_by_group() {
        let mut first = [0; 512];
        first[..4].copy_from_slice(b"XFSB");
        first[4..8].copy_from_slice(&4096_u32.to_be_bytes());
        first[48..56].copy_from_slice(&(2_u64 << 15 | 5).to_be_bytes());
        first[84..88].copy_from_slice(&25_600_u32.to_be_bytes());
        first[96..100].copy_from_slice(&1_368_u32.to_be_bytes());
        first[124] = 15;
        let found = ranges("xfs", &volume(&[(0, &first)])).unwrap();
        assert_eq!(found, Some(vec![(51_205 * 8, 52_573 * 8)]));
    }
}
