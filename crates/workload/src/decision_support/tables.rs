//! How the eight tables and one of our own are made, with every index, and how large they become.
//!
//! - Columns and their types are those of the specification: money and quantities are exact decimals, so that the equality of
//!   prices can be asked for to the cent; texts of fixed length are blank-padded, as in DBT-3's tables.
//! - Order keys need 64 bits from a scale factor of 358 on, and have them at every one.
//! - Beside the primary keys there are the fifteen indexes that DBT-3 makes, under its names, also those that a key covers.
//! - There are no foreign keys: DBT-3 has none.
//! - `refresh_sets` says how many refresh sets each refresh function has taken.

use super::scale::ScaleFactor;
use super::table_id::TableId;
use crate::data_set::{Job, Making};
use crate::pages::{PAGE_BYTES, duplicates_pages, heap_pages, index_pages, map_pages};
use plimsoll_target::postgres::bulk::{Filling, Table};

/// An index: its name, its columns, bytes of an entry's key, and rows that share one on average.
type Index = (&'static str, &'static str, u64, u64);

impl TableId {
    /// The other indexes at `scale`: those of DBT-3's scripts for PostgreSQL of 2003 to 2014.
    fn indexes(self, scale: ScaleFactor) -> Vec<Index> {
        /// Days on which orders are made, and a few more on which they are shipped and received.
        const DAYS: u64 = 2_406;
        const NATIONS: u64 = 25;
        let each_of = |table: TableId| self.rows_at(scale) / table.rows_at(scale);
        let a_day = self.rows_at(scale) / DAYS;
        match self {
            Self::Region | Self::Part | Self::RefreshSets => Vec::new(),
            Self::Nation => vec![("i_n_regionkey", "n_regionkey", 4, 5)],
            Self::Supplier => vec![("i_s_nationkey", "s_nationkey", 4, self.rows_at(scale) / NATIONS)],
            Self::Partsupp => vec![
                ("i_ps_partkey", "ps_partkey", 4, each_of(Self::Part)),
                ("i_ps_suppkey", "ps_suppkey", 4, each_of(Self::Supplier)),
            ],
            Self::Customer => vec![("i_c_nationkey", "c_nationkey", 4, self.rows_at(scale) / NATIONS)],
            // One third of the customers has no orders.
            Self::Orders => vec![
                ("i_o_orderdate", "o_orderdate", 4, a_day),
                ("i_o_custkey", "o_custkey", 4, each_of(Self::Customer) * 3 / 2),
            ],
            Self::Lineitem => vec![
                ("i_l_shipdate", "l_shipdate", 4, a_day),
                ("i_l_suppkey_partkey", "l_partkey, l_suppkey", 8, each_of(Self::Partsupp)),
                ("i_l_partkey", "l_partkey", 4, each_of(Self::Part)),
                ("i_l_suppkey", "l_suppkey", 4, each_of(Self::Supplier)),
                ("i_l_receiptdate", "l_receiptdate", 4, a_day),
                ("i_l_orderkey", "l_orderkey", 8, each_of(Self::Orders)),
                ("i_l_orderkey_quantity", "l_orderkey, l_quantity", 13, 1),
                ("i_l_commitdate", "l_commitdate", 4, a_day),
            ],
        }
    }

    fn rows_at(self, scale: ScaleFactor) -> u64 {
        scale.rows(self)
    }

    /// Bytes of a row's values as they are stored, on average: texts with a header of one byte (of four where they are longer
    /// than 126), numbers with three bytes and two for each four digits before and after the point, integers and dates aligned.
    const fn width(self) -> u64 {
        match self {
            Self::Region => 4 + 26 + 73,
            Self::Nation => 4 + 26 + 2 + 4 + 73,
            Self::Supplier => 4 + 26 + 26 + 4 + 16 + 7 + 64,
            Self::Part => 4 + 34 + 26 + 11 + 22 + 1 + 4 + 11 + 7 + 15,
            Self::Partsupp => 4 + 4 + 4 + 7 + 127,
            Self::Customer => 4 + 19 + 26 + 3 + 4 + 16 + 7 + 11 + 74,
            Self::Orders => 8 + 4 + 2 + 9 + 1 + 4 + 16 + 16 + 4 + 50,
            Self::Lineitem => 8 + 4 + 4 + 4 + 5 + 9 + 5 + 5 + 2 + 2 + 4 + 4 + 4 + 26 + 8 + 3 + 28,
            Self::RefreshSets => 4 + 4,
        }
    }

