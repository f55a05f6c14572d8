//! `nfs_calls`: each call of NFS for a target's files, from the packets on the wire.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started, boxed};
use crate::failure::Failure;
use crate::target::Target;
use plimsoll_probe::nfs_calls::NfsCalls;
use serde::Deserialize;

/// `nfs_calls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NfsCallsRequest {
    #[serde(default)]
    data_directory: Aim,
}

impl ProbeRequest for NfsCallsRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.data_directory.validate("nfs_calls", target)
    }

    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        Ok(self.data_directory.files(site).and_then(|files| NfsCalls::start(&files, site.out)).map(boxed))
    }
}
