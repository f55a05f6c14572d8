//! What a workload is to a [`Conversation`](crate::Conversation): transactions as round trips on PostgreSQL.
//!
//! The fact that constrains it: what transaction i does is a pure function of (seed, i). What one connection keeps, its
//! [`Workload::Client`], is only a place to hold the transaction under way (and, for scripts, their variables).

use crate::data_set::DataSet;
use bytes::BytesMut;
use plimsoll_record::{Check, Outcome};
use plimsoll_session::{Begun, Failure, Pause};
use plimsoll_target::postgres::{Client as Administrator, Connection, Form, Query};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A statement of a workload, for people and for `describe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// What it is called in reports.
    pub name: Cow<'static, str>,
    /// Its text, with `$1`... for parameters.
    pub sql: Cow<'static, str>,
}

impl Statement {
    /// A statement that is known when the agent is built.
    pub const fn fixed(name: &'static str, sql: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), sql: Cow::Borrowed(sql) }
    }
}

/// What a round trip must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly one row: that of `key` in `table`, every column in order, as [`Workload::expected_row`] gives it.
    Row {
        /// The table's number.
        table: u8,
        /// The row's key.
        key: i64,
    },
    /// Exactly one row, from the last statement; [`Workload::row`] hears of it.
    OneRow,
    /// Any number of rows; [`Workload::row`] hears of each.
    AnyRows,
    /// What the workload says in the end: [`Workload::row`] hears of each row, [`Workload::completed`] of the end of each
    /// statement, and [`Workload::verdict`] is asked when all has been heard.
    Judged,
    /// A command tag, such as `INSERT 0 1`.
    Tag(&'static [u8]),
    /// No error; whatever is answered is passed over.
    Nothing,
}

/// A round trip that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Statements in it, BEGIN and COMMIT not counted.
    pub statements: u32,
    /// What it must answer.
    pub expect: Expect,
    /// True if the server may have changed something for good once it has read it.
    pub commits: bool,
}

/// The next step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Statements were queued, without their Sync; their replies are awaited before the next step.
    RoundTrip(RoundTrip),
    /// Nothing is to be sent for so long, what was queued included.
    Rest {
        /// How long, in nanoseconds.
        ns: i64,
    },
    /// All of the transaction is done. A block that is still open makes it fail.
    Complete,
    /// The transaction cannot go on, for a reason of the workload's own. It is rolled back if a block is open, and not tried
    /// again.
    Failed(Failure),
}

/// What was acknowledged, compared with what the tables hold.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerComparison {
    /// Whether it is all there, and once.
    pub checks: Vec<Check>,
    /// The whole of it.
    pub document: Value,
}

/// Transactions on PostgreSQL; shared by all connections.
pub trait Workload: Send + Sync {
    /// What one connection keeps, also between transactions.
    type Client: Send;

    /// What requests and records call it.
    const NAME: &'static str;

    /// The tables that are its own; `None` if it works on whatever is there.
    fn data(&self) -> Option<&dyn DataSet> {
        None
    }

    /// What belongs to the results beside the request.
    fn facts(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    /// Whether its users pause, which only a closed loop lets them.
    fn is_paced(&self) -> bool {
        false
    }

    /// Compares what was acknowledged in the segments of `summaries` with the tables in the search path; `None` if nothing was
    /// written down.
    ///
    /// # Errors
    /// When a file of the segments or the server cannot be read.
    fn compare_ledgers(
        &self,
        _client: &mut Administrator,
        _summaries: &[PathBuf],
    ) -> Result<Option<LedgerComparison>, String> {
        Ok(None)
    }

    /// Names of the kinds of transaction; [`Begun::kind`] is the place here.
    fn kinds(&self) -> Vec<String>;

    /// The statements, for people; [`Connection::queue_statement`] takes their places here.
    fn statements(&self) -> Vec<Statement>;

    /// The statements as connections run them, in the same order. By default each is prepared when a connection is opened,
    /// with binary values both ways.
    fn queries(&self) -> Vec<Query> {
        self.statements().iter().map(|statement| Query::new(&statement.sql)).collect()
    }

    /// Server settings of the connections that carry the load.
    fn session_settings(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Hears of the folder of the segment's record before any connection is opened, for workloads that write there.
    ///
    /// # Errors
    /// When a file cannot be made there.
    fn record_in(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    /// What connection `number` keeps, as it is before its first transaction.
    fn client(&self, number: u32) -> Self::Client;

    /// The pause before the next transaction of a closed loop, as [`plimsoll_session::Session::pause`] has it.
    fn pause(&self, _client: &mut Self::Client, _after: u64) -> Pause {
        Pause::default()
    }

    /// Makes transaction `index` the one that `client` performs.
    fn begin(&self, client: &mut Self::Client, index: u64) -> Begun;

    /// Sets `client` back to the start of its transaction, with the same draws, to try it once more.
    fn again(&self, client: &mut Self::Client);

    /// Takes the next step of the transaction.
    fn next(&self, client: &mut Self::Client, connection: &mut Connection) -> Next;

    /// Hears of the body of a RowDescription: rows of a new result follow. Only statements that are described, and all
    /// statements in simple mode, have one.
    fn described(&self, _client: &mut Self::Client, _body: &[u8]) {}

    /// Hears of a row's body where [`Expect::OneRow`], [`Expect::AnyRows`] or [`Expect::Judged`] is awaited.
    fn row(&self, _client: &mut Self::Client, _body: &[u8]) {}

    /// Hears that a statement was answered, by its command tag, where [`Expect::Judged`] is awaited.
    fn completed(&self, _client: &mut Self::Client, _tag: &[u8]) {}

    /// What is wrong with the round trip that was answered, where [`Expect::Judged`] was awaited.
    fn verdict(&self, _client: &Self::Client) -> Option<String> {
        None
    }

    /// Appends the row that [`Expect::Row`] names, in the form of a DataRow with values in `form`. For workloads that await
    /// such rows.
    fn expected_row(&self, _table: u8, _key: i64, _form: Form, _out: &mut BytesMut) {}

    /// Names `table` and its columns, for messages about such rows.
    fn columns(&self, _table: u8) -> (&'static str, Vec<&'static str>) {
        ("", Vec::new())
    }

    /// Names of the totals.
    fn total_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Adds the transaction of `client`, which ended, to `totals`, in the order of the names.
    fn tally(&self, _client: &Self::Client, _outcome: Outcome, _totals: &mut [i64]) {}
}
