//! `kernel_log`: the kernel's own log beside the load.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use plimsoll_probe::KernelLog;
use serde::Deserialize;

/// `kernel_log`. `after`: the last record that an earlier segment of this boot has read; without, what is written from now on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelLogRequest {
    after: Option<u64>,
}

impl ProbeRequest for KernelLogRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(KernelLog::start(self.after).map(super::request::boxed))
    }
}
