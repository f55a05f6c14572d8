//! System calls of a server's processes, by class of file and kind, in `summary.json`.

use serde::{Deserialize, Serialize};

/// All calls of one kind on files of one class; units are in the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTotals {
    /// Calls that returned.
    pub count: u64,
    /// Where they were counted in slices of time: the standard error of that number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_se: Option<u64>,
    /// Of those the ones that failed.
    pub errors: u64,
    /// Of reads and writes: what they asked for.
    pub asked_bytes: u64,
    /// Of reads and writes: what they were given or rid of.
    pub returned_bytes: u64,
    /// From the entry to the end, in all.
    pub ns: u64,
    /// Of reads and writes of the server's files: those that began where the last one of any process ended.
    pub sequential: u64,
    /// Calls that took 2^n to 2^(n+1) - 1 ns, by n; the first also those that took none. Cut behind the last that is not 0.
    pub ns_log2: Vec<u64>,
    /// Of reads and writes that did not fail: those that returned nothing, then those of 2^(n-1) to 2^n - 1 bytes, by n.
    pub bytes_log2: Vec<u64>,
}

/// All calls of one number that are not told by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCalls {
    /// Calls that returned.
    pub count: u64,
    /// Of those the ones that failed.
    pub errors: u64,
    /// From the entry to the end, in all: the mean of those that were timed, times their count.
    pub ns: u64,
}
