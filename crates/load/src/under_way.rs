//! A transaction under way, and the row that it becomes.

use crate::shared::Shared;
use plimsoll_record::Transaction;
use plimsoll_session::Ending;

/// A transaction under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    pub(crate) index: u64,
    pub(crate) planned_ns: i64,
    pub(crate) start_ns: i64,
    pub(crate) kind: u8,
}

impl UnderWay {
    /// Its row, when it has ended on a connection with this number and this server's process.
    #[inline]
    pub(crate) fn row(
        &self,
        shared: &Shared,
        (connection, backend_pid): (u32, u32),
        ending: &Ending,
        end_ns: i64,
    ) -> Transaction {
        Transaction {
            index: self.index,
            planned_ns: self.planned_ns,
            start_ns: self.start_ns,
            end_ns,
            bytes: ending.bytes,
            connection,
            backend_pid,
            statements: ending.statements,
            requests: ending.requests,
            retries: ending.retries,
            error: ending.failure.as_ref().map_or(0, |failure| shared.errors.place(failure)),
            kind: self.kind,
            outcome: ending.outcome,
        }
    }
}
