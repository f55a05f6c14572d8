//! What a request asks of one probe, and where it is opened.

use crate::failure::Failure;
use crate::target::Target;
use plimsoll_probe::{Probe, Refusal};
use std::path::Path;
use std::time::Duration;

/// Where a probe is opened.
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct Site<'a> {
    /// Where tables of its own go.
    pub(crate) out: &'a Path,
    /// Who can tell what goes on does so each interval.
    pub(crate) live: Option<Duration>,
    /// What is watched by those that are told nothing else.
    pub(crate) target: Option<&'a Target>,
}

/// A probe, or why there is none.
pub(crate) type Started = Result<Box<dyn Probe>, Refusal>;

/// What a request asks of one probe.
pub(crate) trait ProbeRequest {
    /// Refuses what lacks something, before anything is opened; `target` is the request's.
    fn validate(&self, _target: Option<&Target>) -> Result<(), Failure> {
        Ok(())
    }

    /// Refuses what only `watch` can do.
    fn validate_beside_load(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Opens it. What cannot be had here is refused, not failed; what is wrong in the request fails.
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure>;
}

pub(super) fn boxed(probe: impl Probe + 'static) -> Box<dyn Probe> {
    Box::new(probe)
}

/// The program that a probe starts as its known stimulus.
#[cfg(feature = "bpf")]
pub(super) fn own_program() -> Result<std::path::PathBuf, Refusal> {
    std::env::current_exe().map_err(|error| Refusal::from(format!("cannot find the agent's own executable: {error}")))
}

#[cfg(not(feature = "bpf"))]
pub(super) fn without_bpf() -> Started {
    let remedy = "build it with the feature bpf, which needs clang and libelf";
    Err(Refusal::with_remedy("this agent was built without probes in the kernel", remedy))
}
