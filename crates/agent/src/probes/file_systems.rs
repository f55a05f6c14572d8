//! `buffer_heads` and `throttle`: what a file system's kernel code does for a folder.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use serde::Deserialize;
use std::path::PathBuf;

/// `buffer_heads`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct BufferHeadsRequest {
    path: PathBuf,
}

/// `throttle`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct ThrottleRequest {
    path: PathBuf,
}

#[cfg(feature = "bpf")]
impl ProbeRequest for BufferHeadsRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(plimsoll_probe::BufferHeads::start(&self.path).map(super::request::boxed))
    }
}

#[cfg(feature = "bpf")]
impl ProbeRequest for ThrottleRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(plimsoll_probe::Throttle::start(&self.path).map(super::request::boxed))
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for BufferHeadsRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for ThrottleRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
