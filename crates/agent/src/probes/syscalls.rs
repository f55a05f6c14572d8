//! `syscalls`: the system calls of a target's processes.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
#[cfg(feature = "bpf")]
use plimsoll_probe::syscalls::{Counted, SystemCalls};
use serde::Deserialize;

/// `syscalls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct SystemCallsRequest {
    #[serde(default)]
    data_directory: Aim,
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

impl ProbeRequest for SystemCallsRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.data_directory.validate("syscalls", target)
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let counted = match self.counted {
            CountedCalls::Slices => Counted::Slices,
            CountedCalls::Files => Counted::Files,
            CountedCalls::All => Counted::All,
        };
        let start = |subject| SystemCalls::start(&subject, counted).map(super::request::boxed);
        Ok(self.data_directory.subject(site).and_then(start))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
