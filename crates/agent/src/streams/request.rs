//! The request of `streams`: its defaults and what is refused, each by the name of the field.

use crate::failure::Failure;
use crate::probes::ProbesRequest;
use crate::request::{Sample, folder};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// As many as there are refresh sets.
const STREAMS_MAX: u32 = 999;
/// The server counts it in milliseconds, in 31 bits.
const TIMEOUT_SECONDS_MIN: f64 = 0.001;
const TIMEOUT_SECONDS_MAX: f64 = 2_147_483.0;

/// Which test it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Test {
    /// One session: RF1, the queries of stream 0, RF2.
    Power,
    /// Several streams of queries at once, and one of as many pairs of refresh functions.
    Throughput,
}

/// As many streams as a test may have.
pub(super) fn check_streams(test: Test, streams: Option<u32>) -> Result<(), Failure> {
    let refuse = |text: String| Err(Failure::Request(text));
    match (test, streams) {
        (Test::Power, None | Some(1)) | (Test::Throughput, Some(1..=STREAMS_MAX)) => Ok(()),
        (Test::Power, Some(_)) => refuse("streams: the power test is one stream".to_owned()),
        (Test::Throughput, given) => {
            let given = given.map_or_else(|| "nothing".to_owned(), |count| count.to_string());
            refuse(format!("streams: {given} is not between 1 and {STREAMS_MAX}"))
        }
    }
}

/// `streams`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Streams {
    pub(super) target: Target,
    pub(super) workload: Value,
    pub(super) test: Test,
    #[serde(default)]
    streams: Option<u32>,
    #[serde(default = "yes")]
    pub(super) refresh: bool,
    #[serde(default)]
    pub(super) timeout_seconds: Option<f64>,
    #[serde(default)]
    pub(super) explain: bool,
    pub(super) out: PathBuf,
    #[serde(default)]
    pub(super) sample: Sample,
    #[serde(default)]
    pub(super) probes: Option<ProbesRequest>,
}

fn yes() -> bool {
    true
}

impl Streams {
    /// How many streams of queries there are.
    pub(super) fn streams(&self) -> u32 {
        self.streams.unwrap_or(1)
    }

    /// What a query may take, in whole milliseconds, as the server counts it.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.map(|seconds| Duration::from_millis((seconds * 1e3).round() as u64))
    }

    /// Checks what the types cannot.
    pub(super) fn validate(&self) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Request(text));
        check_streams(self.test, self.streams)?;
        let allowed = TIMEOUT_SECONDS_MIN..=TIMEOUT_SECONDS_MAX;
        if let Some(seconds) = self.timeout_seconds.filter(|seconds| !allowed.contains(seconds)) {
            let text = format!("{seconds} is not between {TIMEOUT_SECONDS_MIN} and {TIMEOUT_SECONDS_MAX}");
            return refuse(format!("timeout_seconds: {text}"));
        }
        self.sample.validate()?;
        self.target.postgresql()?;
        self.probes.as_ref().map_or(Ok(()), |probes| probes.validate_beside_load(&self.target))?;
        folder("out", &self.out)
    }
}
