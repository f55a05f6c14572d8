//! `summary.json`: what a segment amounts to. Unknown fields are tolerated, so that old readers read new records.

use crate::probe::ProbeReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The record's format; its history stands in `schema/record.md`.
pub const FORMAT: u32 = 1;

/// How many wrong answers are kept word for word.
pub const VERIFICATION_EXAMPLES_MAX: usize = 10;

/// The summary of one segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The workload's name.
    pub workload: String,
    /// Names of the kinds of transaction, in the order of `kind`.
    pub kinds: Vec<String>,
    /// Index of the segment's first transaction.
    pub first_index: u64,
    /// Index of the first transaction after the segment.
    pub next_index: u64,
    /// Indexes from the first to before the next that no transaction has had: what the threads of a closed loop had taken ahead at
    /// its end. Absent in records of earlier agents: none.
    #[serde(default)]
    pub indexes_left_out: u64,
    /// CLOCK_MONOTONIC when the first transaction was due.
    pub started_ns: i64,
    /// CLOCK_MONOTONIC when the last transaction had ended.
    pub ended_ns: i64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    pub epoch_minus_monotonic_ns: i64,
    /// Why the segment ended: seconds, transactions, told, signal, input_closed, misunderstood, undrained, connections_lost,
    /// record_failed.
    pub ended_by: String,
    /// planned = done + failed + skipped + lost.
    pub identity: Identity,
    /// Counts by kind.
    pub by_kind: BTreeMap<String, ByKind>,
    /// Failures by SQLSTATE; a transaction's `error` is the place here, from 1.
    pub errors: Vec<ErrorEntry>,
    /// What the generator says about itself.
    pub health: Health,
    /// Answers compared with the seed.
    pub verification: Verification,
    /// Exact integers that the consistency check needs.
    pub totals: BTreeMap<String, i64>,
    /// The server's processes, in the order of the connections.
    pub backend_pids: Vec<u32>,
    /// Transactions that the server committed for the segment beside those of the load: connecting and preparing.
    /// Absent in records of earlier agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_commits_beside: Option<u64>,
    /// Names of the devices; `device` of `device.npy` is the place here.
    pub devices: Vec<String>,
    /// Which transactions have a row in `transactions.npy`. Absent in records of earlier agents: all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
    /// Its windows, of a segment in windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// The schedule, every default written out. This and what follows: absent in records of earlier agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<serde_json::Value>,
    /// Open loops: the rate a second that the schedule asks for, the mean from the start to the end of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_rate: Option<f64>,
    /// How statements are sent: prepared, extended, simple.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the server is asked to describe the result of each statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub describe: Option<bool>,
    /// How often transactions were tried again, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Connections that broke and were opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<u64>,
    /// Round trips that the load sent.
    #[serde(default)]
    pub requests_sent: Option<u64>,
    /// What of the workload belongs to its results beside its request, such as constants that follow from the seed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, serde_json::Value>,
    /// What the probes in the kernel say, by their names: written, and not read back.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, ProbeReport>,
}

/// The windows of a segment all together; `windows.npy` has them one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// How many there were.
    pub count: u64,
    /// For how long transactions were started in them.
    pub open_ns: i64,
}

/// Which transactions have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Rows written.
    pub recorded: u64,
    /// Every transaction with an index below this has a row.
    pub all_below_index: u64,
    /// Of the others one in so many, chosen by seed and index; 1 if there are no others.
    pub sample_one_in: u64,
}

/// Every transaction that was taken is in exactly one of the other four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Taken from the plan, counted apart from the outcomes; in an open loop that ran to its end, all that were due before it.
    pub planned: u64,
    /// Ended well.
    pub done: u64,
    /// Did not happen.
    pub failed: u64,
    /// Had nothing to do, or was not begun because it was too late.
    pub skipped: u64,
    /// May or may not have happened.
    pub lost: u64,
}

impl Identity {
    /// True if the planned transactions are all accounted for.
    pub fn holds(&self) -> bool {
        self.planned == self.done + self.failed + self.skipped + self.lost
    }
}

/// Counts of one kind of transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByKind {
    /// Ended well.
    pub done: u64,
    /// Did not happen.
    pub failed: u64,
    /// Had nothing to do.
    pub skipped: u64,
    /// May or may not have happened.
    pub lost: u64,
    /// Statements sent, BEGIN and COMMIT not counted.
    pub statements: u64,
    /// How often transactions were tried again. 0 in records of earlier agents, which never did.
    #[serde(default)]
    pub retries: u64,
}

/// One reason of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// The server's five characters, or one of ours: XXVER (a wrong answer), 08006 (the connection broke).
    pub sqlstate: String,
    /// The message of the first of them.
    pub message: String,
    /// How many.
    pub count: u64,
}

/// The generator's own cost and lag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// CPU time of the agent during the segment, user.
    pub cpu_user_ns: i64,
    /// CPU time of the agent during the segment, system.
    pub cpu_system_ns: i64,
    /// CPU time of the threads that carried the load, from their first transaction to their last, user. Absent in records
    /// of earlier agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu_user_ns: Option<i64>,
    /// The same, system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu_system_ns: Option<i64>,
    /// Threads that carried the load.
    pub threads: u32,
    /// start - planned.
    pub lag_ns: LagNs,
    /// Rows missing in `transactions.npy` because the writer was behind; they are in every count.
    pub records_dropped: u64,
    /// Samples taken of the series.
    pub samples: u64,
    /// How much later than due the worst sample was taken.
    pub sample_late_ns_max: i64,
    /// The CPU that each thread of the load stayed on; empty if the kernel placed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpus: Option<Vec<u32>>,
    /// The most memory that the agent had resident, in bytes. Absent in records of earlier agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// CPUs the agent was allowed to run on.
    pub cpus_allowed: Vec<u32>,
    /// Connections that broke during the segment.
    pub connections_lost: u32,
}

/// Percentiles of the lag in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagNs {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// Answers compared with what the seed says they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Answers compared.
    pub checked: u64,
    /// Answers that differ.
    pub wrong: u64,
    /// The first few that differ.
    pub examples: Vec<WrongAnswer>,
}

/// One wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongAnswer {
    /// The transaction.
    pub index: u64,
    /// What was read and how it differs.
    pub message: String,
}
