//! `machine_speed`: how fast the machine itself is while the load runs.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
use plimsoll_probe::MachineSpeed;
use serde::Deserialize;
use std::time::Duration;

/// More often would take of the machine what is to be measured.
const EVERY_MS_MIN: u32 = 50;

/// `machine_speed`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineSpeedRequest {
    #[serde(default = "quarter_of_a_second")]
    every_ms: u32,
}

fn quarter_of_a_second() -> u32 {
    250
}

impl ProbeRequest for MachineSpeedRequest {
    fn validate(&self, _: Option<&Target>) -> Result<(), Failure> {
        if self.every_ms < EVERY_MS_MIN {
            let message = format!("probes.machine_speed.every_ms: {} is below {EVERY_MS_MIN}", self.every_ms);
            return Err(Failure::Request(message));
        }
        Ok(())
    }

    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        let every = Duration::from_millis(self.every_ms.into());
        Ok(MachineSpeed::start(every).map(super::request::boxed))
    }
}
