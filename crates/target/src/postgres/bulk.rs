//! Loads tables over several connections at once.
//!
//! The fact that constrains it: rows go into a table without WAL (wal_level = minimal) and already frozen only inside the
//! transaction that created the table. A table is therefore one connection's work from CREATE to its primary key, and the
//! connections share out whole tables, the largest first.

use super::{Address, Client, Error};
use bytes::BytesMut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A table to be made.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Statements that create it, before its rows.
    pub create: String,
    /// Statements after its rows, in the same transaction: its primary key.
    pub keys: String,
    /// How many rows.
    pub rows: u64,
    /// Its size when loaded; only the order of work depends on it.
    pub estimated_bytes: u64,
}

/// Gives the rows of a table.
pub trait RowSource: Sync {
    /// Appends rows `from..to` of table number `table` (counted from 0) in the form of COPY BINARY.
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut);
}

/// Rows that are written between two looks at the progress.
const ROWS_A_STEP: u64 = 256;
/// Rows between two progress reports.
const ROWS_A_REPORT: u64 = 200 * ROWS_A_STEP;

/// Loads `tables`; `progress` hears of each batch (table, rows in it), from any of the connections.
///
/// # Errors
/// The first failure of any connection; the others finish the table they are at.
pub fn load(
    address: &Address,
    parallel: usize,
    tables: &[Table],
    source: &dyn RowSource,
    progress: &(dyn Fn(usize, u64) + Sync),
) -> Result<(), Error> {
    let mut order: Vec<usize> = (0..tables.len()).collect();
    order.sort_by_key(|&table| std::cmp::Reverse(tables[table].estimated_bytes));
    share_out(address, parallel, &order, |client, &table| load_table(client, table, &tables[table], source, progress))
}

/// Runs each of `statements` on one of the connections.
///
/// # Errors
/// The first failure of any connection.
pub fn run_all(address: &Address, parallel: usize, statements: &[String]) -> Result<(), Error> {
    share_out(address, parallel, statements, |client, sql| client.run(sql))
}

fn share_out<T: Sync>(
    address: &Address,
    parallel: usize,
    work: &[T],
    each: impl Fn(&mut Client, &T) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let worker = || -> Result<(), Error> {
        let mut client = Client::open(address)?;
        while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            each(&mut client, item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, work.len().max(1)) {
            scope.spawn(|| {
                if let Err(error) = worker() {
                    next.store(work.len(), Ordering::Relaxed);
                    failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

fn load_table(
    client: &mut Client,
    number: usize,
    table: &Table,
    source: &dyn RowSource,
    progress: &(dyn Fn(usize, u64) + Sync),
) -> Result<(), Error> {
    client.run("BEGIN")?;
    client.run(&table.create)?;
    let mut copy =
        client.copy_in(&format!("COPY {} FROM STDIN (FORMAT binary, FREEZE)", super::quoted(&table.name)))?;
    let mut unreported = 0;
    for from in (0..table.rows).step_by(ROWS_A_STEP as usize) {
        let to = (from + ROWS_A_STEP).min(table.rows);
        copy.rows(|out| source.write_rows(number, from, to, out))?;
        unreported += to - from;
        if unreported >= ROWS_A_REPORT || to == table.rows {
            progress(number, std::mem::take(&mut unreported));
        }
    }
    let copied = copy.finish()?;
    if copied != table.rows {
        return Err(Error::Protocol(format!("{} took {copied} of {} rows", table.name, table.rows)));
    }
    client.run(&table.keys)?;
    client.run("COMMIT")
}
