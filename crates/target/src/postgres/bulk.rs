//! Loads tables over several connections at once.
//!
//! The fact that constrains it: rows go into a table already frozen, and without WAL if wal_level is minimal, only inside the
//! transaction that created the table. A table that is filled so is one connection's work, and the connections share out whole
//! tables, the largest first. Other tables are filled by all connections, each of which takes the next few places in turn: so the
//! rows lie in the table almost in their order.

mod tasks;

pub use tasks::{WaitsFor, share_out};

use super::{Address, Client, Error};
use bytes::BytesMut;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a table gets its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// All of them in the transaction that creates it: frozen, and without WAL if wal_level is minimal.
    WithCreation,
    /// By all connections side by side, in a transaction of each, a short range of places at a time.
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
/// A connection for each so many places of a table that is filled by ranges.
const PLACES_A_CONNECTION: u64 = 50_000;

/// Who fills `tables` over `parallel` connections: for each connection's part the number of its table, the largest table first.
/// While that is filled by all, no other takes CPU time from it, so that its time is its own.
pub fn shares(tables: &[Table], parallel: usize) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..tables.len()).collect();
    by_size.sort_by_key(|&number| std::cmp::Reverse(tables[number].estimated_bytes));
    let of_table = |number: usize| {
        let several = tables[number].places.div_ceil(PLACES_A_CONNECTION).clamp(1, parallel.max(1) as u64);
        let connections = if tables[number].filling == Filling::ByRanges { several } else { 1 };
        (0..connections).map(move |_| number)
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

/// A table under way.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Its place in the list of all.
    pub number: usize,
    /// What it is.
    pub table: &'a Table,
    /// Where its rows come from.
    pub source: &'a dyn RowSource,
    /// The first place that nobody has taken yet; 0 at first, and shared by all who fill it by ranges.
    pub next: &'a AtomicU64,
}

/// Does one connection's part in filling a table, and creates that if it is filled with its creation; `listener` hears of it.
/// `minimal`: whether wal_level is minimal.
///
/// # Errors
/// When the server refuses or the connection breaks.
pub fn fill(client: &mut Client, minimal: bool, rows: Rows<'_>, listener: &Listener<'_>) -> Result<(), Error> {
    let table = rows.table;
    if table.filling == Filling::ByRanges && rows.next.load(Ordering::Relaxed) >= table.places {
        return Ok(());
    }
    listener(Progress::Began);
    match table.filling {
        Filling::WithCreation => {
            client.run("BEGIN")?;
            if minimal {
                client.run(&format!("SET LOCAL {EARLY_WRITEBACK}"))?;
            }
            client.run(&table.create)?;
            for (set, piece) in pieces(table) {
                client.run(set)?;
                rows.next.store(piece.start, Ordering::Relaxed);
                copy(client, rows, piece.end, listener)?;
            }
            client.run(&table.settle)?;
            client.run("COMMIT")?;
        }
        Filling::ByRanges => copy_with_others(client, rows, table.places, listener)?,
    }
    listener(Progress::Ended);
    Ok(())
}

/// The pieces of a whole table, each with the statement before it.
fn pieces(table: &Table) -> Vec<(&str, Range<u64>)> {
    if table.pieces.is_empty() {
        return vec![("", 0..table.places)];
    }
    let mut from = 0;
    let ranges = table.pieces.iter().map(|piece| {
        let range = from..from + piece.places;
        from = range.end;
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

/// A table that others fill, too: after a failure nobody takes what is left, which may be most of it.
fn copy_with_others(client: &mut Client, rows: Rows<'_>, end: u64, listener: &Listener<'_>) -> Result<(), Error> {
    copy(client, rows, end, listener).inspect_err(|_| rows.next.store(end, Ordering::Relaxed))
}

/// Copies rows until those up to `end` are taken.
fn copy(client: &mut Client, rows: Rows<'_>, end: u64, listener: &Listener<'_>) -> Result<(), Error> {
    let Rows { number, table, source, next } = rows;
    let freeze = if table.filling == Filling::WithCreation { ", FREEZE" } else { "" };
    let (name, columns) = (super::quoted(&table.name), &table.columns);
    let mut copy = client.copy_in(&format!("COPY {name} {columns} FROM STDIN (FORMAT binary{freeze})"))?;
    let taken = || {
        let from = next.fetch_add(PLACES_A_STEP, Ordering::Relaxed);
        (from < end).then(|| (from, (from + PLACES_A_STEP).min(end)))
    };
    let (mut given, mut told, mut bytes) = (0, 0, 0);
    while let Some((from, to)) = taken() {
        copy.rows(|out| {
            let before = out.len();
            source.write_rows(number, from, to, out);
            bytes += (out.len() - before) as u64;
        })?;
        given += source.rows_in(number, from, to);
        if given - told >= ROWS_A_REPORT {
            listener(Progress::Rows { rows: given - told, bytes: std::mem::take(&mut bytes) });
            told = given;
        }
    }
    if given > told {
        listener(Progress::Rows { rows: given - told, bytes });
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
    fn the_largest_table_comes_first_and_only_large_ones_have_several_shares() {
        let tables = [
            table(10, 1, Filling::WithCreation),
            table(1_000_001, 1 << 30, Filling::ByRanges),
            table(0, 0, Filling::WithCreation),
            table(5_000_000, 1 << 28, Filling::WithCreation),
            table(7, 0, Filling::ByRanges),
            table(50_001, 2, Filling::ByRanges),
        ];
        assert_eq!(shares(&tables, 3), [1, 1, 1, 3, 5, 5, 0, 2, 4]);
    }

    #[test]
    fn pieces_follow_each_other() {
        assert_eq!(pieces(&table(5, 1, Filling::WithCreation)), [("", 0..5)]);
        let cut = [("a", 2), ("b", 3)].map(|(set, places)| Piece { set: set.to_owned(), places }).to_vec();
        let cut = Table { pieces: cut, ..table(5, 1, Filling::WithCreation) };
        assert_eq!(pieces(&cut), [("a", 0..2), ("b", 2..5)]);
    }
}
