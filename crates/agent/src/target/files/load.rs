//! A load of files in a folder: its sessions open, on the driver that they need.

use super::Files;
use crate::failure::Failure;
use crate::target::prepared::{Prepared, Start, Wanted};
use crate::workload::on_files;
use plimsoll_files::{Finish, Sessions};
use plimsoll_load::{Config, raise_descriptor_limit, run_blocking, run_completion};
use plimsoll_workload::AnyWorkload;
use std::sync::Arc;

impl Files {
    /// Opens the sessions of a load.
    pub(in crate::target) fn prepare(
        &self,
        wanted: &Wanted<'_>,
        workload: Box<dyn AnyWorkload>,
    ) -> Result<Prepared, Failure> {
        let workload = on_files(workload)?;
        if let Some(clients) = workload.clients()
            && clients != wanted.clients
        {
            let message = format!("clients: {} is not {clients}, which is what the workload has", wanted.clients);
            return Err(Failure::Request(message));
        }
        let descriptors = wanted.clients.saturating_mul(workload.descriptors());
        raise_descriptor_limit(descriptors).map_err(|error| Failure::Target(error.to_string()))?;
        let tree = Arc::new(self.open(workload.name())?);
        let ends = Arc::clone(wanted.end);
        let finish = Finish::new(move || ends.get().into_iter().for_each(|control| control.stop()));
        let own_descriptors = workload.own_descriptors();
        let (name, kinds, facts) = (workload.name(), workload.kinds(), workload.facts());
        let sessions = Arc::clone(&workload).sessions(&tree, wanted.clients, finish)?;
        let (threads, start): (u32, Start) = match sessions {
            Sessions::Blocking(opener) => {
                let sessions = (0..wanted.clients).map(|number| opener.open(number)).collect::<Result<Vec<_>, _>>()?;
                let start: Start = Box::new(move |config, control, tables| {
                    let config = Config { own_descriptors, ..config.clone() };
                    run_blocking(sessions, Some(&opener), &config, control, tables)
                });
                (wanted.clients, start)
            }
            Sessions::Completion(opener) => {
                let sessions = (0..wanted.clients).map(|number| opener.open(number)).collect::<Result<Vec<_>, _>>()?;
                let start: Start = Box::new(move |config, control, tables| {
                    // Sessions that block have a thread each, which the kernel places; engines are to be compared as they are.
                    let config = Config { pin_threads: false, ..config.clone() };
                    run_completion(sessions, &opener, &config, control, tables)
                });
                (wanted.threads, start)
            }
        };
        let conclude = Box::new(move || Ok(workload.conclude(&tree)?));
        Ok(Prepared { name, kinds, facts, threads, counts_commits: false, start, conclude })
    }
}
