//! PostgreSQL's own counters, read from another database, so that reading them does not count as load on the one under test.
//!
//! The views change between versions: each column is taken from the first view that has it, and is absent if none has.

use crate::{Probe, ProbeError};
use plimsoll_record::ABSENT_SAMPLE;
use plimsoll_target::postgres::{Address, Client, Error, literal};
use std::collections::BTreeSet;
use std::time::Duration;

const DATABASE: &str = "pg_stat_database";
const WRITER: &str = "pg_stat_bgwriter";
/// From version 17.
const CHECKPOINTER: &str = "pg_stat_checkpointer";
/// From version 14.
const WAL: &str = "pg_stat_wal";

/// Our column, the view, the view's column; where one of ours stands twice, the first that exists is taken.
const COLUMNS: [(&str, &str, &str); 26] = [
    ("xact_commit", DATABASE, "xact_commit"),
    ("xact_rollback", DATABASE, "xact_rollback"),
    ("blks_read", DATABASE, "blks_read"),
    ("blks_hit", DATABASE, "blks_hit"),
    ("tup_returned", DATABASE, "tup_returned"),
    ("tup_fetched", DATABASE, "tup_fetched"),
    ("tup_inserted", DATABASE, "tup_inserted"),
    ("tup_updated", DATABASE, "tup_updated"),
    ("tup_deleted", DATABASE, "tup_deleted"),
    ("temp_files", DATABASE, "temp_files"),
    ("temp_bytes", DATABASE, "temp_bytes"),
    ("deadlocks", DATABASE, "deadlocks"),
    ("checkpoints_timed", CHECKPOINTER, "num_timed"),
    ("checkpoints_timed", WRITER, "checkpoints_timed"),
    ("checkpoints_req", CHECKPOINTER, "num_requested"),
    ("checkpoints_req", WRITER, "checkpoints_req"),
    ("buffers_checkpoint", CHECKPOINTER, "buffers_written"),
    ("buffers_checkpoint", WRITER, "buffers_checkpoint"),
    ("buffers_clean", WRITER, "buffers_clean"),
    ("buffers_backend", WRITER, "buffers_backend"),
    ("buffers_alloc", WRITER, "buffers_alloc"),
    ("wal_records", WAL, "wal_records"),
    ("wal_fpi", WAL, "wal_fpi"),
    ("wal_bytes", WAL, "wal_bytes"),
    ("wal_write", WAL, "wal_write"),
    ("wal_sync", WAL, "wal_sync"),
];

/// A server that does not answer for this long is given up, so that one that hangs or is stopped cannot keep a run from ending.
/// Long, since a server that swaps answers late.
const SILENT_AT_MOST: Duration = Duration::from_secs(30);

/// Columns that exist, with the query that reads them in one go.
fn query(existing: &BTreeSet<(String, String)>, database: &str) -> (Vec<&'static str>, String) {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, view, column) in COLUMNS {
        let exists = existing.contains(&(view.to_owned(), column.to_owned()));
        if exists && !names.contains(&name) {
            names.push(name);
            values.push(format!("{view}.{column}::bigint"));
        }
    }
    let views = [DATABASE, WRITER, CHECKPOINTER, WAL];
    let from: Vec<&str> =
        views.into_iter().filter(|view| values.iter().any(|value| value.starts_with(&format!("{view}.")))).collect();
    let condition = format!("{DATABASE}.datname = {}", literal(database));
    (names, format!("SELECT {} FROM {} WHERE {condition}", values.join(", "), from.join(", ")))
}

/// Watches the counters of a server.
#[derive(Debug)]
pub struct Counters {
    client: Option<Client>,
    columns: Vec<&'static str>,
    query: String,
}

impl Counters {
    /// Watches `database` over a connection to `address`, whose database must be another.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(address: &Address, database: &str) -> Result<Self, ProbeError> {
        let mut client = Client::open(address)?;
        client.limit_silence(SILENT_AT_MOST)?;
        let sql = format!(
            "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
             WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relname IN ('{DATABASE}', '{WRITER}', '{CHECKPOINTER}', '{WAL}')"
        );
        let pair = |row: Vec<Option<String>>| Some((row.first()?.clone()?, row.get(1)?.clone()?));
        let existing = client.rows(&sql)?.into_iter().filter_map(pair).collect();
        let (columns, query) = query(&existing, database);
        if client.rows(&query)?.is_empty() {
            return Err(Error::Protocol(format!("target.dbname: no database {database}")).into());
        }
        Ok(Self { client: Some(client), columns, query })
    }
}

impl Probe for Counters {
    fn columns(&self) -> Vec<&'static str> {
        self.columns.clone()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let sampled = self.client.as_mut().map(|client| client.integers(&self.query));
        match sampled {
            Some(Ok(values)) => row(&values),
            failed => {
                // A broken connection stays broken: the columns are absent from here on.
                if matches!(failed, Some(Err(Error::Broken(_)))) {
                    self.client = None;
                }
                row(&vec![ABSENT_SAMPLE; self.columns.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(moved: bool) -> BTreeSet<(String, String)> {
        let of = |view: &str| (view == CHECKPOINTER) == moved || view == DATABASE || view == WAL;
        let all =
            COLUMNS.into_iter().filter(|(_, view, column)| of(view) || (*view == WRITER && *column == "buffers_alloc"));
        all.map(|(_, view, column)| (view.to_owned(), column.to_owned())).collect()
    }

    #[test]
    fn columns_are_taken_from_where_the_version_has_them() {
        let (names, sql) = query(&views(false), "it's");
        assert!(sql.contains("pg_stat_bgwriter.checkpoints_timed::bigint") && !sql.contains(CHECKPOINTER));
        assert!(sql.ends_with("datname = 'it''s'"));
        assert!(names.contains(&"buffers_backend"));
        let (names, sql) = query(&views(true), "d");
        assert!(sql.contains("pg_stat_checkpointer.num_timed::bigint"));
        assert!(names.contains(&"checkpoints_timed") && !names.contains(&"buffers_backend"));
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
