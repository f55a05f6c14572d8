//! What verbs want of the workload that a request names, or refuse.

use crate::failure::Failure;
use plimsoll_files::FileWorkload;
use plimsoll_target::postgres::Client;
use plimsoll_web::Web;
use plimsoll_workload::decision_support::{self, DecisionSupport};
use plimsoll_workload::{AnyWorkload, DataSet};
use std::sync::Arc;

fn refused(name: &str, why: &str) -> Failure {
    Failure::Request(format!("workload.name: {name}{why}"))
}

/// Why a load of it is refused, where its work is not a mix of transactions.
pub(crate) fn without_transactions(name: &str) -> Failure {
    refused(name, " has no transactions to load a server with")
}

/// The tables of decision_support, for verbs that only it knows.
pub(crate) fn decision_support(workload: &dyn AnyWorkload) -> Result<&DecisionSupport, Failure> {
    let refused = || refused(workload.name(), &format!(": only {} can do this", decision_support::NAME));
    workload.decision_support().ok_or_else(refused)
}

/// The tables that are its own, for verbs that need them.
pub(crate) fn own_data(workload: &dyn AnyWorkload) -> Result<&dyn DataSet, Failure> {
    workload.data().ok_or_else(|| refused(workload.name(), " has no tables of its own"))
}

/// It as a workload on a folder, for targets that are one.
pub(crate) fn on_files(workload: Box<dyn AnyWorkload>) -> Result<Arc<dyn FileWorkload>, Failure> {
    let name = workload.name();
    workload.on_files().ok_or_else(|| refused(name, " needs a server: give target.kind \"postgresql\""))
}

/// It as the workload on a web server, for targets that are one.
pub(crate) fn on_web(workload: Box<dyn AnyWorkload>) -> Result<Arc<Web>, Failure> {
    let name = workload.name();
    workload
        .on_web()
        .ok_or_else(|| refused(name, " is none for a web server: give target.kind \"postgresql\" or \"files\""))
}

/// Makes sure that `schema` holds the workload's data. What is asked is one transaction, so that the server's count of commits can
/// be foretold.
pub(crate) fn recognise(workload: &dyn AnyWorkload, client: &mut Client, schema: &str) -> Result<(), Failure> {
    let Some(data) = workload.data() else { return Ok(()) };
    client.run("BEGIN")?;
    data.recognise(client, schema)?;
    Ok(client.run("COMMIT")?)
}
