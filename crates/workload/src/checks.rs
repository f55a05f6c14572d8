//! What a consistency check is made of: a number that is found against one that is expected, or between two where lost
//! transactions leave it open; and the totals of a trial's segments.

use plimsoll_record::{Check, Summary};

/// `found` must be `expected`.
pub(crate) fn exact(name: String, expected: i64, found: i64) -> Check {
    Check { name, expected: expected.to_string(), found: found.to_string(), ok: expected == found }
}

/// `found` must lie between `low` and `high`, both included.
pub(crate) fn between(name: String, low: i64, high: i64, found: i64) -> Check {
    let expected = if low == high { low.to_string() } else { format!("{low} to {high}") };
    Check { name, expected, found: found.to_string(), ok: (low..=high).contains(&found) }
}

/// The sum of the total `name` over `segments`.
pub(crate) fn total(segments: &[Summary], name: &str) -> i64 {
    segments.iter().filter_map(|segment| segment.totals.get(name)).sum()
}
