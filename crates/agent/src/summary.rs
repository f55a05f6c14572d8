//! `summary.json` from what the engine, the sampler and the request say.

use crate::failure::Failure;
use crate::process::{cpus_allowed, memory_bytes_max};
use crate::sampler::Sampled;
use crate::segment::Carried;
use crate::stop::Cause;
use plimsoll_load::{CpuNs, Ended, Outcomes, epoch_minus_monotonic_ns};
use plimsoll_record::{FORMAT, Health, LagNs, Summary, VERIFICATION_EXAMPLES_MAX, Verification};
use plimsoll_schedule::Schedule;
use plimsoll_session::SessionReport;
use plimsoll_target::postgres::Mode;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What a segment was asked to be, as far as its record says so.
pub(crate) struct Asked<'a> {
    /// The workload's.
    pub(crate) name: &'static str,
    /// Names of the workload's kinds.
    pub(crate) kinds: Vec<String>,
    pub(crate) first_index: u64,
    /// `None` where each session has its own work, one piece after the other.
    pub(crate) schedule: Option<&'a Schedule>,
    pub(crate) mode: Mode,
    pub(crate) describe: bool,
    /// Threads that carry the load.
    pub(crate) threads: u32,
    pub(crate) devices: &'a [String],
    /// Commits of the server that are no transactions of the load; `None` where they cannot be known.
    pub(crate) commits_beside: Option<u64>,
    /// What of the workload belongs to the record.
    pub(crate) facts: BTreeMap<String, Value>,
}

pub(crate) fn summary(asked: Asked<'_>, carried: &Carried) -> Summary {
    let Asked { name, kinds, first_index, schedule, mode, describe, threads, devices, commits_beside, facts } = asked;
    let Carried { outcomes, cpu, sampled, windows, cause } = carried;
    let (verification, totals) = merged(&outcomes.reports);
    Summary {
        format: FORMAT,
        workload: name.to_owned(),
        by_kind: kinds.iter().cloned().zip(outcomes.by_kind.iter().copied()).collect(),
        kinds,
        first_index,
        next_index: outcomes.next_index,
        indexes_left_out: outcomes.left_out,
        started_ns: outcomes.started_ns,
        ended_ns: outcomes.ended_ns,
        epoch_minus_monotonic_ns: epoch_minus_monotonic_ns(),
        ended_by: ended_by(outcomes.ended, *cause).to_owned(),
        identity: outcomes.identity,
        errors: outcomes.errors.clone(),
        health: health(threads, outcomes, sampled, *cpu),
        verification,
        totals,
        server_commits_beside: commits_beside,
        backend_pids: outcomes.backend_pids.clone(),
        devices: devices.to_vec(),
        rows: Some(outcomes.rows),
        windows: *windows,
        schedule: schedule.and_then(|schedule| serde_json::to_value(schedule).ok()),
        planned_rate: outcomes.planned_rate,
        mode: Some(mode_name(mode).to_owned()),
        describe: Some(describe),
        retries: Some(outcomes.by_kind.iter().map(|kind| kind.retries).sum()),
        reconnects: Some(outcomes.reconnects),
        requests_sent: Some(outcomes.reports.iter().map(|report| report.requests).sum()),
        facts,
        probes: sampled.probes.clone(),
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Prepared => "prepared",
        Mode::Extended => "extended",
        Mode::Simple => "simple",
    }
}

/// Why a segment ended, in the record's words.
fn ended_by(ended: Ended, cause: Option<Cause>) -> &'static str {
    match (ended, cause) {
        (Ended::Seconds, _) => "seconds",
        (Ended::Transactions, _) => "transactions",
        (Ended::ConnectionsLost, _) => "connections_lost",
        (Ended::RecordFailed, _) => "record_failed",
        (Ended::Undrained, _) => "undrained",
        (Ended::Told, Some(Cause::Signal)) => "signal",
        (Ended::Told, Some(Cause::Misunderstood)) => "misunderstood",
        (Ended::Told, Some(Cause::InputClosed)) => "input_closed",
        (Ended::Told, Some(Cause::Told) | None) => "told",
    }
}