    fn heap_bytes(self, scale: ScaleFactor) -> u64 {
        PAGE_BYTES * heap_pages(scale.rows(self), self.width(), 100)
    }

    /// Bytes of the table with its maps and indexes, when loaded.
    pub(super) fn bytes(self, scale: ScaleFactor) -> u64 {
        let rows = scale.rows(self);
        let heap = heap_pages(rows, self.width(), 100);
        let key = index_pages(rows, self.key().1);
        let others = self.indexes(scale).into_iter().map(|(_, _, width, shared)| duplicates_pages(rows, width, shared));
        PAGE_BYTES * (heap + map_pages(heap) + key + others.sum::<u64>())
    }
}

/// From so many connections on, lineitem is filled by all of them, although its rows are then logged and frozen only afterwards:
/// filled with its creation, a table is one connection's work, and more than half of all bytes are lines.
const LINES_BY_RANGES_FROM: usize = 2;
/// From so many on, partsupp and orders too. Over fewer they are filled side by side, each with its creation.
const LARGE_BY_RANGES_FROM: usize = 4;

fn table(id: TableId, scale: ScaleFactor, parallel: usize) -> Table {
    let columns: Vec<String> = id.columns().iter().map(|(name, kind)| format!("{name} {kind} NOT NULL")).collect();
    let by_ranges = match id {
        TableId::Lineitem => parallel >= LINES_BY_RANGES_FROM,
        TableId::Partsupp | TableId::Orders => parallel >= LARGE_BY_RANGES_FROM,
        _ => false,
    };
    let name = id.name();
    let create = format!("CREATE TABLE {name} ({})", columns.join(", "));
    let filling = if by_ranges { Filling::ByRanges } else { Filling::WithCreation };
    Table { places: scale.places(id), estimated_bytes: id.heap_bytes(scale), ..Table::whole(name, create, filling) }
}

/// How the tables are made over `parallel` connections on a machine of `cpus`. A key is first made as a unique index: that lets
/// other indexes of its table be made beside it, which a primary key does not. When the connections keep all CPUs busy with an
/// index each, workers would only divide and merge what one sorts faster.
pub(super) fn making(scale: ScaleFactor, parallel: usize, cpus: usize) -> Making {
    let mut by_size = TableId::ALL;
    by_size.sort_by_key(|&id| std::cmp::Reverse(scale.rows(id)));
    let unique = |id: TableId| {
        let (name, (columns, _)) = (id.name(), id.key());
        Job::new(name, format!("CREATE UNIQUE INDEX {name}_pkey ON {name} ({columns})"))
    };
    let other = |id: TableId, (index, columns, ..): Index| {
        let name = id.name();
        Job::new(name, format!("CREATE INDEX {index} ON {name} ({columns})"))
    };
    let of_table = |id: TableId| {
        let others = id.indexes(scale).into_iter().map(move |index| other(id, index));
        std::iter::once(unique(id)).chain(others)
    };
    let promote = |id: TableId| format!("ALTER TABLE {0} ADD PRIMARY KEY USING INDEX {0}_pkey", id.name());
    Making {
        tables: TableId::ALL.map(|id| table(id, scale, parallel)).to_vec(),
        vacuumed: by_size.map(|id| id.name().to_owned()).to_vec(),
        keys: by_size.into_iter().flat_map(of_table).collect(),
        workers: (parallel >= cpus).then_some(0),
        promoted: by_size.map(promote).to_vec(),
        ..Making::default()
    }
}
