//! The tables as `pgbench -i` makes them, and their rows.
//!
//! The accounts of a table, or of a range partition, are copied in the transaction that creates it; range partitions join the
//! partitioned table afterwards. Accounts that are partitioned by hash go through the partitioned table, for only the server
//! knows where they belong; so they cannot be copied frozen.
//!
//! Of an account only the aid is sent, or aid and bid if accounts are partitioned by hash. The branch, the balance of 0 and the
//! blank filler are defaults of the columns while rows are copied, and no longer: a constant costs the server less than a
//! value that it has to read.

use crate::data_set::{Job, Making};
use crate::pages::{PAGE_BYTES, heap_pages, key_pages, map_pages};
use bytes::{BufMut, BytesMut};
use plimsoll_target::postgres::bulk::{Filling, Piece, Table};
use plimsoll_target::postgres::put_row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the accounts are divided among their partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMethod {
    /// By ranges of aid of equal length.
    #[default]
    Range,
    /// By the hash of aid.
    Hash,
}

pub(super) const ACCOUNTS: &str = "pgbench_accounts";
pub(super) const BRANCHES: &str = "pgbench_branches";
pub(super) const HISTORY: &str = "pgbench_history";
pub(super) const TELLERS: &str = "pgbench_tellers";

pub(super) const ACCOUNTS_PER_BRANCH: u64 = 100_000;
pub(super) const TELLERS_PER_BRANCH: u64 = 10;
/// From this scale on there are more accounts than an integer can count.
const BIGINT_FROM_SCALE: u64 = 20_000;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) scale: u64,
    /// 0: the accounts are one table.
    pub(super) partitions: u64,
    pub(super) method: PartitionMethod,
    pub(super) unlogged: bool,
    pub(super) fillfactor: u64,
}

impl Tables {
    pub(super) fn accounts(&self) -> u64 {
        ACCOUNTS_PER_BRANCH * self.scale
    }

    pub(super) fn tellers(&self) -> u64 {
        TELLERS_PER_BRANCH * self.scale
    }

    pub(super) fn rows(&self) -> BTreeMap<String, u64> {
        let all = [(ACCOUNTS, self.accounts()), (BRANCHES, self.scale), (HISTORY, 0), (TELLERS, self.tellers())];
        all.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect()
    }

    pub(super) fn aid_is_bigint(&self) -> bool {
        self.scale >= BIGINT_FROM_SCALE
    }

    /// Columns and their types, in order.
    pub(super) fn columns(&self, table: &str) -> Vec<(&'static str, &'static str)> {
        let aid = ("aid", if self.aid_is_bigint() { "bigint" } else { "integer" });
        let bid = ("bid", "integer");
        match table {
            ACCOUNTS => vec![aid, bid, ("abalance", "integer"), ("filler", "character(84)")],
            TELLERS => vec![("tid", "integer"), bid, ("tbalance", "integer"), ("filler", "character(84)")],
            BRANCHES => vec![bid, ("bbalance", "integer"), ("filler", "character(88)")],
            _ => {
                let mtime = ("mtime", "timestamp without time zone");
                vec![("tid", "integer"), bid, aid, ("delta", "integer"), mtime, ("filler", "character(22)")]
            }
        }
    }

    /// `CREATE TABLE name` with the columns of `table`; the first column of all but the history is its key. `defaults`: those
    /// of an account while rows are copied.
    fn create(&self, name: &str, table: &str, defaults: bool) -> String {
        let column = |(place, (name, kind)): (usize, (&str, &str))| {
            let more = match name {
                "abalance" if defaults => " DEFAULT 0",
                "filler" if defaults => " DEFAULT ''",
                _ if place == 0 && table != HISTORY => " NOT NULL",
                _ => "",
            };
            format!("{name} {kind}{more}")
        };
        let columns: Vec<String> = self.columns(table).into_iter().enumerate().map(column).collect();
        let unlogged = if self.unlogged { "UNLOGGED " } else { "" };
        format!("CREATE {unlogged}TABLE {name} ({})", columns.join(", "))
    }

