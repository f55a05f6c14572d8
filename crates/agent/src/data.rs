//! The verbs about data: describe, populate, check, drop.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Check, Describe, Drop, Populate};
use crate::stop;
use plimsoll_record::Summary;
use plimsoll_target::postgres::{Client, literal, quoted};
use plimsoll_workload::{DataSet, Stamp, require_stamp};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most one progress line in this time.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn describe(request: &Describe) -> Result<(), Failure> {
    let data = request::workload(&request.workload)?;
    let tables: serde_json::Map<String, Value> =
        data.tables().into_iter().map(|table| (table.name, table.rows.into())).collect();
    output::line(&json!({
        "kinds": data.kinds(),
        "tables": tables,
        "estimated_bytes": data.estimated_bytes(),
        "ddl": data.ddl(),
        "statements": data.statements(),
    }));
    Ok(())
}

pub(crate) fn populate(request: &Populate) -> Result<(), Failure> {
    if !(1..=64).contains(&request.parallel) {
        return Err(Failure::Request(format!("parallel: {} is not between 1 and 64", request.parallel)));
    }
    let data = request::workload(&request.workload)?;
    let address = request.target.address()?;
    stop::exit_on_signal("the schema is incomplete, drop it")?;
    let tables = data.tables();
    let total: u64 = tables.iter().map(|table| table.rows).sum();
    let started = Instant::now();
    let progress = Mutex::new((0u64, started));
    let report = |table: usize, rows: u64| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0 += rows;
        if progress.0 == total || progress.1.elapsed() >= PROGRESS_EVERY {
            progress.1 = Instant::now();
            output::event("progress", json!({"done": progress.0, "total": total, "table": tables[table].name}));
        }
    };
    let loaded =
        plimsoll_workload::populate(&data, &address, &request.target.schema, request.parallel as usize, &report)?;
    let seconds = started.elapsed().as_secs_f64();
    output::event("populated", json!({"tables": loaded.tables, "bytes": loaded.bytes, "seconds": seconds}));
    Ok(())
}

fn read_summary(path: &PathBuf) -> Result<Summary, Failure> {
    let refused = |error: String| Failure::Request(format!("segments: {}: {error}", path.display()));
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
}

pub(crate) fn check(request: &Check) -> Result<(), Failure> {
    let data = request::workload(&request.workload)?;
    let segments = request.segments.iter().map(read_summary).collect::<Result<Vec<_>, _>>()?;
    stop::exit_on_signal("nothing was changed")?;
    let mut client = Client::open(&request.target.address_in_schema()?)?;
    let stamp = require_stamp(&data, &mut client, &request.target.schema)?;
    let checks = data.check(&mut client, &stamp, &segments)?;
    output::event("checked", json!({"checks": checks}));
    Ok(())
}

/// Removes the schema if it is ours: it bears our stamp, or (begun and not completed) holds none but our tables.
pub(crate) fn drop_schema(request: &Drop) -> Result<(), Failure> {
    let data = request::workload(&request.workload)?;
    let schema = &request.target.schema;
    stop::exit_on_signal("the schema may still be there")?;
    let mut client = Client::open(&request.target.address()?)?;
    let name = literal(schema);
    let comment = client
        .rows(&format!("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = {name}"))?;
    let existed = !comment.is_empty();
    let stamped = comment.into_iter().flatten().flatten().any(|text| serde_json::from_str::<Stamp>(&text).is_ok());
    if existed && !stamped {
        let ours: Vec<String> = data.tables().iter().map(|table| literal(&table.name)).collect();
        let foreign = client.integers(&format!(
            "SELECT count(*) FROM pg_class WHERE relnamespace = {name}::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relname NOT IN ({})",
            ours.join(", ")
        ))?;
        if foreign != [0] {
            return Err(Failure::Target(format!(
                "target.schema: {schema} holds tables that are not ours; not dropped"
            )));
        }
    }
    client.run(&format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(schema)))?;
    output::event("dropped", json!({"existed": existed}));
    Ok(())
}
