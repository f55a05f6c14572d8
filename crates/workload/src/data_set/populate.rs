//! Makes a workload's tables, and removes them.

use super::events::{Event, Listener};
use super::stamp::{Stamp, comment_on, stamp_of_schema, stamp_of_table};
use super::work::{heard_around, perform};
use super::{DataSet, DataSetError, Job, Making};
use plimsoll_target::postgres::bulk;
use plimsoll_target::postgres::{Address, Client, Error, literal, quoted};
use std::collections::BTreeMap;

/// Memory for each index build and key check: what the server is set to, but at least 128 MiB, which is small enough for a
/// server in a small memory group with two loaders.
const MEMORY_KIB_MIN: i64 = 128 << 10;
const MEMORY_KIB: &str = "SELECT setting FROM pg_settings WHERE name = 'maintenance_work_mem'";

/// How many workers help to build an index.
const WORKERS: &str = "max_parallel_maintenance_workers";

/// What loading amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Rows by table.
    pub tables: BTreeMap<String, u64>,
    /// pg_total_relation_size by table.
    pub table_bytes: BTreeMap<String, u64>,
}

impl Loaded {
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.table_bytes.values().sum()
    }
}

/// Loads `data` into `schema` over `parallel` connections, making the schema if there is none. `address` must not set a search
/// path.
///
/// # Errors
/// When the schema exists (or, for data that may stand beside other tables, one of its own in it) or the server refuses. What
/// was begun is removed again.
pub fn populate(
    data: &dyn DataSet,
    address: &Address,
    schema: &str,
    parallel: usize,
    listener: &Listener<'_>,
) -> Result<Loaded, DataSetError> {
    let mut client = Client::open(address)?;
    let (exists, _) = stamp_of_schema(&mut client, schema)?;
    if exists && data.stamped_table().is_none() {
        return Err(DataSetError::Schema(format!("target.schema: {schema} exists already; drop it first")));
    }
    if let Some(table) = tables_in(data, &mut client, schema)?.into_iter().next() {
        return Err(DataSetError::Schema(format!("target.schema: {schema} holds {table} already; drop it first")));
    }
    let memory_kib = client.integers(MEMORY_KIB)?[0].max(MEMORY_KIB_MIN).to_string();
    let inside = address
        .with_settings([("search_path", quoted(schema).as_str()), ("maintenance_work_mem", memory_kib.as_str())]);
    let loaded =
        begin(data, &mut client, schema, exists).and_then(|()| fill(data, &inside, schema, parallel, listener));
    if loaded.is_err() {
        // Best effort: the failure that is reported is the first one.
        let _ = if exists { drop_tables(data, &mut client, schema) } else { drop_schema(&mut client, schema) };
    }
    Ok(loaded?)
}

/// Makes the schema if there is none. One that may later hold other tables too says from now on that it is ours to drop; one
/// that is the data's own says so when it is complete.
fn begin(data: &dyn DataSet, client: &mut Client, schema: &str, exists: bool) -> Result<(), Error> {
    if exists {
        return Ok(());
    }
    let name = quoted(schema);
    client.run(&format!("CREATE SCHEMA {name}"))?;
    match data.stamped_table() {
        None => Ok(()),
        Some(_) => client.run(&comment_on(&format!("SCHEMA {name}"), &data.stamp())?),
    }
}

fn fill(
    data: &dyn DataSet,
    address: &Address,
    schema: &str,
    parallel: usize,
    listener: &Listener<'_>,
) -> Result<Loaded, Error> {
    let mut client = Client::open(address)?;
    let minimal = client.rows("SHOW wal_level")? == [[Some("minimal".to_owned())]];
    let making = data.making(parallel, minimal);
    let Making { before, promoted, foreign_keys, validations, .. } = &making;
    let workers = making.workers.map(|workers| workers.to_string());
    let address = &address.with_settings(workers.iter().map(|workers| (WORKERS, workers.as_str())));
    listener(Event::Phase("tables"));
    in_order(&mut client, before)?;
    if let Some(table) = data.stamped_table() {
        client.run(&comment_on(&format!("TABLE {}", quoted(table)), &data.stamp())?)?;
    }
    bulk::create(&mut client, &making.tables)?;
    perform(data, &making, (address, parallel, minimal), listener)?;
    in_order(&mut client, promoted)?;
    if !foreign_keys.is_empty() {
        listener(Event::Phase("foreign_keys"));
        in_order(&mut client, foreign_keys)?;
        validate(address, parallel, validations, listener)?;
    }
    finish(data, &mut client, schema)
}