    fn storage(&self) -> String {
        format!(" WITH (fillfactor = {})", self.fillfactor)
    }

    /// Bounds of range partition `number`, from 0: its first aid and the first after it. The first partition also takes what
    /// is below, the last what is above.
    fn range(&self, number: u64) -> (u64, u64) {
        let length = self.accounts().div_ceil(self.partitions);
        (number * length + 1, (number + 1) * length + 1)
    }

    fn bounds(&self, number: u64) -> String {
        let partitions = self.partitions;
        match self.method {
            PartitionMethod::Hash => format!("FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"),
            PartitionMethod::Range => {
                let (first, end) = self.range(number);
                let from = if number == 0 { "MINVALUE".to_owned() } else { first.to_string() };
                let to = if number + 1 == partitions { "MAXVALUE".to_owned() } else { end.to_string() };
                format!("FOR VALUES FROM ({from}) TO ({to})")
            }
        }
    }

    /// Whether rows of accounts say their branch. Where all go through one partitioned table, no piece of rows can.
    fn sends_branch(&self) -> bool {
        self.partitions > 0 && !self.is_by_ranges()
    }

    fn is_by_ranges(&self) -> bool {
        self.partitions > 0 && self.method == PartitionMethod::Range
    }

    /// How they are made. The tables with rows are those of [`Tables::write_rows`]: branches, tellers, then the accounts or
    /// their range partitions.
    pub(super) fn making(&self) -> Making {
        let branches = self.create(BRANCHES, BRANCHES, false) + &self.storage();
        let mut making = Making { before: vec![self.create(HISTORY, HISTORY, false), branches], ..Making::default() };
        let small = |name: &str, create: String, rows: u64, filling: Filling| {
            let (name, estimated_bytes) = (name.to_owned(), PAGE_BYTES * (1 + rows / 185));
            let (columns, pieces, settle) = Default::default();
            Table { name, create, columns, pieces, settle, places: rows, estimated_bytes, filling }
        };
        making.tables.push(small(BRANCHES, String::new(), self.scale, Filling::ByRanges));
        let tellers = self.create(TELLERS, TELLERS, false) + &self.storage();
        making.tables.push(small(TELLERS, tellers, self.tellers(), Filling::WithCreation));
        self.make_accounts(&mut making);
        making.vacuumed = [ACCOUNTS, TELLERS, BRANCHES, HISTORY].map(str::to_owned).to_vec();
        let key = |(table, column)| Job::new(table, format!("ALTER TABLE {table} ADD PRIMARY KEY ({column})"));
        making.keys = [(ACCOUNTS, "aid"), (TELLERS, "tid"), (BRANCHES, "bid")].map(key).to_vec();
        making
    }

