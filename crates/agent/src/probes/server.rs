//! `sync` and `block`: what a server asks of its file system and of the devices below it.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use serde::Deserialize;
use std::path::PathBuf;

/// `sync`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct SyncRequest {
    data_directory: PathBuf,
}

/// `block`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct BlockRequest {
    data_directory: PathBuf,
}

#[cfg(feature = "bpf")]
impl ProbeRequest for SyncRequest {
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        Ok(plimsoll_probe::sync::Syncs::start(&self.data_directory, site.out).map(super::request::boxed))
    }
}

#[cfg(feature = "bpf")]
impl ProbeRequest for BlockRequest {
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        Ok(plimsoll_probe::block::Requests::start(&self.data_directory, site.out).map(super::request::boxed))
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for SyncRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for BlockRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
