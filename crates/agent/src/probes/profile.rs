//! `profile`: samples of where a target's processes are on the CPUs.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
#[cfg(feature = "bpf")]
use plimsoll_probe::profile::{Profile, ProfileOptions};
use serde::Deserialize;

/// Samples a second; beyond this the samples are what is sampled.
#[cfg(feature = "bpf")]
const HZ_MAX: u32 = 9_999;

/// `profile`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct ProfileRequest {
    #[serde(default)]
    data_directory: Aim,
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
            parent: self.data_directory.process(site)?,
            // A server's first process only starts others; a load on files is in it.
            itself: !self.data_directory.is_named(),
            hz: self.hz,
            locks: self.locks,
            out: site.out.to_owned(),
            stimulus: super::request::own_program()?,
        };
        Profile::start(&options).map(super::request::boxed)
    }
}

impl ProbeRequest for ProfileRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        self.data_directory.validate("profile", target)
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        if !(1..=HZ_MAX).contains(&self.hz) {
            let message = format!("probes.profile.hz: {} is not between 1 and {HZ_MAX}", self.hz);
            return Err(Failure::Request(message));
        }
        Ok(self.start(site))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
