//! Probes in the kernel: what a request asks for, opened or refused. A new one has a file here and is named in the list.

mod breakdown;
mod file_systems;
mod page_cache;
mod profile;
mod server;
mod syscalls;

use crate::failure::Failure;
use plimsoll_probe::{Probe, Refusal};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// `probes` of `load` and `watch`: what is asked of each, by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct ProbesRequest(BTreeMap<String, Value>);

/// Where a probe is opened.
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct Site<'a> {
    /// Where tables of its own go.
    pub(crate) out: &'a Path,
    /// Who can tell what goes on does so each interval.
    pub(crate) live: Option<Duration>,
}

/// A probe, or why there is none.
pub(crate) type Started = Result<Box<dyn Probe>, Refusal>;

/// What a request asks of one probe.
pub(crate) trait ProbeRequest {
    /// Refuses what only `watch` can do.
    fn validate_beside_load(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Opens it. What cannot be had here is refused, not failed; what is wrong in the request fails.
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure>;
}

/// Reads what is asked of one probe; the error names the field.
type Read = fn(&Value) -> Result<Box<dyn ProbeRequest>, String>;

/// All of them, by their names in requests and records, in the order in which they are opened.
const PROBES: [(&str, Read); 8] = [
    ("page_cache", read::<page_cache::PageCacheRequest>),
    ("buffer_heads", read::<file_systems::BufferHeadsRequest>),
    ("throttle", read::<file_systems::ThrottleRequest>),
    ("breakdown", read::<breakdown::BreakdownRequest>),
    ("syscalls", read::<syscalls::SystemCallsRequest>),
    ("sync", read::<server::SyncRequest>),
    ("block", read::<server::BlockRequest>),
    ("profile", read::<profile::ProfileRequest>),
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
    /// What is asked for.
    fn asked(&self) -> Result<Vec<Asked>, Failure> {
        if let Some(unknown) = self.0.keys().find(|name| !PROBES.iter().any(|(known, _)| known == name)) {
            let known = PROBES.map(|(name, _)| name).join(", ");
            return Err(Failure::Request(format!("the request: probes.{unknown}: no such probe; known: {known}")));
        }
        let wrong = |name, error| Failure::Request(format!("the request: probes.{name}.{error}"));
        let asked = PROBES.iter().filter_map(|(name, read)| {
            let value = self.0.get(*name).filter(|value| !value.is_null())?;
            Some(read(value).map(|request| (*name, request)).map_err(|error| wrong(name, error)))
        });
        asked.collect()
    }

    /// Refuses what is wrong, and what only `watch` can do.
    pub(crate) fn validate_beside_load(&self) -> Result<(), Failure> {
        self.asked()?.iter().try_for_each(|(_, request)| request.validate_beside_load())
    }

    /// Opens what is asked for.
    pub(crate) fn open(&self, site: &Site<'_>) -> Result<Vec<Opened>, Failure> {
        self.asked()?.iter().map(|(name, request)| Ok((*name, request.open(site)?))).collect()
    }
}

#[cfg(feature = "bpf")]
fn boxed(probe: impl Probe + 'static) -> Box<dyn Probe> {
    Box::new(probe)
}

/// The program that a probe starts as its known stimulus.
#[cfg(feature = "bpf")]
fn own_program() -> Result<std::path::PathBuf, Refusal> {
    std::env::current_exe().map_err(|error| Refusal::from(format!("cannot find the agent's own executable: {error}")))
}

#[cfg(not(feature = "bpf"))]
fn without_bpf() -> Started {
    let remedy = "build it with the feature bpf, which needs clang and libelf";
    Err(Refusal::with_remedy("this agent was built without probes in the kernel", remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(probes: Value) -> String {
        let request: ProbesRequest = serde_json::from_value(probes).unwrap();
        request.validate_beside_load().unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_by_probe_and_field() {
        assert!(refused(json!({"nope": {}})).contains("probes.nope: no such probe; known: page_cache, buffer_heads"));
        let wrong = refused(json!({"breakdown": {"data_directory": "/tmp", "rows": "each"}}));
        assert!(wrong.starts_with("the request: probes.breakdown.rows: "), "{wrong}");
        let wrong = refused(json!({"sync": {"data_directory": "/tmp", "often": true}}));
        assert!(wrong.starts_with("the request: probes.sync.often: "), "{wrong}");
        let wrong = refused(json!({"breakdown": {"data_directory": "/tmp", "live": true}}));
        assert_eq!(wrong, "probes.breakdown.live: only the verb watch has live lines");
    }

    #[test]
    fn what_is_null_is_not_asked_for_and_the_rest_is_in_the_order_of_the_list() {
        let probes = json!({"sync": {"data_directory": "/tmp"}, "profile": null, "throttle": {"path": "/tmp"}});
        let request: ProbesRequest = serde_json::from_value(probes).unwrap();
        let names: Vec<&str> = request.asked().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["throttle", "sync"]);
    }
}