fn in_order(client: &mut Client, statements: &[String]) -> Result<(), Error> {
    statements.iter().try_for_each(|sql| client.run(sql))
}

fn validate(address: &Address, parallel: usize, jobs: &[Job], listener: &Listener<'_>) -> Result<(), Error> {
    bulk::share_out(address, parallel, jobs.len(), &|_, _| false, |client, number| {
        let Job { table, sql } = &jobs[number];
        let heard = |progress| listener(Event::Table { phase: "foreign_keys", table, progress });
        heard_around(&heard, || client.run(sql))
    })
}

/// Measures what was loaded, and stamps the schema if it is the data's own.
fn finish(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<Loaded, Error> {
    let mut loaded = Loaded { tables: data.rows(), table_bytes: BTreeMap::new() };
    let mut heap_bytes = BTreeMap::new();
    for table in loaded.tables.keys() {
        let name = literal(&quoted(table));
        // With its partitions, if it has any.
        let sizes = client.integers(&format!(
            "SELECT sum(pg_relation_size(oid))::bigint, sum(pg_total_relation_size(oid))::bigint FROM pg_class \
             WHERE oid = {name}::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = {name}::regclass)"
        ))?;
        heap_bytes.insert(table.clone(), sizes[0]);
        loaded.table_bytes.insert(table.clone(), sizes[1] as u64);
    }
    if data.stamped_table().is_none() {
        let stamp = Stamp { heap_bytes, ..data.stamp() };
        client.run(&comment_on(&format!("SCHEMA {}", quoted(schema)), &stamp)?)?;
    }
    Ok(loaded)
}

/// Which of the data's tables stand in `schema`.
fn tables_in(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<Vec<String>, Error> {
    let sql = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace({}) AND relname IN ({}) ORDER BY relname",
        literal(&quoted(schema)),
        names(data)
    );
    Ok(client.rows(&sql)?.into_iter().flatten().flatten().collect())
}

fn names(data: &dyn DataSet) -> String {
    data.rows().keys().map(|table| literal(table)).collect::<Vec<_>>().join(", ")
}

fn drop_tables(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<(), Error> {
    let tables: Vec<String> = data.rows().keys().map(|table| format!("{}.{}", quoted(schema), quoted(table))).collect();
    client.run(&format!("DROP TABLE IF EXISTS {}", tables.join(", ")))
}

fn drop_schema(client: &mut Client, schema: &str) -> Result<(), Error> {
    client.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(schema)))
}

/// Tables, views and sequences in `schema` that are not the data's.
fn others_in(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<Vec<String>, Error> {
    let (schema, names) = (literal(&quoted(schema)), names(data));
    // Partitions go with their table.
    let sql = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace({schema}) \
         AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT relispartition AND relname NOT IN ({names}) ORDER BY relname"
    );
    Ok(client.rows(&sql)?.into_iter().flatten().flatten().collect())
}

/// Removes `data` from `schema`, if it is ours, and the schema with it if that is ours too. True if there was something to
/// remove.
///
/// What is ours bears a stamp; or it was begun and not completed, in a schema that holds none but our tables. What is not
/// ours is never removed: data that own their schema are refused while anything else stands in it, and the server refuses
/// where something of another schema, such as a view, depends on our tables.
///
/// # Errors
/// When the server refuses, or what is there is not ours.
pub fn drop_data(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<bool, DataSetError> {
    let (exists, stamp) = stamp_of_schema(client, schema)?;
    let refused = |what: &str| Err(DataSetError::Schema(format!("target.schema: {schema} {what}; not dropped")));
    let Some(table) = data.stamped_table() else {
        // A stamp says who made the schema, not that nobody has put anything beside our tables since.
        let others = others_in(data, client, schema)?;
        if !others.is_empty() {
            return refused(&format!(
                "holds objects that plimsoll-agent did not make ({}); move or drop them first",
                others.join(", ")
            ));
        }
        drop_tables(data, client, schema)?;
        drop_schema(client, schema)?;
        return Ok(exists);
    };
    let schema_is_ours = stamp.is_some_and(|stamp| stamp.workload == data.name());
    let (_, stamp) = stamp_of_table(client, schema, table)?;
    let some = !tables_in(data, client, schema)?.is_empty();
    if some && stamp.is_none() && !schema_is_ours {
        return refused(&format!("holds {table} that plimsoll-agent did not make"));
    }
    drop_tables(data, client, schema)?;
    if schema_is_ours && others_in(data, client, schema)?.is_empty() {
        drop_schema(client, schema)?;
    }
    Ok(some || schema_is_ours)
}
