//! Sums of syncs by class and kind.

use super::records::{Record, Tells};
use plimsoll_record::SyncTotals;

const NS_BUCKETS_MAX: usize = 64;

/// Adds a sync.
pub(super) fn add(totals: &mut SyncTotals, record: &Record) {
    let ns = record.row.ns.max(0) as u64;
    totals.ns_min = if totals.count == 0 { ns } else { totals.ns_min.min(ns) };
    totals.ns_max = totals.ns_max.max(ns);
    totals.count += 1;
    totals.errors += u64::from(record.row.error != 0);
    totals.ns += ns;
    let bucket = ns.max(1).ilog2() as usize;
    if totals.ns_log2.len() <= bucket {
        totals.ns_log2.resize((bucket + 1).min(NS_BUCKETS_MAX), 0);
    }
    totals.ns_log2[bucket] += 1;
    for (part, ns) in record.parts() {
        *totals.parts_ns.entry(part.to_owned()).or_insert(0) += ns.max(0) as u64;
    }
    if record.tells == Tells::OfAJournal {
        *totals.journal_flush_ns.get_or_insert(0) += record.row.journal_flush_ns.max(0) as u64;
        *totals.pages.get_or_insert(0) += u64::from(record.row.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::SyncRow;

    #[test]
    fn sums_have_their_extremes_and_their_histogram() {
        let mut totals = SyncTotals::default();
        for (ns, error) in [(1_000, 0), (5_000, 5), (4_100, 0)] {
            let row = SyncRow { ns, error, pages: 2, parts_ns: [0, 0, ns, 0, 0, 0, 0, 0, 0, 0], ..SyncRow::default() };
            add(&mut totals, &Record { row, tells: Tells::OfAJournal });
        }
        assert_eq!((totals.count, totals.errors, totals.ns), (3, 1, 10_100));
        assert_eq!((totals.ns_min, totals.ns_max, totals.pages), (1_000, 5_000, Some(6)));
        assert_eq!((totals.ns_log2.len(), totals.ns_log2[9], totals.ns_log2[12]), (13, 1, 2));
        assert_eq!(totals.parts_ns["write_io"], 10_100);
    }
}
