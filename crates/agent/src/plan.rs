//! `plan`: the queries of decision_support, for servers whose client is another program.
//!
//! The fact that constrains it: the texts are told whole, so that nobody but the agent fills in a parameter.

use crate::failure::Failure;
use crate::output;
use crate::request;
use crate::streams::{AskedTest, told_work};
use crate::workload;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::decision_support::queries;
use serde::Deserialize;
use serde_json::{Value, json};

/// More streams than any result was ever published with.
const STREAM_MAX: u32 = 1_000_000;
/// The only scale factor with known answers.
const SCALE_FACTOR_ANSWERED: f64 = 1.0;

/// `plan`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    workload: Value,
    #[serde(default)]
    streams: Option<Vec<u32>>,
    #[serde(default)]
    work: Option<AskedTest>,
    #[serde(default)]
    validation: bool,
}

/// Prints the queries of streams in their order, the work of a test, or the queries of the validation with their answers.
pub(crate) fn plan(request: &Plan) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, Mode::default())?;
    let tables = workload::decision_support(workload.as_ref())?;
    let asked = [request.streams.is_some(), request.work.is_some(), request.validation];
    if asked.into_iter().filter(|is_asked| *is_asked).count() != 1 {
        return Err(Failure::Request("streams: give one of streams, work and validation: true".to_owned()));
    }
    if let Some(asked) = request.work {
        output::event("plan", json!({"work": told_work(asked, &tables.queries())?}));
        return Ok(());
    }
    let Some(streams) = &request.streams else { return validation(tables.scale_factor().value()) };
    if let Some(stream) = streams.iter().find(|stream| **stream > STREAM_MAX) {
        return Err(Failure::Request(format!("streams: {stream} is above {STREAM_MAX}")));
    }
    let source = tables.queries();
    let of = |&stream: &u32| json!({"stream": stream, "queries": source.stream(stream)});
    output::event("plan", json!({"streams": streams.iter().map(of).collect::<Vec<_>>()}));
    Ok(())
}

fn validation(scale_factor: f64) -> Result<(), Failure> {
    if scale_factor != SCALE_FACTOR_ANSWERED {
        let known = "answers are known at scale factor 1 only";
        return Err(Failure::Request(format!("validation: {known}, not at {scale_factor}")));
    }
    let missing = |error: queries::AnswerError| Failure::Identity(error.to_string());
    let answers = (1..=queries::QUERIES).map(queries::answer).collect::<Result<Vec<_>, _>>().map_err(missing)?;
    output::event("plan", json!({"validation": queries::validation(), "answers": answers}));
    Ok(())
}
