//! Loads tables over several connections at once.
//!
//! The fact that constrains it: rows go into a table already frozen, and without WAL if wal_level is minimal, only inside the
//! transaction that created the table. A table that is filled so is one connection's work, and the connections share out whole
//! tables, the largest first. Other tables are filled by all connections, a range of their places at a time.

mod tasks;

pub use tasks::{WaitsFor, share_out};

use super::{Address, Client, Error};
use bytes::BytesMut;
use std::sync::OnceLock;

/// How a table gets its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// All of them in the transaction that creates it: frozen, and without WAL if wal_level is minimal.
    WithCreation,
    /// Range by range, in transactions of their own, side by side.
    ByRanges,
}

/// A table to be made.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Statements that create it.
    pub create: String,
    /// The columns that the row source gives, as `(a, b)`; empty: all. The others have the defaults of `create` or of the
    /// piece.
    pub columns: String,
    /// What changes the defaults within a table that is filled with its creation; pieces of all rows, or none.
    pub pieces: Vec<Piece>,
    /// Statements that take those defaults away again, once the rows are in.
    pub settle: String,
    /// How many places its rows have, counted from 0: one for each, unless [`RowSource::rows_in`] says otherwise.
    pub places: u64,
    /// Its size when loaded; only the order of work depends on it.
    pub estimated_bytes: u64,
    /// How it gets its rows.
    pub filling: Filling,
}

impl Table {
    /// A table that is given every column and has one piece; without rows as yet.
    pub fn whole(name: &str, create: String, filling: Filling) -> Self {
        let (columns, pieces, settle) = Default::default();
        Self { name: name.to_owned(), create, columns, pieces, settle, places: 0, estimated_bytes: 0, filling }
    }
}

/// Places that follow each other and share a default.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The statement that sets it.
    pub set: String,
    /// How many places.
    pub places: u64,
}

/// Gives the rows of a table.
pub trait RowSource: Sync {
    /// Appends the rows of places `from..to` of table number `table` (counted from 0) in the form of COPY BINARY. `from` is a
    /// multiple of [`PLACES_A_STEP`] from the start of the table or piece, and no more than so many are asked for at once.
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut);

    /// How many rows have places `from..to`: as many, unless several have one.
    fn rows_in(&self, _table: usize, from: u64, to: u64) -> u64 {
        to - from
    }
}

/// How a piece of work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It begins.
    Began,
    /// Rows were handed over.
    Rows {
        /// So many since the last time.
        rows: u64,
        /// In so many bytes of COPY BINARY.
        bytes: u64,
    },
    /// It has ended, and well.
    Ended,
}

/// Hears how a piece of work goes on.
pub type Listener<'a> = dyn Fn(Progress) + 'a;

/// A table that was filled without WAL is on disk before its transaction ends. The backend starts writing while it copies, or
/// the end would wait for all of it. With WAL that would be work for nothing.
const EARLY_WRITEBACK: &str = "backend_flush_after = '2MB'";
/// Places whose rows are written between two looks at the progress.
pub const PLACES_A_STEP: u64 = 256;
/// Rows between two progress reports.
const ROWS_A_REPORT: u64 = 51_200;
/// A table that is filled by ranges is cut into so many for each connection, so that all end at about the same time.
const RANGES_A_CONNECTION: u64 = 8;
const PLACES_A_RANGE_MIN: u64 = 50_000;

/// Places `from..to` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The table's place in the list of all.
    pub table: usize,
    /// The first place.
    pub from: u64,
    /// The first place beyond.
    pub to: u64,
}

/// The ranges in which `tables` are filled over `parallel` connections, the largest table first: while it is filled by ranges, no
/// other takes CPU time from it, so that its time is its own.
pub fn shares(tables: &[Table], parallel: usize) -> Vec<Range> {
    let mut by_size: Vec<(usize, &Table)> = tables.iter().enumerate().collect();
    by_size.sort_by_key(|(_, table)| std::cmp::Reverse(table.estimated_bytes));
    let of_table = |(number, table): (usize, &Table)| {
        let places = match table.filling {
            Filling::WithCreation => table.places,
            Filling::ByRanges => {
                let even = table.places.div_ceil(RANGES_A_CONNECTION * parallel.max(1) as u64);
                even.max(PLACES_A_RANGE_MIN).next_multiple_of(PLACES_A_STEP)
            }
        };
        let (ranges, end) = (table.places.div_ceil(places.max(1)).max(1), table.places);
        (0..ranges).map(move |nth| Range { table: number, from: nth * places, to: ((nth + 1) * places).min(end) })
    };
    by_size.into_iter().flat_map(of_table).collect()
}

/// Creates those of `tables` that are filled by ranges, before any of their rows come.
///
/// # Errors
/// When the server refuses.
pub fn create(client: &mut Client, tables: &[Table]) -> Result<(), Error> {
    let by_ranges = tables.iter().filter(|table| table.filling == Filling::ByRanges && !table.create.is_empty());
    by_ranges.map(|table| &table.create).try_for_each(|create| client.run(create))
}

/// What [`Table::settle`] says of those of `tables` that are filled by ranges, for when all of their rows are in.
pub fn settling(tables: &[Table]) -> impl Iterator<Item = &String> {
    let by_ranges = tables.iter().filter(|table| table.filling == Filling::ByRanges && !table.settle.is_empty());
    by_ranges.map(|table| &table.settle)
}

