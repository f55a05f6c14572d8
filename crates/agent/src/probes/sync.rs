//! `sync`: each fsync and fdatasync of a target's processes.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
#[cfg(feature = "bpf")]
use plimsoll_probe::sync::Syncs;
use serde::Deserialize;

/// `sync`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SyncRequest {
    #[serde(default)]
    data_directory: Aim,
}

impl ProbeRequest for SyncRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.data_directory.validate("sync", target)
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let start = |subject| Syncs::start(&subject, site.out).map(super::request::boxed);
        Ok(self.data_directory.subject(site).and_then(start))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
