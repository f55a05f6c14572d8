//! Requests: their types, their defaults and what is refused, each by the name of the field.

use crate::failure::Failure;
use crate::probes::ProbesRequest;
use crate::target::Target;
use plimsoll_schedule::Schedule;
use plimsoll_target::postgres::{Mode, Protocol};
use plimsoll_workload::decision_support::refresh::Function;
use plimsoll_workload::{AnyWorkload, workload_of};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

const CLIENTS_MAX: u32 = 100_000;
const THREADS_MAX: u32 = 1_024;
const RETRIES_MAX: u32 = 1_000_000;
/// Leaves room for every index of a segment, and for as many again.
const FIRST_INDEX_MAX: u64 = 1 << 62;
/// Rows of transactions.npy, unless the request says otherwise: close to a gigabyte.
const ROWS_MAX: u64 = 20_000_000;
const SAMPLE_ONE_IN: u64 = 100;
const INTERVAL_MS_MIN: u64 = 10;
/// A day.
const INTERVAL_MS_MAX: u64 = 86_400_000;

/// `describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Describe {
    #[serde(default, rename = "target")]
    _target: Option<Value>,
    pub(crate) workload: Value,
    #[serde(default)]
    pub(crate) mode: Mode,
}

/// `populate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Populate {
    pub(crate) target: Target,
    pub(crate) workload: Value,
    #[serde(default = "two")]
    pub(crate) parallel: u32,
}

fn two() -> u32 {
    2
}

/// When a segment ends.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopAt {
    #[serde(default)]
    pub(crate) seconds: Option<f64>,
    #[serde(default)]
    pub(crate) transactions: Option<u64>,
}

/// The group that the server runs in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupRequest {
    pub(crate) version: u32,
    pub(crate) path: PathBuf,
    #[serde(default)]
    pub(crate) swap_path: Option<PathBuf>,
    /// What its processes read from devices, too.
    #[serde(default)]
    pub(crate) reads: bool,
}

/// What is sampled, and how often.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    #[serde(default = "a_second")]
    pub(crate) interval_ms: u64,
    #[serde(default)]
    pub(crate) devices: Vec<String>,
    #[serde(default)]
    pub(crate) group: Option<GroupRequest>,
}

fn a_second() -> u64 {
    1_000
}

impl Default for Sample {
    fn default() -> Self {
        Self { interval_ms: a_second(), devices: Vec::new(), group: None }
    }
}

impl Sample {
    /// Checks what the types cannot.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        interval("sample.interval_ms", self.interval_ms)
    }
}

/// `load`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    pub(crate) target: Target,
    pub(crate) workload: Value,
    pub(crate) clients: u32,
    #[serde(default = "one")]
    pub(crate) threads: u32,
    #[serde(default)]
    pub(crate) first_index: u64,
    #[serde(default)]
    pub(crate) schedule: Schedule,
    #[serde(default)]
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) describe: bool,
    #[serde(default)]
    pub(crate) retries_max: u32,
    #[serde(default)]
    pub(crate) reconnect: bool,
    #[serde(default = "rows_max")]
    pub(crate) rows_max: u64,
    #[serde(default = "sample_one_in")]
    pub(crate) sample_one_in: u64,
    #[serde(default = "yes")]
    pub(crate) pin_threads: bool,
    /// Whether transactions are started in windows only.
    #[serde(default)]
    pub(crate) windows: bool,
    #[serde(default)]
    pub(crate) stop: StopAt,
    pub(crate) out: PathBuf,
    #[serde(default)]
    pub(crate) sample: Sample,
    #[serde(default)]
    pub(crate) probes: Option<ProbesRequest>,
}

fn one() -> u32 {
    1
}

fn rows_max() -> u64 {
    ROWS_MAX
}

fn sample_one_in() -> u64 {
    SAMPLE_ONE_IN
}

fn yes() -> bool {
    true
}

impl Load {
    /// How statements are sent.
    pub(crate) fn protocol(&self) -> Protocol {
        Protocol { mode: self.mode, describe: self.describe }
    }

