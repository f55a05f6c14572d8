//! A workload's tables: made, stamped, recognised, checked and removed.

mod events;
mod populate;
mod stamp;
mod work;

pub use events::{Event, Listener};
pub use populate::{Loaded, drop_data, populate};
pub use stamp::Stamp;
pub(crate) use stamp::{stamp_of_schema, stamp_of_table};

use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::bulk::{RowSource, Table};
use plimsoll_target::postgres::{Client, Error};
use std::collections::BTreeMap;

/// A failed loading or check.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// The server.
    #[error(transparent)]
    Server(#[from] Error),
    /// The schema is there already, or is not ours, or holds other data.
    #[error("{0}")]
    Schema(String),
}

/// A statement that is one table's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The table's name.
    pub table: String,
    /// The statement.
    pub sql: String,
}

impl Job {
    /// `sql` as the work of `table`.
    pub fn new(table: &str, sql: String) -> Self {
        Self { table: table.to_owned(), sql }
    }
}

/// How the tables are made, in this order; the indexes of a table wait for no other table's vacuum.
#[derive(Clone, Debug, Default)]
pub struct Making {
    /// Statements before any rows, one after the other.
    pub before: Vec<String>,
    /// The tables with their rows, in the order of the row source.
    pub tables: Vec<Table>,
    /// Statements after all rows, one after the other.
    pub joined: Vec<String>,
    /// Names of the tables that are then vacuumed and analysed, over all connections.
    pub vacuumed: Vec<String>,
    /// Statements that add primary keys and other indexes, over all connections; what takes longest comes first.
    pub keys: Vec<Job>,
    /// Parallel workers for each of those; `None`: as many as the server is set to.
    pub workers: Option<usize>,
    /// Statements that then make primary keys of unique indexes, one after the other.
    pub promoted: Vec<String>,
    /// Statements that add foreign keys without checking them, one after the other.
    pub foreign_keys: Vec<String>,
    /// Statements that check the foreign keys, over all connections.
    pub validations: Vec<Job>,
}

impl Making {
    /// The definitions alone, for people.
    pub fn ddl(&self) -> Vec<String> {
        let tables = self.tables.iter().flat_map(|table| [&table.create, &table.settle]).filter(|sql| !sql.is_empty());
        let keys = self.keys.iter().map(|job| &job.sql).chain(&self.promoted);
        let foreign = self.foreign_keys.iter().chain(self.validations.iter().map(|job| &job.sql));
        self.before.iter().chain(tables).chain(&self.joined).chain(keys).chain(foreign).cloned().collect()
    }
}

/// The data of a workload.
pub trait DataSet: RowSource {
    /// The workload's name.
    fn name(&self) -> &'static str;

    /// Rows by table, as they are loaded.
    fn rows(&self) -> BTreeMap<String, u64>;

    /// Bytes of the tables with their indexes as they are loaded, by the server's page arithmetic.
    fn estimated_bytes(&self) -> u64;

    /// How the tables are made over `parallel` connections by a server whose wal_level is `minimal` or not.
    fn making(&self, parallel: usize, minimal: bool) -> Making;

    /// The table that bears the stamp, one of those made before any rows, for data that may stand beside other tables in a
    /// schema that was there. `None` for data that owns its schema: the schema bears the stamp, once loading has ended.
    fn stamped_table(&self) -> Option<&'static str>;

    /// What the stamp says, without the sizes found when loading had ended.
    fn stamp(&self) -> Stamp;

    /// Makes sure that `schema` holds this data.
    ///
    /// # Errors
    /// When the server cannot be asked, or a sentence that says what `schema` holds instead.
    fn recognise(&self, client: &mut Client, schema: &str) -> Result<(), DataSetError>;

    /// Compares the tables in `schema`, which is in the search path, with what `segments` did to them since they were loaded.
    ///
    /// # Errors
    /// When the server cannot be asked, or `schema` holds other data.
    fn check(&self, client: &mut Client, schema: &str, segments: &[Summary]) -> Result<Vec<Check>, DataSetError>;
}
