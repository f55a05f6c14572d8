//! `watch`: the probes in the kernel alone, beside whatever runs.

use crate::failure::Failure;
use crate::output::{self, Event};
use crate::request::Watch;
use crate::sampler::{Latest, Sampled, Sampler};
use crate::stop::{self, Cause};
use plimsoll_load::monotonic_ns;
use plimsoll_record::ProbeReport;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const PROGRESS_EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Probes<'a> {
    probes: &'a BTreeMap<String, ProbeReport>,
}

/// The same at the end.
#[derive(Serialize)]
struct Watched {
    probes: BTreeMap<String, ProbeReport>,
    samples: u64,
    sample_late_ns_max: i64,
}

#[derive(Serialize)]
struct Progress {
    t_ns: i64,
    #[serde(flatten)]
    latest: Latest,
}

pub(crate) fn watch(request: &Watch) -> Result<(), Failure> {
    request.validate()?;
    let (tell, heard) = channel();
    stop::watch(&tell, |cause| cause, |_| None)?;
    let mut sampler = Sampler::of_watch(request)?;
    let reports = sampler.reports();
    let running = sampler.start().map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
    output::line(&Event { event: "watching", value: &Probes { probes: &reports } });
    let cause = loop {
        match heard.recv_timeout(PROGRESS_EVERY) {
            Ok(cause) => break cause,
            Err(RecvTimeoutError::Timeout) => {
                output::event("progress", Progress { t_ns: monotonic_ns(), latest: running.latest() });
            }
            Err(RecvTimeoutError::Disconnected) => break Cause::InputClosed,
        }
    };
    let (Sampled { samples, late_ns_max: sample_late_ns_max, probes }, _) =
        running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;
    output::line(&Event { event: "watched", value: &Watched { probes, samples, sample_late_ns_max } });
    match cause {
        // A watch has no windows that could be asked for in wrong words.
        Cause::Told | Cause::Misunderstood => Ok(()),
        Cause::Signal => Err(Failure::Ended("a signal")),
        Cause::InputClosed => Err(Failure::Ended("the end of standard input")),
    }
}
