//! `kernel_memory` and `slabs`: what the kernel holds for itself, read every few minutes.

use super::request::{ProbeRequest, Site, Started, boxed};
use crate::failure::Failure;
use plimsoll_probe::{KernelMemory, ProbeError, Refusal, Slabs};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

const PROC: &str = "/proc";

/// `kernel_memory`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelMemoryRequest {
    every_seconds: u32,
}

/// `slabs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlabsRequest {
    every_seconds: u32,
}

impl ProbeRequest for KernelMemoryRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        let every = Duration::from_secs(self.every_seconds.into());
        Ok(KernelMemory::open(Path::new(PROC), every).map(boxed).map_err(refusal))
    }
}

impl ProbeRequest for SlabsRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        let every = Duration::from_secs(self.every_seconds.into());
        Ok(Slabs::open(Path::new(PROC), every).map(boxed).map_err(refusal))
    }
}

fn refusal(error: ProbeError) -> Refusal {
    Refusal::with_remedy(error.to_string(), "run as root: the file is readable by root alone")
}