    /// Checks what the types cannot.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        let refuse = |text: String| Err(Failure::Request(text));
        if !(1..=CLIENTS_MAX).contains(&self.clients) {
            return refuse(format!("clients: {} is not between 1 and {CLIENTS_MAX}", self.clients));
        }
        if !(1..=THREADS_MAX.min(self.clients)).contains(&self.threads) {
            return refuse(format!("threads: {} is not between 1 and the number of clients", self.threads));
        }
        if self.first_index > FIRST_INDEX_MAX {
            return refuse(format!("first_index: {} is above {FIRST_INDEX_MAX}", self.first_index));
        }
        if self.stop.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds < 1e9)) {
            return refuse("stop.seconds: must be above 0".to_owned());
        }
        if self.stop.transactions == Some(0) {
            return refuse("stop.transactions: must be above 0".to_owned());
        }
        self.sample.validate()?;
        if self.retries_max > RETRIES_MAX {
            return refuse(format!("retries_max: {} is above {RETRIES_MAX}", self.retries_max));
        }
        if self.sample_one_in == 0 {
            return refuse("sample_one_in: must be above 0".to_owned());
        }
        self.probes.as_ref().map_or(Ok(()), |probes| probes.validate_beside_load(&self.target))?;
        folder("out", &self.out)?;
        self.schedule.validate().map_err(|impossible| Failure::Request(impossible.0))
    }
}

/// `watch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    /// What those probes watch that are told nothing else.
    #[serde(default)]
    pub(crate) target: Option<Target>,
    pub(crate) out: PathBuf,
    #[serde(default = "a_second")]
    pub(crate) interval_ms: u64,
    pub(crate) probes: ProbesRequest,
    /// Whether the series of the host are taken, too.
    #[serde(default)]
    pub(crate) host: bool,
    /// Those of these devices.
    #[serde(default)]
    pub(crate) devices: Vec<String>,
    /// And that of this group.
    #[serde(default)]
    pub(crate) group: Option<GroupRequest>,
}

impl Watch {
    /// Checks what the types cannot.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        interval("interval_ms", self.interval_ms)?;
        self.probes.validate(self.target.as_ref())?;
        folder("out", &self.out)
    }
}

fn interval(field: &str, ms: u64) -> Result<(), Failure> {
    match (INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(&ms) {
        true => Ok(()),
        false => Err(Failure::Request(format!("{field}: {ms} is not between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX}"))),
    }
}

/// Refuses a `field` that names no folder.
pub(crate) fn folder(field: &str, path: &Path) -> Result<(), Failure> {
    match path.is_dir() {
        true => Ok(()),
        false => Err(Failure::Request(format!("{field}: {} is not a folder", path.display()))),
    }
}

/// `check`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) target: Target,
    pub(crate) workload: Value,
    pub(crate) segments: Vec<PathBuf>,
}

/// `generate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generate {
    #[serde(default, rename = "target")]
    _target: Option<Value>,
    pub(crate) workload: Value,
    #[serde(default)]
    table: Option<String>,
    #[serde(default)]
    set: Option<u64>,
    #[serde(default)]
    out: Option<PathBuf>,
    #[serde(default)]
    parts: Vec<Part>,
}

/// A packet capture, and the folder for what is in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Import {
    pub(crate) file: PathBuf,
    pub(crate) out: PathBuf,
}

/// One of the texts that `generate` writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) table: String,
    /// The refresh set of which the part for `table` is written; without it the table as loaded.
    #[serde(default)]
    pub(crate) set: Option<u64>,
    pub(crate) out: PathBuf,
}

impl Generate {
    /// What is to be written, in its order: `parts`, or the one that the request names itself.
    pub(crate) fn parts(&self) -> Result<Vec<Part>, Failure> {
        match (&self.table, &self.out, self.set, self.parts.as_slice()) {
            (Some(table), Some(out), set, []) => Ok(vec![Part { table: table.clone(), set, out: out.clone() }]),
            (None, None, None, [_, ..]) => Ok(self.parts.clone()),
            _ => Err(Failure::Request("table: give table and out (and set), or parts".to_owned())),
        }
    }
}

/// `refresh`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refresh {
    pub(crate) target: Target,
    pub(crate) workload: Value,
    #[serde(default = "pair")]
    pub(crate) functions: Vec<Function>,
    #[serde(default = "one")]
    pub(crate) times: u32,
}

fn pair() -> Vec<Function> {
    Function::ALL.to_vec()
}

/// `drop`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drop {
    pub(crate) target: Target,
    pub(crate) workload: Value,
}

/// Reads a request; the error names the field.
pub(crate) fn parse<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_str(line);
    serde_path_to_error::deserialize(&mut json).map_err(|error| Failure::Request(format!("the request: {error}")))
}

