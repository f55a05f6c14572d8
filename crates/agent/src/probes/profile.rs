//! `profile`: samples of where a server's processes are on the CPUs.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::profile::{Profile, ProfileOptions};
use serde::Deserialize;
use std::path::PathBuf;

/// Samples a second; beyond this the samples are what is sampled.
#[cfg(feature = "bpf")]
const HZ_MAX: u32 = 9_999;

/// `profile`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct ProfileRequest {
    data_directory: PathBuf,
    /// Samples a second on each CPU; a rate that keeps no step with what happens so many times a second.
    #[serde(default = "ninety_nine")]
    hz: u32,
    /// Waits for the kernel's own locks, too.
    #[serde(default)]
    locks: bool,
}

fn ninety_nine() -> u32 {
    99
}

#[cfg(feature = "bpf")]
impl ProfileRequest {
    fn start(&self, site: &Site<'_>) -> Started {
        let options = ProfileOptions {
            data_directory: self.data_directory.clone(),
            hz: self.hz,
            locks: self.locks,
            out: site.out.to_owned(),
            stimulus: super::request::own_program()?,
        };
        Profile::start(&options).map(super::request::boxed)
    }
}

#[cfg(feature = "bpf")]
impl ProbeRequest for ProfileRequest {
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        if !(1..=HZ_MAX).contains(&self.hz) {
            let message = format!("probes.profile.hz: {} is not between 1 and {HZ_MAX}", self.hz);
            return Err(Failure::Request(message));
        }
        Ok(self.start(site))
    }
}

#[cfg(not(feature = "bpf"))]
impl ProbeRequest for ProfileRequest {
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