/// Fills `range` of its table, and creates that if it is filled with its creation; `listener` hears of it. `minimal`: whether
/// wal_level is minimal.
///
/// # Errors
/// When the server refuses or the connection breaks.
pub fn fill(
    client: &mut Client,
    minimal: bool,
    table: &Table,
    range: Range,
    source: &dyn RowSource,
    listener: &Listener<'_>,
) -> Result<(), Error> {
    listener(Progress::Began);
    match table.filling {
        Filling::WithCreation => {
            client.run("BEGIN")?;
            if minimal {
                client.run(&format!("SET LOCAL {EARLY_WRITEBACK}"))?;
            }
            client.run(&table.create)?;
            for (set, piece) in pieces(table, range) {
                client.run(set)?;
                copy(client, table, piece, source, listener)?;
            }
            client.run(&table.settle)?;
            client.run("COMMIT")?;
        }
        Filling::ByRanges => copy(client, table, range, source, listener)?,
    }
    listener(Progress::Ended);
    Ok(())
}

/// The pieces of a whole table, each with the statement before it.
fn pieces(table: &Table, whole: Range) -> Vec<(&str, Range)> {
    if table.pieces.is_empty() {
        return vec![("", whole)];
    }
    let mut from = whole.from;
    let ranges = table.pieces.iter().map(|piece| {
        let range = Range { from, to: from + piece.places, ..whole };
        from = range.to;
        (piece.set.as_str(), range)
    });
    ranges.collect()
}

/// Asks each of `statements` on one of the connections, which begin with `settings`, for a row of integers; in the order of the
/// statements.
///
/// # Errors
/// The first failure of any connection.
pub fn ask_all(
    address: &Address,
    parallel: usize,
    settings: &str,
    statements: &[String],
) -> Result<Vec<Vec<i64>>, Error> {
    let answers: Vec<OnceLock<Vec<i64>>> = statements.iter().map(|_| OnceLock::new()).collect();
    share_out(address, parallel, statements.len(), &|_, _| false, |client, number| {
        client.run(settings)?;
        let integers = client.integers(&statements[number])?;
        answers[number].get_or_init(|| integers);
        Ok(())
    })?;
    Ok(answers.into_iter().filter_map(OnceLock::into_inner).collect())
}

fn copy(
    client: &mut Client,
    table: &Table,
    range: Range,
    source: &dyn RowSource,
    listener: &Listener<'_>,
) -> Result<(), Error> {
    let freeze = if table.filling == Filling::WithCreation { ", FREEZE" } else { "" };
    let mut copy = client.copy_in(&format!(
        "COPY {} {} FROM STDIN (FORMAT binary{freeze})",
        super::quoted(&table.name),
        table.columns
    ))?;
    let (mut given, mut told, mut bytes) = (0, 0, 0);
    for from in (range.from..range.to).step_by(PLACES_A_STEP as usize) {
        let to = (from + PLACES_A_STEP).min(range.to);
        copy.rows(|out| {
            let before = out.len();
            source.write_rows(range.table, from, to, out);
            bytes += (out.len() - before) as u64;
        })?;
        given += source.rows_in(range.table, from, to);
        if given - told >= ROWS_A_REPORT || to == range.to {
            listener(Progress::Rows { rows: given - told, bytes: std::mem::take(&mut bytes) });
            told = given;
        }
    }
    let copied = copy.finish()?;
    if copied != given {
        return Err(Error::Protocol(format!("{} took {copied} of {given} rows", table.name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(places: u64, estimated_bytes: u64, filling: Filling) -> Table {
        Table { places, estimated_bytes, ..Table::whole("", String::new(), filling) }
    }

    #[test]
    fn every_place_is_in_one_share_and_the_largest_table_comes_first() {
        let tables = [
            table(10, 1, Filling::WithCreation),
            table(1_000_001, 1 << 30, Filling::ByRanges),
            table(0, 0, Filling::WithCreation),
            table(5_000_000, 1 << 28, Filling::WithCreation),
            table(7, 0, Filling::ByRanges),
        ];
        let shares = shares(&tables, 2);
        let mut order: Vec<usize> = shares.iter().map(|share| share.table).collect();
        order.dedup();
        assert_eq!(order, [1, 3, 0, 2, 4]);
        for (number, table) in tables.iter().enumerate() {
            let mut ranges: Vec<_> = shares.iter().filter(|share| share.table == number).collect();
            ranges.sort_by_key(|range| range.from);
            assert_eq!((ranges[0].from, ranges[ranges.len() - 1].to), (0, table.places), "table {number}");
            assert!(ranges.windows(2).all(|pair| pair[0].to == pair[1].from), "table {number}");
            assert!(ranges.iter().all(|range| range.from % PLACES_A_STEP == 0), "table {number}");
            assert_eq!(ranges.len(), if number == 1 { 16 } else { 1 });
        }
    }

    #[test]
    fn pieces_follow_each_other() {
        let whole = Range { table: 3, from: 0, to: 5 };
        assert_eq!(pieces(&table(5, 1, Filling::WithCreation), whole), [("", whole)]);
        let cut = [("a", 2), ("b", 3)].map(|(set, places)| Piece { set: set.to_owned(), places }).to_vec();
        let cut = Table { pieces: cut, ..table(5, 1, Filling::WithCreation) };
        let ranges = [("a", Range { to: 2, ..whole }), ("b", Range { from: 2, ..whole })];
        assert_eq!(pieces(&cut, whole), ranges);
    }
}
