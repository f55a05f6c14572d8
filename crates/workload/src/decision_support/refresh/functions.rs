//! RF1 and RF2 on PostgreSQL: each is one transaction, as in DBT-3.
//!
//! - A set is generated before its function begins, as the files of DBT-3 are, so that the generator is in no time that counts.
//! - Each function counts what it did, and rolls back where that is not what its set says.

use super::sets::{RefreshSet, SETS_MAX};
use crate::data_set::DataSetError;
use crate::decision_support::ScaleFactor;
use crate::decision_support::function::Function;
use bytes::BytesMut;
use plimsoll_target::postgres::{Client, Error, put_row};
use serde::Serialize;

/// Rows are handed to COPY in parts of so many bytes.
const MESSAGE_BYTES: usize = 128 << 10;

/// A refresh function with the rows it needs, before it begins.
#[derive(Debug)]
pub struct Prepared {
    pub(super) function: Function,
    pub(super) set: RefreshSet,
    /// Rows of orders (or of the keys to delete), and of lines, in the form of COPY BINARY.
    orders: BytesMut,
    lines: BytesMut,
}

/// What a refresh function did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refreshed {
    /// Which one it was.
    pub function: Function,
    /// The number of its set.
    pub set: u64,
    /// Orders inserted or deleted.
    pub orders: u64,
    /// Lines inserted or deleted.
    pub lines: u64,
}

/// How many sets `function` has taken in the search path of `client`.
pub(in crate::decision_support) fn taken(client: &mut Client, function: Function) -> Result<u64, Error> {
    let sql = format!("SELECT taken FROM refresh_sets WHERE function = '{}'", function.name());
    Ok(client.integers(&sql)?[0] as u64)
}

/// Generates the set that `function` takes in the search path of `client` once it has taken `before` more.
///
/// # Errors
/// When the server cannot be asked, or there is no such set any more.
pub fn prepare(
    client: &mut Client,
    scale: ScaleFactor,
    function: Function,
    before: u64,
) -> Result<Prepared, DataSetError> {
    let number = taken(client, function)? + before + 1;
    let set = RefreshSet::new(scale, number).ok_or_else(|| {
        let name = function.name();
        DataSetError::Schema(format!(
            "{name} has no refresh set {number}, for there are {SETS_MAX}; drop the data and populate it again"
        ))
    })?;
    let (mut orders, mut lines) = (BytesMut::new(), BytesMut::new());
    match function {
        Function::Rf1 => {
            set.write_orders(&mut orders);
            set.write_lines(&mut lines);
        }
        Function::Rf2 => set.deleted_keys().for_each(|key| put_row(&mut orders, 1, |row| row.bigint(key))),
    }
    Ok(Prepared { function, set, orders, lines })
}

impl Prepared {
    /// Which function it is.
    pub fn function(&self) -> Function {
        self.function
    }

    /// The number of its set.
    pub fn set(&self) -> u64 {
        self.set.number()
    }

    /// Performs it in the search path of `client`.
    ///
    /// # Errors
    /// When the server refuses, the set was taken by another session meanwhile, or the tables do not hold what they should;
    /// nothing is changed then.
    pub fn perform(&self, client: &mut Client) -> Result<Refreshed, DataSetError> {
        let done = self.transaction(client);
        if done.is_err() {
            // Best effort: the failure that is reported is the first one.
            let _ = client.run("ROLLBACK");
        }
        done
    }

    fn transaction(&self, client: &mut Client) -> Result<Refreshed, DataSetError> {
        let (function, set) = (self.function, self.set);
        client.run("BEGIN")?;
        self.take(client)?;
        let (orders, lines) = match function {
            Function::Rf1 => self.insert(client)?,
            Function::Rf2 => self.delete(client)?,
        };
        let refreshed = Refreshed { function, set: set.number(), orders, lines };
        let expected = Refreshed { orders: set.orders(), lines: set.lines(function), ..refreshed };
        if refreshed != expected {
            let (name, number) = (function.name(), set.number());
            return Err(DataSetError::Schema(format!(
                "{name} of set {number} found {orders} orders and {lines} lines instead of {} and {}: the tables are not as the \
                 refresh functions left them; populate them again",
                expected.orders, expected.lines
            )));
        }
        client.run("COMMIT")?;
        Ok(refreshed)
    }

    /// Takes the set; its row stays locked until the transaction ends.
    fn take(&self, client: &mut Client) -> Result<(), DataSetError> {
        let (name, number) = (self.function.name(), self.set.number());
        let sql = format!(
            "UPDATE refresh_sets SET taken = {number} WHERE function = '{name}' AND taken = {number} - 1 RETURNING taken"
        );
        match client.rows(&sql)?.is_empty() {
            true => Err(DataSetError::Schema(format!("{name}: set {number} was taken by another session meanwhile"))),
            false => Ok(()),
        }
    }

    fn insert(&self, client: &mut Client) -> Result<(u64, u64), Error> {
        let lines = copy(client, "lineitem", &self.lines)?;
        Ok((copy(client, "orders", &self.orders)?, lines))
    }

    /// Deletes by the keys of a temporary table, which the planner knows the size of.
    fn delete(&self, client: &mut Client) -> Result<(u64, u64), Error> {
        client.run("CREATE TEMPORARY TABLE refresh_key (orderkey bigint) ON COMMIT DROP")?;
        copy(client, "refresh_key", &self.orders)?;
        client.run("CREATE INDEX ON refresh_key (orderkey)")?;
        client.run("ANALYZE refresh_key")?;
        let mut deleted = |table: &str, key: &str| {
            let gone = format!("DELETE FROM {table} USING refresh_key WHERE {key} = orderkey RETURNING 1");
            client.integers(&format!("WITH gone AS ({gone}) SELECT count(*) FROM gone")).map(|row| row[0] as u64)
        };
        let lines = deleted("lineitem", "l_orderkey")?;
        Ok((deleted("orders", "o_orderkey")?, lines))
    }
}

/// Gives `table` these rows, and counts them.
fn copy(client: &mut Client, table: &str, rows: &[u8]) -> Result<u64, Error> {
    let mut copy = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)"))?;
    rows.chunks(MESSAGE_BYTES).try_for_each(|part| copy.rows(|out| out.extend_from_slice(part)))?;
    copy.finish()
}
