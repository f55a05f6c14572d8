//! The verbs about data: describe, populate, check, drop.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Check, Describe, Drop, Populate};
use crate::stop;
use plimsoll_record::Summary;
use plimsoll_target::postgres::Mode;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    request.target.populate(workload, request.parallel)
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
    request.target.check(workload, &segments, &request.segments)
}

/// Removes the data if it is ours.
pub(crate) fn drop_data(request: &Drop) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, Mode::default())?;
    request.target.remove(workload.as_ref())
}
