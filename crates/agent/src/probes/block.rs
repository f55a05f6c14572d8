//! `block`: the requests of the disks that hold a target's files.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
#[cfg(feature = "bpf")]
use plimsoll_probe::block::Requests;
use serde::Deserialize;

/// `block`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockRequest {
    #[serde(default)]
    data_directory: Aim,
}

impl ProbeRequest for BlockRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.data_directory.validate("block", target)
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let start = |files| Requests::start(&files, site.out).map(super::request::boxed);
        Ok(self.data_directory.files(site).and_then(start))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
