//! The consistency check after a trial: what the transactions said they did is what the tables hold. Exact.
//!
//! Balances start at 0 and the history empty, so every sum is known from the segments' totals, as a range if transactions were
//! lost. And since a transaction is atomic, the tables must agree with each other whatever was lost: the accounts with the
//! history row by row; tellers with branches, and, if no simple update ran, with the history too. Tables that something else
//! has used since they were made (pgbench empties the history before each run) do not agree, and the check says where.

use super::tables::{ACCOUNTS, BRANCHES, HISTORY, TELLERS, Tables};
use crate::checks::{between, exact, total};
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::{Client, Error};

/// What transactions of one kind add, over all segments.
struct Added {
    done: i64,
    lost: i64,
    delta: (i64, i64),
}

fn added(segments: &[Summary], kind: &str) -> Added {
    let total = |what: &str| total(segments, &format!("{kind}_{what}"));
    let delta = total("delta_done");
    Added {
        done: total("done"),
        lost: total("lost"),
        delta: (delta + total("delta_lost_negative"), delta + total("delta_lost_positive")),
    }
}

/// Rows of `table`, and the sum of its `column`.
fn count_and_sum(client: &mut Client, table: &str, column: &str) -> Result<(i64, i64), Error> {
    let found = client.integers(&format!("SELECT count(*), coalesce(sum({column}), 0)::bigint FROM {table}"))?;
    Ok((found[0], found[1]))
}

/// How many rows of `table` have another balance than the history says, for keys that it names.
fn disagreeing(client: &mut Client, table: &str, key: &str, balance: &str) -> Result<i64, Error> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT {key}, sum(delta) AS delta FROM {HISTORY} GROUP BY {key}) h \
         LEFT JOIN {table} t USING ({key}) WHERE t.{balance} IS DISTINCT FROM h.delta"
    );
    Ok(client.integers(&sql)?[0])
}

pub(super) fn check(tables: &Tables, client: &mut Client, segments: &[Summary]) -> Result<Vec<Check>, Error> {
    let (whole, part) = (added(segments, "tpcb_like"), added(segments, "simple_update"));
    let done = whole.done + part.done;
    let delta = (whole.delta.0 + part.delta.0, whole.delta.1 + part.delta.1);
    let history = count_and_sum(client, HISTORY, "delta")?;
    let accounts = count_and_sum(client, ACCOUNTS, "abalance")?;
    let tellers = count_and_sum(client, TELLERS, "tbalance")?;
    let branches = count_and_sum(client, BRANCHES, "bbalance")?;
    let mut checks = vec![
        exact(format!("{ACCOUNTS}: rows"), tables.accounts() as i64, accounts.0),
        exact(format!("{TELLERS}: rows"), tables.tellers() as i64, tellers.0),
        exact(format!("{BRANCHES}: rows"), tables.scale as i64, branches.0),
        between(format!("{HISTORY}: rows inserted"), done, done + whole.lost + part.lost, history.0),
        between(format!("{HISTORY}: sum of delta"), delta.0, delta.1, history.1),
        exact(format!("{ACCOUNTS}: sum of abalance as in the history"), history.1, accounts.1),
        between(format!("{TELLERS}: sum of tbalance"), whole.delta.0, whole.delta.1, tellers.1),
        exact(format!("{BRANCHES}: sum of bbalance as of the tellers"), tellers.1, branches.1),
    ];
    let mut agree = |table: &str, key: &str, balance: &str| -> Result<(), Error> {
        let found = disagreeing(client, table, key, balance)?;
        checks.push(exact(format!("{table}: balances that are not the history's"), 0, found));
        Ok(())
    };
    agree(ACCOUNTS, "aid", "abalance")?;
    if part.done + part.lost == 0 {
        agree(TELLERS, "tid", "tbalance")?;
        agree(BRANCHES, "bid", "bbalance")?;
    }
    Ok(checks)
}
