//! A load of a server of PostgreSQL: its data recognised, its connections open.

use super::prepared::Prepared;
use crate::failure::Failure;
use crate::request::Load;
use crate::target::Postgresql;
use crate::workload::{recognise, without_transactions};
use plimsoll_load::{open_all, raise_descriptor_limit, run};
use plimsoll_target::postgres::Client;
use plimsoll_workload::AnyWorkload;

pub(super) fn prepare(
    request: &Load,
    server: &Postgresql,
    mut workload: Box<dyn AnyWorkload>,
) -> Result<Prepared, Failure> {
    raise_descriptor_limit(request.clients).map_err(|error| Failure::Record(error.to_string()))?;
    let address = server.address_in_schema()?;
    let mut client = Client::open(&address)?;
    recognise(workload.as_ref(), &mut client, &server.schema)?;
    drop(client);
    workload
        .record_in(&request.out)
        .map_err(|error| Failure::Record(format!("a file of the workload cannot be written: {error}")))?;
    let (name, kinds, facts) = (workload.name(), workload.kinds(), workload.facts());
    let counts_commits = workload.data().is_some();
    let opener = workload.into_opener(&address, request.protocol(), request.retries_max)?;
    let opener = opener.ok_or_else(|| without_transactions(name))?;
    let sessions = open_all(opener.as_ref(), request.clients)?;
    Ok(Prepared {
        name,
        kinds,
        facts,
        threads: request.threads,
        counts_commits,
        start: Box::new(move |config, control, tables| run(sessions, &opener, config, control, tables)),
        conclude: Box::new(|| Ok(())),
    })
}
