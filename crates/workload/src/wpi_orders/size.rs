//! From bytes to rows and back, by PostgreSQL's page arithmetic.
//!
//! The unit is the study's ratio in whole rows: 100 customers, accounts and histories, 2 items and stocks, 1 order, pending
//! order, payment and delivery (2,500,000 : 50,000 : 25,000). Rows have constant width, so pages per table follow from the
//! layout of heap and B-tree pages; a unit takes about 31.7 KB at any size. Tests compare with servers.

use super::rows::widths;
use super::tables::{HISTORY_FILLFACTOR, TableId};
use crate::pages::{PAGE_BYTES, heap_pages, key_pages, map_pages};

/// The smallest size that is accepted; below it, fixed pages decide and not rows.
pub(super) const SIZE_BYTES_MIN: u64 = 8 << 20;
/// The largest size that is accepted.
pub(super) const SIZE_BYTES_MAX: u64 = 16 << 40;

/// Bytes of `table` with its maps, its primary key and the empty index of its TOAST table.
pub(super) fn table_bytes(table: TableId, units: u64) -> u64 {
    let rows = table.rows(units);
    let fillfactor = if table == TableId::History { HISTORY_FILLFACTOR } else { 100 };
    let heap = heap_pages(rows, widths(table), fillfactor);
    let toast = u64::from(table.columns().iter().any(|(_, kind)| *kind == "text" || kind.ends_with("[]")));
    PAGE_BYTES * (heap + map_pages(heap) + toast + key_pages(rows))
}

/// Bytes of all tables.
pub(super) fn estimated_bytes(units: u64) -> u64 {
    TableId::ALL.into_iter().map(|table| table_bytes(table, units)).sum()
}

/// The number of units that comes nearest to `size_bytes`; `None` if it is out of range.
pub(super) fn units_for(size_bytes: u64) -> Option<u64> {
    if !(SIZE_BYTES_MIN..=SIZE_BYTES_MAX).contains(&size_bytes) {
        return None;
    }
    // The estimate grows with the units, so halve the interval between one unit and more than enough.
    let (mut low, mut high) = (1, size_bytes / 20_000 + 2);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if estimated_bytes(middle) <= size_bytes { low = middle } else { high = middle }
    }
    let nearer = |units: u64| estimated_bytes(units).abs_diff(size_bytes);
    Some(if nearer(low) <= nearer(high) { low } else { high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_hit() {
        for size in [SIZE_BYTES_MIN, 64 << 20, 400 << 20, 1536 << 20, 100 << 30, SIZE_BYTES_MAX] {
            let found = estimated_bytes(units_for(size).unwrap());
            assert!(found.abs_diff(size) * 200 < size, "{size}: {found}");
        }
        assert_eq!(units_for(SIZE_BYTES_MIN - 1), None);
        assert_eq!(units_for(u64::MAX), None);
    }

    #[test]
    fn the_ratios_are_the_studys() {
        let counts = TableId::ALL.map(|table| table.rows(25_000));
        assert_eq!(counts[..3], [2_500_000; 3]);
        assert_eq!(counts[3..5], [50_000; 2]);
        assert_eq!(counts[5..], [25_000; 4]);
    }
}
