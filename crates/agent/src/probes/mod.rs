//! Probes in the kernel: what a request asks for, opened or refused. A new one has a file here and is named in the list.

mod breakdown;
mod file_systems;
mod page_cache;
mod profile;
mod request;
mod server;
mod syscalls;

use crate::failure::Failure;
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
