//! What a refresh function left of its set: asked right after it, of the keys of that set alone.
//!
//! The fact that constrains it: a test is being timed meanwhile, so the whole tables cannot be read. Nobody touches the rest of them;
//! the check at the end of a trial reads it all.

use super::functions::Prepared;
use crate::decision_support::check::{SETTINGS, orders_beside_lines};
use crate::decision_support::function::Function;
use plimsoll_target::postgres::{Client, Error};
use serde::Serialize;

/// Rows with the keys that a refresh function inserted or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Orders that are there.
    pub orders: u64,
    /// Lines that are there.
    pub lines: u64,
    /// Orders whose price is not that of their lines, and lines without an order.
    pub prices_wrong: u64,
}

impl Prepared {
    /// What it must leave: of RF1 all that its set inserts, of RF2 nothing.
    pub fn expected(&self) -> Left {
        let (set, function) = (self.set, self.function);
        match function {
            Function::Rf1 => Left { orders: set.orders(), lines: set.lines(function), prices_wrong: 0 },
            Function::Rf2 => Left { orders: 0, lines: 0, prices_wrong: 0 },
        }
    }

    /// What it left, in the search path of `client`, which [`asks_beside`] has prepared.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn left(&self, client: &mut Client) -> Result<Left, Error> {
        let (keys, mark) = self.set.keys(self.function);
        let (low, high) = (keys.start(), keys.end());
        let pairs = orders_beside_lines(|key| format!("{key} BETWEEN {low} AND {high} AND {key} & 24 = {mark}"));
        let found = client.integers(&format!(
            "SELECT count(o_orderkey), coalesce(sum(lines), 0)::bigint, \
                count(*) FILTER (WHERE o_totalprice IS DISTINCT FROM charged) FROM {pairs}"
        ))?;
        Ok(Left { orders: found[0] as u64, lines: found[1] as u64, prices_wrong: found[2] as u64 })
    }
}

/// Prepares a session to ask beside a test: a process that starts no others, in little memory.
///
/// # Errors
/// When the server refuses.
pub fn asks_beside(client: &mut Client) -> Result<(), Error> {
    client.run(SETTINGS)
}
