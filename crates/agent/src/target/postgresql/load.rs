//! A load of a server of PostgreSQL: its data recognised, its connections open.

use super::Postgresql;
use crate::failure::Failure;
use crate::target::prepared::{Prepared, Wanted};
use crate::workload::{recognise, without_transactions};
use plimsoll_load::{open_all, raise_descriptor_limit, run};
use plimsoll_target::postgres::Client;
use plimsoll_workload::AnyWorkload;

impl Postgresql {
    /// Opens the sessions of a load.
    pub(in crate::target) fn prepare(
        &self,
        wanted: &Wanted<'_>,
        mut workload: Box<dyn AnyWorkload>,
    ) -> Result<Prepared, Failure> {
        raise_descriptor_limit(wanted.clients).map_err(|error| Failure::Target(error.to_string()))?;
        let address = self.address_in_schema()?;
        let mut client = Client::open(&address)?;
        recognise(workload.as_ref(), &mut client, &self.schema)?;
        drop(client);
        workload
            .record_in(wanted.out)
            .map_err(|error| Failure::Record(format!("a file of the workload cannot be written: {error}")))?;
        let (name, kinds, facts) = (workload.name(), workload.kinds(), workload.facts());
        let counts_commits = workload.data().is_some();
        let opener = workload.into_opener(&address, wanted.protocol, wanted.retries_max)?;
        let opener = opener.ok_or_else(|| without_transactions(name))?;
        let sessions = open_all(opener.as_ref(), wanted.clients)?;
        Ok(Prepared {
            name,
            kinds,
            facts,
            threads: wanted.threads,
            counts_commits,
            start: Box::new(move |config, control, tables| run(sessions, &opener, config, control, tables)),
            conclude: Box::new(|| Ok(())),
        })
    }
}