/// The workload of a request; `mode` is how its statements will be sent.
pub(crate) fn workload(value: &Value, mode: Mode) -> Result<Box<dyn AnyWorkload>, Failure> {
    workload_of(value, mode).map_err(Failure::Request)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = r#""target": {"host": "/tmp", "port": 5432, "user": "u", "dbname": "d"}"#;
    const WORKLOAD: &str = r#""workload": {"name": "wpi_orders", "size_bytes": 67108864, "seed": 1}"#;

    fn load(more: &str) -> Result<Load, Failure> {
        let request: Load = parse(&format!(r#"{{{TARGET}, {WORKLOAD}, "out": "/tmp", "clients": 1{more}}}"#))?;
        request.validate().map(|()| request)
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let request = load("").unwrap();
        assert_eq!((request.threads, request.first_index, request.sample.interval_ms), (1, 0, 1000));
        assert_eq!((request.mode, request.describe, request.retries_max), (Mode::Prepared, false, 0));
        assert!(request.pin_threads && !request.windows);
        assert_eq!((request.reconnect, request.rows_max, request.sample_one_in), (false, 20_000_000, 100));
    }

    #[test]
    fn wrong_requests_name_the_field() {
        for (more, field) in [
            (r#", "client": 2"#, "client"),
            (r#", "threads": 2"#, "threads"),
            (r#", "threads": "x""#, "threads"),
            (r#", "stop": {"seconds": 0}"#, "stop.seconds"),
            (r#", "stop": {"transactions": 0}"#, "stop.transactions"),
            (r#", "stop": {"minutes": 1}"#, "minutes"),
            (r#", "sample": {"interval_ms": 1}"#, "sample.interval_ms"),
            (r#", "sample": {"interval_ms": 18446744073709551615}"#, "sample.interval_ms"),
            (r#", "sample": {"group": {"version": 2}}"#, "sample.group"),
            (r#", "schedule": {"kind": "closed", "think_ms": -1}"#, "schedule.think_ms"),
            (r#", "schedule": {"kind": "sawtooth"}"#, "sawtooth"),
            (r#", "schedule": {"kind": "poisson"}"#, "rate"),
            (r#", "schedule": {"kind": "poisson", "rate": 0}"#, "schedule.rate"),
            (r#", "schedule": {"kind": "constant", "rate": 1, "late_limit": 2}"#, "late_limit"),
            (r#", "mode": "quick""#, "mode"),
            (r#", "describe": 1"#, "describe"),
            (r#", "retries_max": -1"#, "retries_max"),
            (r#", "retries_max": 10000000"#, "retries_max"),
            (r#", "first_index": 18446744073709551615"#, "first_index"),
            (r#", "pin_threads": 2"#, "pin_threads"),
            (r#", "reconnect": "yes""#, "reconnect"),
            (r#", "windows": {}"#, "windows"),
            (r#", "rows_max": -1"#, "rows_max"),
            (r#", "sample_one_in": 0"#, "sample_one_in"),
            (r#", "probes": {"breakdown": {"data_directory": "/tmp", "live": true}}"#, "probes.breakdown.live"),
        ] {
            let error = load(more).unwrap_err().to_string();
            assert!(error.contains(field), "{more}: {error}");
        }
    }

    #[test]
    fn wrong_workloads_name_the_field() {
        for (text, field) in [
            (r#"{"name": "dbt2"}"#, "workload.name"),
            (r#"{"name": "bank"}"#, "scale"),
            (r#"{"name": "bank", "scale": 0, "seed": 1}"#, "workload.scale"),
            (r#"{"name": "script", "scripts": [], "seed": 1, "client_count": 1}"#, "workload.scripts"),
            (
                r#"{"name": "script", "scripts": [{"name": "a", "text": "\\foo"}], "seed": 1, "client_count": 1}"#,
                "script a, line 1",
            ),
            (r#"{"name": "wpi_orders", "seed": 1}"#, "size_bytes"),
            (r#"{"name": "wpi_orders", "seed": -1, "size_bytes": 67108864}"#, "workload.seed"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 1}"#, "workload.size_bytes"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 67108864, "draws": "mix"}"#, "draws"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 67108864, "draw": "deck"}"#, "workload.draw"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 67108864, "keys": {"zipf": 0}}"#, "workload.keys.zipf"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 67108864, "mix": {}}"#, "workload.mix"),
            (r#"{"name": "wpi_orders", "seed": 1, "size_bytes": 67108864, "mix": {"stok": 1}}"#, "stok"),
        ] {
            let error = workload(&serde_json::from_str(text).unwrap(), Mode::Prepared).err().unwrap().to_string();
            assert!(error.contains(field), "{text}: {error}");
        }
    }
}
