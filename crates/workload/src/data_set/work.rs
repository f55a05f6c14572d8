//! The work that fills tables and completes them, as tasks that several connections share out.
//!
//! The facts that constrain it: indexes are made of rows that vacuum has settled, and vacuum settles no row as long as a
//! transaction is open that began before the row was there. So vacuum waits for the rows of all tables, but the indexes of a table
//! only for its own vacuum: that of the largest table would otherwise leave all connections but one idle.

use super::{DataSet, Event, Listener, Making};
use plimsoll_target::postgres::bulk::{self, Progress, Rows};
use plimsoll_target::postgres::{Address, Client, Error, quoted};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

/// What is done in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What<'a> {
    /// One connection's part of the rows of the table of this number.
    Fill(usize),
    /// The statements for when all rows are in.
    Join,
    /// The table is vacuumed and analysed.
    Vacuum,
    /// The statement is run.
    Index(&'a str),
}

impl What<'_> {
    /// Its place in a chain.
    fn stage(self) -> u8 {
        match self {
            Self::Fill(_) => 0,
            Self::Join => 1,
            Self::Vacuum => 2,
            Self::Index(_) => 3,
        }
    }

    /// The phase that it belongs to.
    fn phase(self) -> &'static str {
        match self {
            Self::Fill(_) | Self::Join => "rows",
            Self::Vacuum => "vacuum",
            Self::Index(_) => "indexes",
        }
    }
}

/// A task: what is done, and to which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task<'a> {
    table: &'a str,
    what: What<'a>,
}

impl Task<'_> {
    /// Whether it begins only when `other` has ended.
    fn waits_for(self, other: Task<'_>) -> bool {
        match (self.what, other.what) {
            (What::Index(_), What::Vacuum) => self.table == other.table,
            _ => other.what.stage() < self.what.stage(),
        }
    }
}

/// All tasks, in the order in which they are begun where nothing has to be waited for.
fn tasks(making: &Making, parallel: usize) -> Vec<Task<'_>> {
    let fills = bulk::shares(&making.tables, parallel).into_iter();
    let fills = fills.map(|number| Task { table: &making.tables[number].name, what: What::Fill(number) });
    let join = (!joined(making).is_empty()).then_some(Task { table: "", what: What::Join });
    let vacuums = making.vacuumed.iter().map(|table| Task { table, what: What::Vacuum });
    let indexes = making.keys.iter().map(|job| Task { table: &job.table, what: What::Index(&job.sql) });
    fills.chain(join).chain(vacuums).chain(indexes).collect()
}

fn joined(making: &Making) -> Vec<&String> {
    bulk::settling(&making.tables).chain(&making.joined).collect()
}

/// Fills, vacuums and indexes the tables of `data`, made as `making` says, over `parallel` connections.
///
/// # Errors
/// The first failure of any connection.
pub(super) fn perform(
    data: &dyn DataSet,
    making: &Making,
    (address, parallel, minimal): (&Address, usize, bool),
    listener: &Listener<'_>,
) -> Result<(), Error> {
    let tasks = tasks(making, parallel);
    let taken: Vec<AtomicU64> = making.tables.iter().map(|_| AtomicU64::new(0)).collect();
    let begun = Mutex::new(BTreeSet::new());
    let begin = |phase: &'static str| {
        let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.insert(phase) {
            listener(Event::Phase(phase));
        }
    };
    let each = |client: &mut Client, number: usize| {
        let Task { table, what } = tasks[number];
        let phase = what.phase();
        begin(phase);
        let heard = |progress: Progress| listener(Event::Table { phase, table, progress });
        match what {
            What::Fill(number) => {
                let rows = Rows { number, table: &making.tables[number], source: data, next: &taken[number] };
                bulk::fill(client, minimal, rows, &heard)
            }
            What::Join => joined(making).into_iter().try_for_each(|sql| client.run(sql)),
            What::Vacuum => heard_around(&heard, || client.run(&format!("VACUUM (FREEZE, ANALYZE) {}", quoted(table)))),
            What::Index(sql) => heard_around(&heard, || client.run(sql)),
        }
    };
    let waits_for = |task: usize, other: usize| tasks[task].waits_for(tasks[other]);
    bulk::share_out(address, parallel, tasks.len(), &waits_for, each)
}

/// Tells when `work` begins and, if it went well, when it has ended.
pub(super) fn heard_around(heard: &dyn Fn(Progress), work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    heard(Progress::Began);
    work()?;
    heard(Progress::Ended);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_set::Job;
    use plimsoll_target::postgres::bulk::{Filling, Table};

    /// A large table that is filled by ranges and a small one, each with a key.
    fn making(joined: &[&str]) -> Making {
        let table = |name: &str, places: u64, filling: Filling| Table {
            places,
            estimated_bytes: places,
            ..Table::whole(name, String::new(), filling)
        };
        Making {
            tables: vec![table("small", 10, Filling::WithCreation), table("large", 60_000, Filling::ByRanges)],
            joined: joined.iter().map(|&sql| sql.to_owned()).collect(),
            vacuumed: ["large", "small"].map(str::to_owned).to_vec(),
            keys: ["large", "small"].map(|name| Job::new(name, format!("key of {name}"))).to_vec(),
            ..Making::default()
        }
    }

    /// Each task in words, with the places of those that it waits for.
    fn order(making: &Making) -> Vec<(String, Vec<usize>)> {
        let tasks = tasks(making, 2);
        let waits = |task: &Task<'_>| (0..tasks.len()).filter(|&other| task.waits_for(tasks[other])).collect();
        let words = |task: &Task<'_>| format!("{} {}", task.what.phase(), task.table).trim().to_owned();
        tasks.iter().map(|task| (words(task), waits(task))).collect()
    }

    fn expected(tasks: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
        tasks.iter().map(|&(words, waits)| (words.to_owned(), waits.to_vec())).collect()
    }

    #[test]
    fn vacuum_waits_for_all_rows_and_indexes_for_their_tables_vacuum() {
        let tasks = [
            ("rows large", &[][..]),
            ("rows large", &[]),
            ("rows small", &[]),
            ("vacuum large", &[0, 1, 2]),
            ("vacuum small", &[0, 1, 2]),
            ("indexes large", &[0, 1, 2, 3]),
            ("indexes small", &[0, 1, 2, 4]),
        ];
        assert_eq!(order(&making(&[])), expected(&tasks));
    }

    #[test]
    fn what_needs_all_rows_comes_between_them_and_the_rest() {
        let tasks = [
            ("rows large", &[][..]),
            ("rows large", &[]),
            ("rows small", &[]),
            ("rows", &[0, 1, 2]),
            ("vacuum large", &[0, 1, 2, 3]),
            ("vacuum small", &[0, 1, 2, 3]),
            ("indexes large", &[0, 1, 2, 3, 4]),
            ("indexes small", &[0, 1, 2, 3, 5]),
        ];
        assert_eq!(order(&making(&["attach"])), expected(&tasks));
    }
}
