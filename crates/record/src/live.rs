//! The lines that the agent prints while it watches a server: what each process did since the line before, and what it does now.

use serde::Serialize;
use std::collections::BTreeMap;

/// One line of `watch`; `schema/agent.md` defines each figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveLine {
    /// Up to when.
    pub t_ns: i64,
    /// Since the line before.
    pub lasted_ns: i64,
    /// For how much of that time transactions were followed.
    pub watched_ns: i64,
    /// The server's first process has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub server_ended: bool,
    /// Names of the wait events, by number, that no earlier line had.
    pub names: BTreeMap<u32, String>,
    /// Those that did something.
    pub processes: Vec<LiveProcess>,
}

/// What one process of the server did since the line before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveProcess {
    /// The process.
    pub pid: u32,
    /// What it is; None: the backend of a client.
    pub what: Option<&'static str>,
    /// That ended: rows of `breakdown.npy`.
    pub transactions: u64,
    /// Answered.
    pub requests: u64,
    /// On a CPU.
    pub cpu_ns: u64,
    /// Runnable, and not running.
    pub run_queue_ns: u64,
    /// Blocked.
    pub waits: Vec<LiveWait>,
    /// What is under way; None: it waits for its client's next transaction, or has ended, or is not followed.
    pub now: Option<LiveNow>,
}

/// Blocked intervals of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveWait {
    /// PostgreSQL's number of the wait event, or another, as in `breakdown_waits.npy`.
    pub event: u32,
    /// Name of the bucket.
    pub bucket: &'static str,
    /// How many began.
    pub count: u64,
    /// How long in all.
    pub ns: u64,
}

/// What a process does at the moment of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveNow {
    /// "cpu", "runnable" or "blocked".
    pub state: &'static str,
    /// On what it is blocked.
    pub event: Option<u32>,
    /// The bucket of that.
    pub bucket: Option<&'static str>,
    /// For how long, at least.
    pub since_ns: i64,
    /// The age of the transaction under way, at least; None of a process without a client.
    pub transaction_ns: Option<i64>,
}
