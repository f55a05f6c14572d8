//! What every transaction's round trips are made of.

use crate::order_entry::answers::Replies;
use crate::order_entry::statements::{BEGIN, COMMIT};
use crate::workload::{Expect, RoundTrip};
use plimsoll_target::postgres::Connection;

/// Queues BEGIN.
pub(super) fn begin(to: &mut Connection) {
    to.queue_statement(BEGIN, |_| {});
}

/// Queues COMMIT, and gives the round trip that it ends; `statements` are those before it.
pub(super) fn commit(to: &mut Connection, statements: usize) -> RoundTrip {
    to.queue_statement(COMMIT, |_| {});
    RoundTrip { statements: statements as u32, expect: Expect::Judged, commits: true }
}

/// A round trip that changes nothing for good.
pub(super) fn trip(statements: usize) -> RoundTrip {
    RoundTrip { statements: statements as u32, expect: Expect::Judged, commits: false }
}

/// A statement concerned exactly one row.
pub(super) fn one(replies: &mut Replies, count: Option<i64>, what: &str) {
    replies.must(count == Some(1), || format!("{what}: {count:?} rows instead of one"));
}
