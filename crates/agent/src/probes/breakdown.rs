//! `breakdown`: where the time of each transaction of a server goes.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::breakdown::{Breakdown, BreakdownOptions, Live};
use serde::Deserialize;
use std::path::PathBuf;

/// `breakdown`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct BreakdownRequest {
    data_directory: PathBuf,
    #[serde(default)]
    rows: BreakdownRows,
    /// What the programs may take of the machine's CPU time; without it every transaction is recorded.
    budget: Option<f64>,
    /// What goes on is told line by line, and what is under way at the end has a row.
    #[serde(default)]
    live: bool,
    /// Waits are told by system call and file, as for a server that does not tell its wait events.
    #[serde(default)]
    by_system_call: bool,
}

/// What a row of the breakdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BreakdownRows {
    /// A block, or a request outside of one.
    #[default]
    Transactions,
    /// A request.
    Requests,
}

#[cfg(feature = "bpf")]
impl BreakdownRequest {
    fn start(&self, site: &Site<'_>) -> Started {
        let tell: fn(&plimsoll_record::LiveLine) = |line| crate::output::event("breakdown", line);
        let options = BreakdownOptions {
            data_directory: self.data_directory.clone(),
            by_request: self.rows == BreakdownRows::Requests,
            budget: self.budget,
            by_system_call: self.by_system_call,
            out: site.out.to_owned(),
            stimulus: super::request::own_program()?,
            live: site.live.filter(|_| self.live).map(|interval| Live { interval, tell }),
        };
        Breakdown::start(&options).map(super::request::boxed)
    }
}

impl ProbeRequest for BreakdownRequest {
    fn validate_beside_load(&self) -> Result<(), Failure> {
        match self.live {
            true => Err(Failure::Request("probes.breakdown.live: only the verb watch has live lines".to_owned())),
            false => Ok(()),
        }
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        if let Some(share) = self.budget.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            let message = format!("probes.breakdown.budget: {share} is not a share of CPU time above 0, up to 1");
            return Err(Failure::Request(message));
        }
        Ok(self.start(site))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
