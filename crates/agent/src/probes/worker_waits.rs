//! `worker_waits`: where the time of a server's processes goes that is no database.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::file_waits::FileWaits;
use serde::Deserialize;

/// `worker_waits`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct WorkerWaitsRequest {
    /// The server's first process, which has started the others.
    server: u32,
    /// That of the program behind it.
    #[serde(default)]
    program: Option<u32>,
}

impl ProbeRequest for WorkerWaitsRequest {
    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        Ok(FileWaits::of_server(self.server, self.program, site.out).map(super::request::boxed))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
