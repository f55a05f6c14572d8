//! Probes in the kernel: what a request asks for, opened or refused. A new one has a file here and is named in the list.

mod aim;
mod block;
mod breakdown;
mod file_systems;
mod file_waits;
mod kernel_log;
mod kernel_memory;
mod machine_speed;
mod nfs_calls;
mod page_cache;
mod profile;
mod request;
mod sync;
mod syscalls;
mod worker_waits;

use crate::failure::Failure;
use crate::target::Target;
pub(crate) use request::Site;
use request::{ProbeRequest, Started};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// `probes` of `load` and `watch`: what is asked of each, by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct ProbesRequest(BTreeMap<String, Value>);

/// Reads what is asked of one probe; the error names the field.
type Read = fn(&Value) -> Result<Box<dyn ProbeRequest>, String>;

/// A probe's name in requests and records, and how what is asked of it is read.
type Listed = (&'static str, Read);

/// All of them, in the order in which they are opened.
const PROBES: [Listed; 15] = [
    ("page_cache", read::<page_cache::PageCacheRequest>),
    ("buffer_heads", read::<file_systems::BufferHeadsRequest>),
    ("throttle", read::<file_systems::ThrottleRequest>),
    ("breakdown", read::<breakdown::BreakdownRequest>),
    ("syscalls", read::<syscalls::SystemCallsRequest>),
    ("sync", read::<sync::SyncRequest>),
    ("block", read::<block::BlockRequest>),
    ("profile", read::<profile::ProfileRequest>),
    ("file_waits", read::<file_waits::FileWaitsRequest>),
    ("worker_waits", read::<worker_waits::WorkerWaitsRequest>),
    ("nfs_calls", read::<nfs_calls::NfsCallsRequest>),
    ("kernel_log", read::<kernel_log::KernelLogRequest>),
    ("kernel_memory", read::<kernel_memory::KernelMemoryRequest>),
    ("slabs", read::<kernel_memory::SlabsRequest>),
    ("machine_speed", read::<machine_speed::MachineSpeedRequest>),
];

fn read<T: ProbeRequest + DeserializeOwned + 'static>(value: &Value) -> Result<Box<dyn ProbeRequest>, String> {
    let request: T = serde_path_to_error::deserialize(value).map_err(|error| error.to_string())?;
    Ok(Box::new(request))
}

/// A probe's name in the record, and what is asked of it.
type Asked = (&'static str, Box<dyn ProbeRequest>);

/// A probe's name in the record, and the probe or why there is none.
pub(crate) type Opened = (&'static str, Started);

impl ProbesRequest {
    /// What is asked for of `probes`.
    fn asked(&self, probes: &[Listed]) -> Result<Vec<Asked>, Failure> {
        if let Some(unknown) = self.0.keys().find(|name| !probes.iter().any(|(known, _)| known == name)) {
            let known = probes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            return Err(Failure::Request(format!("the request: probes.{unknown}: no such probe; known: {known}")));
        }
        let wrong = |name, error| Failure::Request(format!("the request: probes.{name}.{error}"));
        let asked = probes.iter().filter_map(|(name, read)| {
            let value = self.0.get(*name).filter(|value| !value.is_null())?;
            Some(read(value).map(|request| (*name, request)).map_err(|error| wrong(name, error)))
        });
        asked.collect()
    }

    /// Refuses what is wrong.
    pub(crate) fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.asked(&PROBES)?.iter().try_for_each(|(_, request)| request.validate(target))
    }

    /// The same, and what only `watch` can do.
    pub(crate) fn validate_beside_load(&self, target: &Target) -> Result<(), Failure> {
        self.validate(Some(target))?;
        self.asked(&PROBES)?.iter().try_for_each(|(_, request)| request.validate_beside_load())
    }

    /// Opens what is asked for, which was validated.
    pub(crate) fn open(&self, site: &Site<'_>) -> Result<Vec<Opened>, Failure> {
        self.open_of(&PROBES, site)
    }

    fn open_of(&self, probes: &[Listed], site: &Site<'_>) -> Result<Vec<Opened>, Failure> {
        self.asked(probes)?.iter().map(|(name, request)| Ok((*name, request.open(site)?))).collect()
    }
}

#[cfg(test)]
mod tests;
