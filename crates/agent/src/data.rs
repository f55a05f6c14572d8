//! The verbs about data: describe, populate, check, drop.

use crate::failure::Failure;
use crate::loading::Loading;
use crate::output;
use crate::request::{self, Check, Describe, Drop, Populate};
use crate::stop;
use crate::target::{Files, Target};
use crate::workload;
use plimsoll_files::Tree;
use plimsoll_record::Summary;
use plimsoll_target::postgres::{Client, Mode};
use plimsoll_workload::{AnyWorkload, Event, LedgerComparison};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most one progress line in this time.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn describe(request: &Describe) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, request.mode)?;
    let (tables, bytes, ddl) = workload.data().map_or_else(
        || (BTreeMap::new(), 0, Vec::new()),
        |data| (data.rows(), data.estimated_bytes(), data.making(1, false).ddl()),
    );
    output::line(&json!({
        "kinds": workload.kinds(),
        "tables": tables,
        "estimated_bytes": bytes,
        "ddl": ddl,
        "statements": workload.statements(),
        "facts": workload.facts(),
    }));
    Ok(())
}

pub(crate) fn populate(request: &Populate) -> Result<(), Failure> {
    if !(1..=64).contains(&request.parallel) {
        return Err(Failure::Request(format!("parallel: {} is not between 1 and 64", request.parallel)));
    }
    let workload = request::workload(&request.workload, Mode::default())?;
    if let Target::Files(folder) = &request.target {
        return lay_out(folder, workload);
    }
    let data = workload::own_data(workload.as_ref())?;
    let server = request.target.postgresql()?;
    let address = server.address()?;
    stop::exit_on_signal("the data is incomplete, drop it")?;
    let total: u64 = data.rows().values().sum();
    let started = Instant::now();
    let loading = Mutex::new(Loading::new(total));
    let listener = |event: Event<'_>| {
        loading.lock().unwrap_or_else(PoisonError::into_inner).hear(event, started.elapsed());
    };
    let schema = &server.schema;
    let loaded = plimsoll_workload::populate(data, &address, schema, request.parallel as usize, &listener)?;
    let since = started.elapsed();
    let (phases, work) = loading.into_inner().unwrap_or_else(PoisonError::into_inner).end(since);
    output::event(
        "populated",
        json!({
            "tables": loaded.tables,
            "bytes": loaded.bytes(),
            "table_bytes": loaded.table_bytes,
            "seconds": since.as_secs_f64(),
            "phases": phases,
            "work": work,
        }),
    );
    Ok(())
}

/// Makes the files of a workload on a folder, and has them reach the device.
fn lay_out(folder: &Files, workload: Box<dyn AnyWorkload>) -> Result<(), Failure> {
    let workload = workload::on_files(workload)?;
    stop::exit_on_signal("the files are incomplete, drop them")?;
    let (started, total) = (Instant::now(), workload.estimated_bytes());
    let (mut done, mut told) = (0, Duration::ZERO);
    let tree = Tree::create(folder.folder(), workload.name())?;
    workload.lay_out(&tree, &mut |bytes| {
        done += bytes;
        let since = started.elapsed();
        if since - told >= PROGRESS_EVERY {
            told = since;
            output::event("progress", json!({"done": done, "total": total, "seconds": since.as_secs_f64()}));
        }
    })?;
    output::event("populated", json!({"bytes": done, "seconds": started.elapsed().as_secs_f64()}));
    Ok(())
}

fn read_summary(path: &PathBuf) -> Result<Summary, Failure> {
    let refused = |error: String| Failure::Request(format!("segments: {}: {error}", path.display()));
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
}

pub(crate) fn check(request: &Check) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, Mode::default())?;
    let segments = request.segments.iter().map(read_summary).collect::<Result<Vec<_>, _>>()?;
    stop::exit_on_signal("nothing was changed")?;
    if let Target::Files(folder) = &request.target {
        let workload = workload::on_files(workload)?;
        let checks = workload.check(&folder.open(workload.name())?, &segments)?;
        output::event("checked", json!({"checks": checks}));
        return Ok(());
    }
    let data = workload::own_data(workload.as_ref())?;
    let server = request.target.postgresql()?;
    let mut client = Client::open(&server.address_in_schema()?)?;
    let mut checks = data.check(&mut client, &server.schema, &segments)?;
    let ledger = workload.compare_ledgers(&mut client, &request.segments).map_err(Failure::Target)?;
    match ledger {
        Some(LedgerComparison { checks: of_ledger, document }) => {
            checks.extend(of_ledger);
            output::event("checked", json!({"checks": checks, "ledger": document}));
        }
        None => output::event("checked", json!({"checks": checks})),
    }
    Ok(())
}

/// Removes the data if it is ours.
pub(crate) fn drop_data(request: &Drop) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, Mode::default())?;
    if let Target::Files(folder) = &request.target {
        stop::exit_on_signal("some of the files may still be there")?;
        let existed = folder.remove()?;
        output::event("dropped", json!({"existed": existed}));
        return Ok(());
    }
    let (data, server) = (workload::own_data(workload.as_ref())?, request.target.postgresql()?);
    stop::exit_on_signal("the data may still be there")?;
    let mut client = Client::open(&server.address()?)?;
    let existed = plimsoll_workload::drop_data(data, &mut client, &server.schema)?;
    output::event("dropped", json!({"existed": existed}));
    Ok(())
}
