//! A load of files in a folder: its sessions open, on the driver that they need.

use super::prepared::{Prepared, Start};
use crate::failure::Failure;
use crate::request::Load;
use crate::target::Files;
use crate::workload::on_files;
use plimsoll_files::{Finish, Sessions};
use plimsoll_load::{Control, raise_descriptor_limit, run_blocking, run_completion};
use plimsoll_workload::AnyWorkload;
use std::sync::{Arc, OnceLock};

/// `end`: of the segment, once that is to begin.
pub(super) fn prepare(
    request: &Load,
    folder: &Files,
    workload: Box<dyn AnyWorkload>,
    end: &Arc<OnceLock<Arc<Control>>>,
) -> Result<Prepared, Failure> {
    let workload = on_files(workload)?;
    if let Some(wanted) = workload.clients()
        && wanted != request.clients
    {
        let message = format!("clients: {} is not {wanted}, which is what the workload has", request.clients);
        return Err(Failure::Request(message));
    }
    let descriptors = request.clients.saturating_mul(workload.descriptors());
    raise_descriptor_limit(descriptors).map_err(|error| Failure::Record(error.to_string()))?;
    let tree = Arc::new(folder.open(workload.name())?);
    let ends = Arc::clone(end);
    let finish = Finish::new(move || ends.get().into_iter().for_each(|control| control.stop()));
    let (name, kinds, facts) = (workload.name(), workload.kinds(), workload.facts());
    let sessions = Arc::clone(&workload).sessions(&tree, request.clients, finish)?;
    let (threads, start): (u32, Start) = match sessions {
        Sessions::Blocking(opener) => {
            let sessions = (0..request.clients).map(|number| opener.open(number)).collect::<Result<Vec<_>, _>>()?;
            let start: Start =
                Box::new(move |config, control, tables| run_blocking(sessions, Some(&opener), config, control, tables));
            (request.clients, start)
        }
        Sessions::Completion(opener) => {
            let sessions = (0..request.clients).map(|number| opener.open(number)).collect::<Result<Vec<_>, _>>()?;
            let start: Start =
                Box::new(move |config, control, tables| run_completion(sessions, &opener, config, control, tables));
            (request.threads, start)
        }
    };
    let conclude = Box::new(move || Ok(workload.conclude(&tree)?));
    Ok(Prepared { name, kinds, facts, threads, counts_commits: false, start, conclude })
}