    fn make_accounts(&self, making: &mut Making) {
        let table = |name: String, create: String, first: u64, rows: u64| {
            let estimated_bytes = PAGE_BYTES * self.account_pages(rows);
            let columns = if self.sends_branch() { "(aid, bid)" } else { "(aid)" }.to_owned();
            let pieces = if self.sends_branch() { Vec::new() } else { pieces(&name, first, rows) };
            let settle = ["bid", "abalance", "filler"].map(|column| format!("ALTER {column} DROP DEFAULT")).join(", ");
            let settle = format!("ALTER TABLE {name} {settle}");
            let filling = if self.sends_branch() { Filling::ByRanges } else { Filling::WithCreation };
            Table { name, create, columns, pieces, settle, places: rows, estimated_bytes, filling }
        };
        let (rows, storage) = (self.accounts(), self.storage());
        if self.partitions == 0 {
            let create = self.create(ACCOUNTS, ACCOUNTS, true) + &storage;
            making.tables.push(table(ACCOUNTS.to_owned(), create, 1, rows));
            return;
        }
        let (by_ranges, method) = if self.is_by_ranges() { (true, "range") } else { (false, "hash") };
        making.before.push(self.create(ACCOUNTS, ACCOUNTS, !by_ranges) + &format!(" PARTITION BY {method} (aid)"));
        let unlogged = if self.unlogged { "UNLOGGED " } else { "" };
        for number in 0..self.partitions {
            let (name, bounds) = (format!("{ACCOUNTS}_{}", number + 1), self.bounds(number));
            if !by_ranges {
                let create = format!("CREATE {unlogged}TABLE {name} PARTITION OF {ACCOUNTS} {bounds}{storage}");
                making.before.push(create);
                continue;
            }
            let (first, end) = self.range(number);
            let rows = end.min(self.accounts() + 1).saturating_sub(first);
            making.joined.push(format!("ALTER TABLE {ACCOUNTS} ATTACH PARTITION {name} {bounds}"));
            let create = self.create(&name, ACCOUNTS, true) + &storage;
            making.tables.push(table(name, create, first, rows));
        }
        if !by_ranges {
            making.tables.push(table(ACCOUNTS.to_owned(), String::new(), 1, rows));
        }
    }

    /// Appends rows `from..to` of table `number` of [`Tables::making`], in the form of COPY BINARY.
    pub(super) fn write_rows(&self, number: usize, from: u64, to: u64, out: &mut BytesMut) {
        match number {
            0 => (from..to).for_each(|place| write_branch(place, out)),
            1 => (from..to).for_each(|place| write_teller(place, out)),
            _ => {
                let before = if self.is_by_ranges() { self.range(number as u64 - 2).0 - 1 } else { 0 };
                let write = match (self.aid_is_bigint(), self.sends_branch()) {
                    (false, false) => write_account::<4, false>,
                    (false, true) => write_account::<4, true>,
                    (true, false) => write_account::<8, false>,
                    (true, true) => write_account::<8, true>,
                };
                (before + from..before + to).for_each(|place| write(place, out));
            }
        }
    }

    fn account_pages(&self, rows: u64) -> u64 {
        let values = if self.aid_is_bigint() { 8 } else { 4 } + 4 + 4 + 85;
        let heap = heap_pages(rows, values, self.fillfactor);
        heap + map_pages(heap) + key_pages(rows)
    }

    pub(super) fn estimated_bytes(&self) -> u64 {
        let small = |rows: u64, values: u64| {
            let heap = heap_pages(rows, values, self.fillfactor);
            heap + map_pages(heap) + key_pages(rows)
        };
        let parts = self.partitions.max(1);
        let accounts = parts * self.account_pages(self.accounts().div_ceil(parts));
        PAGE_BYTES * (accounts + small(self.tellers(), 12) + small(self.scale, 8))
    }
}

fn write_branch(place: u64, out: &mut BytesMut) {
    put_row(out, 3, |row| {
        row.integer(place as i32 + 1);
        row.integer(0);
        row.null();
    });
}

fn write_teller(place: u64, out: &mut BytesMut) {
    put_row(out, 4, |row| {
        row.integer(place as i32 + 1);
        row.integer((place / TELLERS_PER_BRANCH) as i32 + 1);
        row.integer(0);
        row.null();
    });
}

fn branch(place: u64) -> u64 {
    place / ACCOUNTS_PER_BRANCH + 1
}

/// The accounts of each branch in table `name`, which holds `rows` of them from the aid `first` on.
fn pieces(name: &str, first: u64, rows: u64) -> Vec<Piece> {
    let (mut place, end) = (first - 1, first - 1 + rows);
    let mut pieces = Vec::new();
    while place < end {
        let branch = branch(place);
        let places = (branch * ACCOUNTS_PER_BRANCH).min(end) - place;
        pieces.push(Piece { set: format!("ALTER TABLE {name} ALTER bid SET DEFAULT {branch}"), places });
        place += places;
    }
    pieces
}