fn health(threads: u32, outcomes: &Outcomes, sampled: &Sampled, cpu: CpuNs) -> Health {
    let lag = |quantile: f64| outcomes.lag_ns.value_at_quantile(quantile);
    Health {
        cpu_user_ns: cpu.user,
        cpu_system_ns: cpu.system,
        load_cpu_user_ns: Some(outcomes.load_cpu_ns.user),
        load_cpu_system_ns: Some(outcomes.load_cpu_ns.system),
        threads,
        thread_cpus: Some(outcomes.cpus.iter().map(|&cpu| cpu as u32).collect()),
        lag_ns: LagNs { p50: lag(0.5), p99: lag(0.99), max: outcomes.lag_ns.max() },
        records_dropped: outcomes.records_dropped,
        memory_bytes_max: memory_bytes_max(),
        samples: sampled.samples,
        sample_late_ns_max: sampled.late_ns_max,
        cpus_allowed: cpus_allowed(),
        connections_lost: outcomes.connections_lost,
    }
}

fn merged(reports: &[SessionReport]) -> (Verification, BTreeMap<String, i64>) {
    let (mut verification, mut totals) = (Verification::default(), BTreeMap::new());
    for report in reports {
        verification.checked += report.verification.checked;
        verification.wrong += report.verification.wrong;
        verification.examples.extend(report.verification.examples.iter().cloned());
        for (name, value) in &report.totals {
            *totals.entry((*name).to_owned()).or_insert(0) += value;
        }
    }
    verification.examples.truncate(VERIFICATION_EXAMPLES_MAX);
    (verification, totals)
}

/// Writes the file `name` of the folder `out`.
pub(crate) fn write_json(out: &Path, name: &str, content: &impl Serialize) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Record(format!("{name} cannot be written: {error}"));
    let json = serde_json::to_vec_pretty(content).map_err(|error| failed(error.into()))?;
    std::fs::write(out.join(name), json).map_err(failed)
}

/// The exit that a segment deserves, once everything is written.
pub(crate) fn verdict(summary: &Summary, ended: Ended, cause: Option<Cause>) -> Result<(), Failure> {
    let taken = summary.next_index - summary.first_index - summary.indexes_left_out;
    if !summary.identity.holds() || summary.identity.planned != taken {
        return Err(Failure::Identity(format!("{:?}, {taken} indexes taken", summary.identity)));
    }
    match (ended, cause) {
        (Ended::ConnectionsLost, _) => {
            let reason = summary.errors.last().map_or("", |error| error.message.as_str());
            Err(Failure::Target(format!("every connection was lost: {reason}")))
        }
        (Ended::Undrained, _) => Err(Failure::Target("a window did not drain in time: no reply".to_owned())),
        (Ended::Told, Some(Cause::Misunderstood)) => {
            let message = "a line `window` cannot be read, or came before the previous window was reported";
            Err(Failure::Request(message.to_owned()))
        }
        (Ended::Told, Some(Cause::Signal)) => Err(Failure::Ended("a signal")),
        (Ended::Told, Some(Cause::InputClosed)) => Err(Failure::Ended("the end of standard input")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::{Identity, WrongAnswer};

    /// Of ten transactions from index 90 on, of which so many are done and two failed.
    fn segment(done: u64, next_index: u64) -> Summary {
        let golden = include_str!("../../../tests/golden/tiny/trials/0001/measure/summary.json");
        let identity = Identity { planned: 10, done, failed: 2, skipped: 0, lost: 0 };
        Summary { first_index: 90, next_index, identity, ..serde_json::from_str(golden).unwrap() }
    }

    #[test]
    fn what_is_unaccounted_for_ends_with_an_error() {
        let code = |summary: &Summary| verdict(summary, Ended::Seconds, None).err().map(|failure| failure.exit_code());
        assert_eq!(code(&segment(8, 100)), None);
        assert_eq!(code(&segment(7, 100)), Some(70), "one is in no outcome");
        assert_eq!(code(&segment(8, 101)), Some(70), "one was taken and not counted");
        let lost = verdict(&segment(7, 100), Ended::ConnectionsLost, None).unwrap_err();
        assert_eq!(lost.exit_code(), 70, "whatever else went wrong");
    }

    #[test]
    fn what_sessions_say_is_summed() {
        let report = |checked, wrong, delta| {
            let answer = |index| WrongAnswer { index, message: "balance differs".to_owned() };
            let verification = Verification { checked, wrong, examples: (0..wrong).map(answer).collect() };
            SessionReport { requests: 1, verification, totals: vec![("delta", delta)] }
        };
        let (verification, totals) = merged(&[report(100, 7, -5), report(50, 6, 8), report(20, 0, 1)]);
        assert_eq!((verification.checked, verification.wrong), (170, 13));
        assert_eq!(verification.examples.len(), VERIFICATION_EXAMPLES_MAX);
        assert_eq!(totals, BTreeMap::from([("delta".to_owned(), 4)]));
    }
}
