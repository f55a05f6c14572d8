//! How many requests each disk has at the device, over time: block_depth.npy.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::SeriesWriter;
use std::io;
use std::path::Path;

const COLUMNS: [&str; 5] = ["device", "requests", "depth_ns", "depth_max", "flush_asks"];
/// `struct depth`: the lock and the number, the sum of moments, and what was highest in two periods.
const DEPTH_BYTES: usize = 32;

/// A disk at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    pub(super) requests: u64,
    /// The time of all of its requests together, so far.
    pub(super) ns: u64,
    /// The most at once in the period.
    pub(super) highest: u64,
    /// Writes of nothing that asked for a flush, so far.
    pub(super) flush_asks: u64,
}

impl Depth {
    fn decode(bytes: &[u8], period: u32, now_ns: i64) -> Option<Self> {
        let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let whole = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let requests = u64::from(half(4)?);
        // Those that are there still have no end; of one that was issued after `now` that is less than nothing.
        let ns = whole(8)?.wrapping_add(requests.wrapping_mul(now_ns as u64)).cast_signed().max(0).cast_unsigned();
        let at = 16 + 8 * (period as usize & 1);
        // Nothing has changed in a period that has left nothing.
        let highest = if half(at)? == period { u64::from(half(at + 4)?) } else { requests };
        Some(Self { requests, ns, highest, flush_asks: 0 })
    }

    /// Of the period that has just ended, or is going on.
    pub(super) fn read(depths: &MapHandle, disk: usize, period: u32, now_ns: i64) -> Option<Self> {
        let bytes = depths.lookup(&(disk as u32).to_ne_bytes(), MapFlags::LOCK).ok()??;
        Self::decode(bytes.get(..DEPTH_BYTES)?, period, now_ns)
    }
}

/// Depths over a segment.
#[derive(Debug)]
pub(super) struct Depths {
    writer: Option<SeriesWriter>,
    first: Vec<Depth>,
    last: Vec<Depth>,
    highest: Vec<u64>,
}

impl Depths {
    /// Begins the table, with what the disks have now.
    pub(super) fn begin(folder: &Path, now_ns: i64, first: &[Depth]) -> io::Result<Self> {
        let writer = SeriesWriter::create(&folder.join("block_depth.npy"), &COLUMNS)?;
        let now: Vec<Depth> = first.iter().map(|depth| Depth { highest: depth.requests, ..*depth }).collect();
        let highest = vec![0; now.len()];
        let mut depths = Self { writer: Some(writer), first: now.clone(), last: Vec::new(), highest };
        depths.take(now_ns, now)?;
        Ok(depths)
    }

    /// Adds what the disks have at a moment.
    pub(super) fn take(&mut self, now_ns: i64, depths: Vec<Depth>) -> io::Result<()> {
        for (place, (depth, first)) in depths.iter().zip(&self.first).enumerate() {
            self.highest[place] = self.highest[place].max(depth.highest);
            let grown = depth.ns.saturating_sub(first.ns);
            let row =
                [place as u64, depth.requests, grown, depth.highest, depth.flush_asks].map(|number| number as i64);
            if let Some(writer) = &mut self.writer {
                writer.sample(now_ns, &row)?;
            }
        }
        self.last = depths;
        Ok(())
    }

    /// The table is as long as its header says.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.writer.take().map_or(Ok(()), |writer| writer.close().map(|_| ()))
    }

    /// Of a disk: the time of all requests together, and the most at once.
    pub(super) fn of(&self, disk: usize) -> (u64, u64) {
        let ns = |depths: &[Depth]| depths.get(disk).map_or(0, |depth| depth.ns);
        (ns(&self.last).saturating_sub(ns(&self.first)), self.highest.get(disk).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::Table;

    fn bytes(requests: u32, moments: i64, highest: [(u32, u32); 2]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [0, requests].iter().flat_map(|half| half.to_ne_bytes()).collect();
        bytes.extend(moments.to_ne_bytes());
        bytes.extend(highest.iter().flat_map(|(period, most)| [*period, *most]).flat_map(u32::to_ne_bytes));
        bytes
    }

    #[test]
    fn time_goes_on_between_changes_and_a_period_without_any_is_as_deep_as_now() {
        // One from 300 to 800; three since 900, 1_000 and 1_000.
        let told = bytes(3, 800 - 300 - 900 - 1_000 - 1_000, [(8, 7), (7, 9)]);
        assert_eq!(Depth::decode(&told, 8, 1_100), Some(Depth { requests: 3, ns: 900, highest: 7, flush_asks: 0 }));
        assert_eq!(Depth::decode(&told, 7, 1_000), Some(Depth { requests: 3, ns: 600, highest: 9, flush_asks: 0 }));
        assert_eq!(Depth::decode(&told, 9, 1_000).unwrap().highest, 3);
        assert_eq!(Depth::decode(&told[..20], 9, 1_000), None);
    }

    #[test]
    fn what_was_issued_after_the_look_began_is_not_less_than_nothing() {
        let told = bytes(1, -1_010, [(8, 1), (7, 0)]);
        assert_eq!(Depth::decode(&told, 8, 1_000), Some(Depth { requests: 1, ns: 0, highest: 1, flush_asks: 0 }));
        assert_eq!(Depth::decode(&told, 8, 1_030).unwrap().ns, 20);
    }

    #[test]
    fn a_segment_counts_from_its_first_look() {
        let folder = tempfile::tempdir().unwrap();
        let at = |requests, ns, highest| vec![Depth { requests, ns, highest, flush_asks: ns / 10 }];
        let mut depths = Depths::begin(folder.path(), 500, &at(2, 100, 90)).unwrap();
        depths.take(1_000, at(0, 300, 5)).unwrap();
        depths.take(2_000, at(1, 350, 1)).unwrap();
        assert_eq!(depths.of(0), (250, 5));
        depths.close().unwrap();
        let table = Table::read(&folder.path().join("block_depth.npy")).unwrap();
        assert_eq!(table.column("depth_ns").unwrap(), [0, 200, 250]);
        assert_eq!(table.column("depth_max").unwrap(), [2, 5, 1]);
        assert_eq!(table.column("flush_asks").unwrap(), [10, 30, 35]);
    }
}
