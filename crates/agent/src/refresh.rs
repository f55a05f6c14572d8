//! `refresh`: refresh functions of decision_support, one after the other on one session.
//!
//! The fact that constrains it: what a function takes counts from its BEGIN to the reply to its COMMIT. Its set is generated
//! before that, and the generator's pool of words before the first.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Refresh};
use crate::stop;
use crate::workload;
use plimsoll_load::monotonic_ns;
use plimsoll_target::postgres::{Client, Mode};
use plimsoll_workload::DataSet;
use plimsoll_workload::decision_support::refresh::{Refreshed, prepare};
use serde::Serialize;
use serde_json::json;

/// A refresh function that was performed.
#[derive(Serialize)]
struct Performed {
    #[serde(flatten)]
    refreshed: Refreshed,
    began_ns: i64,
    ended_ns: i64,
}

pub(crate) fn refresh(request: &Refresh) -> Result<(), Failure> {
    let workload = request::workload(&request.workload, Mode::default())?;
    let tables = workload::decision_support(workload.as_ref())?;
    if request.functions.is_empty() || request.times == 0 {
        return Err(Failure::Request("functions and times: there is nothing to do".to_owned()));
    }
    let server = request.target.postgresql()?;
    stop::exit_on_signal("a refresh function that was under way is rolled back, or was committed whole")?;
    let mut client = Client::open(&server.address_in_schema()?)?;
    tables.recognise(&mut client, &server.schema)?;
    let mut performed = Vec::new();
    for _ in 0..request.times {
        for &function in &request.functions {
            let prepared = prepare(&mut client, tables.scale_factor(), function, 0)?;
            let line = json!({"function": function, "set": prepared.set(), "t_ns": monotonic_ns()});
            output::event("refreshing", line);
            let began_ns = monotonic_ns();
            let refreshed = prepared.perform(&mut client)?;
            let one = Performed { refreshed, began_ns, ended_ns: monotonic_ns() };
            output::event("refreshed", json!(one));
            performed.push(one);
        }
    }
    output::event("refreshes", json!({"refreshes": performed}));
    Ok(())
}
