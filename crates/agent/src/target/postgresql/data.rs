//! The tables of a workload on a server of PostgreSQL: made, checked, removed.

use super::Postgresql;
use crate::failure::Failure;
use crate::loading::Loading;
use crate::workload::own_data;
use crate::{output, stop};
use plimsoll_record::Summary;
use plimsoll_target::postgres::Client;
use plimsoll_workload::{AnyWorkload, Event, LedgerComparison};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

impl Postgresql {
    /// Makes and fills the tables of a workload, over `parallel` connections.
    pub(in crate::target) fn populate(&self, workload: &dyn AnyWorkload, parallel: u32) -> Result<(), Failure> {
        let data = own_data(workload)?;
        let address = self.address()?;
        stop::exit_on_signal("the data is incomplete, drop it")?;
        let total: u64 = data.rows().values().sum();
        let started = Instant::now();
        let loading = Mutex::new(Loading::new(total));
        let listener = |event: Event<'_>| {
            loading.lock().unwrap_or_else(PoisonError::into_inner).hear(event, started.elapsed());
        };
        let loaded = plimsoll_workload::populate(data, &address, &self.schema, parallel as usize, &listener)?;
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

    /// Asks what must hold of the tables after `segments`, whose summaries lie at `paths`.
    pub(in crate::target) fn check(
        &self,
        workload: &dyn AnyWorkload,
        segments: &[Summary],
        paths: &[PathBuf],
    ) -> Result<(), Failure> {
        let data = own_data(workload)?;
        let mut client = Client::open(&self.address_in_schema()?)?;
        let mut checks = data.check(&mut client, &self.schema, segments)?;
        let ledger = workload.compare_ledgers(&mut client, paths).map_err(Failure::Target)?;
        match ledger {
            Some(LedgerComparison { checks: of_ledger, document }) => {
                checks.extend(of_ledger);
                output::event("checked", json!({"checks": checks, "ledger": document}));
            }
            None => output::event("checked", json!({"checks": checks})),
        }
        Ok(())
    }

    /// Removes the tables if they are ours.
    pub(in crate::target) fn remove(&self, workload: &dyn AnyWorkload) -> Result<(), Failure> {
        let data = own_data(workload)?;
        stop::exit_on_signal("the data may still be there")?;
        let mut client = Client::open(&self.address()?)?;
        let existed = plimsoll_workload::drop_data(data, &mut client, &self.schema)?;
        output::event("dropped", json!({"existed": existed}));
        Ok(())
    }
}
