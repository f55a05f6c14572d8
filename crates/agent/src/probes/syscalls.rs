//! `syscalls`: the system calls of a server.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::syscalls::{Counted, SystemCalls};
use serde::Deserialize;
use std::path::PathBuf;

/// `syscalls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct SystemCallsRequest {
    data_directory: PathBuf,
    #[serde(default)]
    counted: CountedCalls,
}

/// Which calls are counted one by one, and not in slices of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CountedCalls {
    #[default]
    Slices,
    Files,
    All,
}

#[cfg(feature = "bpf")]
impl ProbeRequest for SystemCallsRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        let counted = match self.counted {
            CountedCalls::Slices => Counted::Slices,
            CountedCalls::Files => Counted::Files,
            CountedCalls::All => Counted::All,
        };
        Ok(SystemCalls::start(&self.data_directory, counted).map(super::request::boxed))
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for SystemCallsRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
