//! A workload's tables: made, stamped, recognised and checked.
//!
//! A loaded schema carries its stamp (workload, seed, size) as its comment. Load and check compare it with the request, so that
//! another data set is refused with a sentence instead of being found out by wrong answers.

use crate::Statement;
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::bulk::{self, RowSource, Table};
use plimsoll_target::postgres::{Address, Client, Error, literal, quoted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of the data sets' rows: changes whenever any generator or size rule does.
const DATA_FORMAT: u32 = 1;
/// Memory for each index build and key check. Small enough for a server in a small memory group with two loaders.
const MAINTENANCE_WORK_MEM: &str = "128MB";

/// A foreign key, added without its check first, so that the checks can run side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Adds it NOT VALID.
    pub add: String,
    /// Validates it.
    pub validate: String,
}

/// What a schema says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamp {
    /// Format of the rows.
    pub data_format: u32,
    /// The workload's name.
    pub workload: String,
    /// The seed of the rows.
    pub seed: u64,
    /// The size that was asked for.
    pub size_bytes: u64,
    /// Bytes of each table's main fork when loading had ended.
    pub heap_bytes: BTreeMap<String, i64>,
}

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

/// What loading amounts to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Rows by table.
    pub tables: BTreeMap<String, u64>,
    /// Sum of pg_total_relation_size.
    pub bytes: u64,
}

/// The data of a workload.
pub trait DataSet: RowSource {
    /// The workload's name.
    fn name(&self) -> &'static str;
    /// The seed of the rows.
    fn seed(&self) -> u64;
    /// The size that was asked for.
    fn size_bytes(&self) -> u64;
    /// Names of the kinds of transaction.
    fn kinds(&self) -> Vec<&'static str>;
    /// The tables, in the order of the row source.
    fn tables(&self) -> Vec<Table>;
    /// The foreign keys.
    fn foreign_keys(&self) -> Vec<ForeignKey>;
    /// The statements in the order in which they are prepared.
    fn statements(&self) -> &'static [Statement];
    /// Server settings of the connections that carry the load.
    fn session_settings(&self) -> &'static [(&'static str, &'static str)];
    /// Compares the tables with what `segments` did to them since they were loaded.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn check(&self, client: &mut Client, stamp: &Stamp, segments: &[Summary]) -> Result<Vec<Check>, Error>;

    /// What is done to make the tables, in order.
    fn ddl(&self) -> Vec<String> {
        let tables = self.tables().into_iter().flat_map(|table| [table.create, table.keys]);
        tables.chain(self.foreign_keys().into_iter().flat_map(|key| [key.add, key.validate])).collect()
    }
}

/// Makes `schema` and loads `data` into it over `parallel` connections. `address` must not set a search path.
/// `progress` hears of (table, rows added), from any of the connections.
///
/// # Errors
/// When the schema exists or the server refuses. A schema that was begun is dropped again.
pub fn populate(
    data: &dyn DataSet,
    address: &Address,
    schema: &str,
    parallel: usize,
    progress: &(dyn Fn(usize, u64) + Sync),
) -> Result<Loaded, DataSetError> {
    let mut client = Client::open(address)?;
    let exists = format!("SELECT count(*) FROM pg_namespace WHERE nspname = {}", literal(schema));
    if client.integers(&exists)? != [0] {
        return Err(DataSetError::Schema(format!("target.schema: {schema} exists already; drop it first")));
    }
    client.run(&format!("CREATE SCHEMA {}", quoted(schema)))?;
    let inside = address
        .with_settings([("search_path", quoted(schema).as_str()), ("maintenance_work_mem", MAINTENANCE_WORK_MEM)]);
    let loaded = fill(data, &inside, schema, parallel, progress);
    if loaded.is_err() {
        // Best effort: the failure that is reported is the first one.
        let _ = client.run(&format!("DROP SCHEMA {} CASCADE", quoted(schema)));
    }
    Ok(loaded?)
}

fn fill(
    data: &dyn DataSet,
    address: &Address,
    schema: &str,
    parallel: usize,
    progress: &(dyn Fn(usize, u64) + Sync),
) -> Result<Loaded, Error> {
    let tables = data.tables();
    let source: &dyn RowSource = data;
    bulk::load(address, parallel, &tables, source, progress)?;
    let mut client = Client::open(address)?;
    let keys = data.foreign_keys();
    keys.iter().try_for_each(|key| client.run(&key.add))?;
    let validations: Vec<String> = keys.into_iter().map(|key| key.validate).collect();
    bulk::run_all(address, parallel, &validations)?;
    let vacuums: Vec<String> =
        tables.iter().map(|table| format!("VACUUM (FREEZE, ANALYZE) {}", quoted(&table.name))).collect();
    bulk::run_all(address, parallel, &vacuums)?;
    let mut loaded = Loaded { tables: BTreeMap::new(), bytes: 0 };
    let mut heap_bytes = BTreeMap::new();
    for table in &tables {
        let name = literal(&quoted(&table.name));
        let sizes = client.integers(&format!("SELECT pg_relation_size({name}), pg_total_relation_size({name})"))?;
        heap_bytes.insert(table.name.clone(), sizes[0]);
        loaded.bytes += sizes[1] as u64;
        loaded.tables.insert(table.name.clone(), table.rows);
    }
    let stamp = Stamp { heap_bytes, ..expected_stamp(data) };
    let text = serde_json::to_string(&stamp).map_err(|error| Error::Protocol(error.to_string()))?;
    client.run(&format!("COMMENT ON SCHEMA {} IS {}", quoted(schema), literal(&text)))?;
    Ok(loaded)
}

fn expected_stamp(data: &dyn DataSet) -> Stamp {
    Stamp {
        data_format: DATA_FORMAT,
        workload: data.name().to_owned(),
        seed: data.seed(),
        size_bytes: data.size_bytes(),
        heap_bytes: BTreeMap::new(),
    }
}

/// The stamp of `schema`, if it is that of `data`.
///
/// # Errors
/// When the schema is missing, has no stamp, or has another's.
pub fn require_stamp(data: &dyn DataSet, client: &mut Client, schema: &str) -> Result<Stamp, DataSetError> {
    let sql =
        format!("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = {}", literal(schema));
    let refused = |what: &str| Err(DataSetError::Schema(format!("target.schema: {schema} {what}; populate it first")));
    let Some(row) = client.rows(&sql)?.into_iter().next() else { return refused("does not exist") };
    let comment = row.into_iter().next().flatten();
    let Some(stamp) = comment.and_then(|text| serde_json::from_str::<Stamp>(&text).ok()) else {
        return refused("was not (or not completely) loaded by plimsoll-agent");
    };
    let found = Stamp { heap_bytes: BTreeMap::new(), ..stamp.clone() };
    let wanted = expected_stamp(data);
    if found != wanted {
        let show = |s: &Stamp| {
            format!("{} seed {} size_bytes {} data format {}", s.workload, s.seed, s.size_bytes, s.data_format)
        };
        return refused(&format!("holds {} and not {}", show(&found), show(&wanted)));
    }
    Ok(stamp)
}