/// Aid, of `AID` bytes, and if `BID` says so bid of an account.
#[inline]
fn write_account<const AID: usize, const BID: bool>(place: u64, out: &mut BytesMut) {
    let mut row = [0; 22];
    row[1] = 1 + u8::from(BID);
    row[5] = AID as u8;
    row[6..6 + AID].copy_from_slice(&(place + 1).to_be_bytes()[8 - AID..]);
    row[9 + AID] = 4;
    row[10 + AID..14 + AID].copy_from_slice(&(branch(place) as u32).to_be_bytes());
    out.put_slice(&row[..if BID { 14 + AID } else { 6 + AID }]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_target::postgres::wire::row_values;

    fn tables(scale: u64, partitions: u64, method: PartitionMethod) -> Tables {
        Tables { scale, partitions, method, unlogged: false, fillfactor: 100 }
    }

    /// The only row of `number` at `place`.
    fn row(tables: &Tables, number: usize, place: u64) -> Vec<Option<i64>> {
        let mut out = BytesMut::new();
        tables.write_rows(number, place, place + 1, &mut out);
        let integer = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | i64::from(byte));
        row_values(&out).unwrap().into_iter().map(|value| value.map(integer)).collect()
    }

    #[test]
    fn rows_are_those_of_pgbench() {
        let two = tables(2, 0, PartitionMethod::Range);
        assert_eq!(row(&two, 0, 1), [Some(2), Some(0), None]);
        assert_eq!(row(&two, 1, 9), [Some(10), Some(1), Some(0), None]);
        assert_eq!(row(&two, 1, 10), [Some(11), Some(2), Some(0), None]);
        assert_eq!(row(&two, 2, 100_000), [Some(100_001)]);
        assert_eq!(row(&tables(2, 2, PartitionMethod::Hash), 2, 99_999), [Some(100_000), Some(1)]);
        assert_eq!(row(&tables(2, 2, PartitionMethod::Hash), 2, 100_000), [Some(100_001), Some(2)]);
        let many = tables(30_000, 7, PartitionMethod::Hash);
        assert_eq!(row(&many, 2, 2_999_999_999), [Some(3_000_000_000), Some(30_000)]);
        assert_eq!(row(&tables(30_000, 0, PartitionMethod::Range), 2, 2_999_999_999), [Some(3_000_000_000)]);
    }

    #[test]
    fn every_branch_is_a_piece() {
        let piece = |piece: &Piece| (piece.set.rsplit(' ').next().unwrap().parse().unwrap(), piece.places);
        let cut = |first, rows| pieces("a", first, rows).iter().map(piece).collect::<Vec<(u64, u64)>>();
        assert_eq!(cut(1, 200_000), [(1, 100_000), (2, 100_000)]);
        assert_eq!(cut(66_669, 66_666), [(1, 33_332), (2, 33_334)]);
        assert_eq!(cut(133_335, 66_666), [(2, 66_666)]);
        assert_eq!(cut(5, 0), []);
    }

    #[test]
    fn range_partitions_hold_every_account_once() {
        for partitions in [1, 3, 7, 9_999] {
            let tables = tables(1, partitions, PartitionMethod::Range);
            let making = tables.making();
            let parts = &making.tables[2..];
            assert_eq!(parts.iter().map(|table| table.places).sum::<u64>(), 100_000);
            assert_eq!((parts.len(), making.joined.len()), (partitions as usize, partitions as usize));
            assert_eq!(row(&tables, 2, 0)[0], Some(1));
        }
        let three = tables(1, 3, PartitionMethod::Range);
        assert_eq!(row(&three, 4, 0)[0], Some(66_669));
        assert!(three.making().joined[1].ends_with("FOR VALUES FROM (33335) TO (66669)"));
        assert!(three.making().joined[2].ends_with("FOR VALUES FROM (66669) TO (MAXVALUE)"));
    }
}
