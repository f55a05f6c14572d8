//! `bank`: pgbench's tables and its three built-in transactions.
//!
//! - The tables are those of `pgbench -i`, column by column: a database that pgbench made works for us, and ours for pgbench.
//!   Ours bears a stamp (the comment of `pgbench_branches`); one without is recognised by its columns and counts.
//! - A transaction is sent as pgbench sends it: each statement is a round trip, BEGIN and END too.
//! - Account, teller, branch and amount are drawn independently, a pure function of (seed, index). Zipf's law governs the
//!   accounts alone; tellers and branches, whose rows are fought over anyway, are drawn uniformly.
//! - aid is a bigint from scale 20,000 on, an integer below, in the tables and in what is sent.

mod check;
mod recognise;
mod tables;
mod transactions;

use crate::Keys;
use crate::data_set::{DataSet, DataSetError, Making, Stamp};
use crate::workload::{Next, Statement, Workload};
use bytes::BytesMut;
use plimsoll_record::{Check, Outcome, Summary};
use plimsoll_session::Begun;
use plimsoll_target::postgres::bulk::RowSource;
use plimsoll_target::postgres::{Client as Administrator, Connection};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
pub use tables::PartitionMethod;
use tables::Tables;
pub use transactions::Client;
use transactions::{Draw, Kind};

/// The workload's name.
pub const NAME: &str = "bank";
/// The largest scale that is accepted: some 1.5 TB.
const SCALE_MAX: u64 = 100_000;
const PARTITIONS_MAX: u32 = 10_000;

/// pgbench's built-in transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// Five statements in a block: account, its balance, teller, branch, history.
    #[default]
    TpcbLike,
    /// The same without teller and branch.
    SimpleUpdate,
    /// The balance of an account, without a block.
    SelectOnly,
}

/// Weights of the transactions; one that is left out has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// Weight of the TPC-B-like transaction.
    pub tpcb_like: u32,
    /// Weight of the simple update.
    pub simple_update: u32,
    /// Weight of the select.
    pub select_only: u32,
}

/// The workload's own part of a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Always [`NAME`].
    pub name: String,
    /// Branches; ten tellers and 100,000 accounts for each.
    pub scale: u64,
    /// Decides the transactions.
    pub seed: u64,
    /// The only transaction; [`Transaction::TpcbLike`] unless a mix is given.
    #[serde(default)]
    pub transaction: Option<Transaction>,
    /// Several transactions by weight.
    #[serde(default)]
    pub mix: Option<Mix>,
    /// Which accounts are touched.
    #[serde(default)]
    pub keys: Keys,
    /// Partitions of the accounts; 0: one table.
    #[serde(default)]
    pub partitions: u32,
    /// How the accounts are divided among them.
    #[serde(default)]
    pub partition_method: PartitionMethod,
    /// Tables without WAL.
    #[serde(default)]
    pub unlogged: bool,
    /// Per cent of each page of accounts, tellers and branches that is filled.
    #[serde(default = "full")]
    pub fillfactor: u32,
}

fn full() -> u32 {
    100
}

/// The workload at one scale and seed.
#[derive(Clone, Debug)]
pub struct Bank {
    tables: Tables,
    draw: Draw,
}

impl Bank {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        let Parameters { scale, seed, partitions, fillfactor, .. } = *parameters;
        if !(1..=SCALE_MAX).contains(&scale) {
            return Err(format!("workload.scale: {scale} is not between 1 and {SCALE_MAX}"));
        }
        if partitions > PARTITIONS_MAX {
            return Err(format!("workload.partitions: {partitions} is above {PARTITIONS_MAX}"));
        }
        if !(10..=100).contains(&fillfactor) {
            return Err(format!("workload.fillfactor: {fillfactor} is not between 10 and 100"));
        }
        let tables = Tables {
            scale,
            partitions: u64::from(partitions),
            method: parameters.partition_method,
            unlogged: parameters.unlogged,
            fillfactor: u64::from(fillfactor),
        };
        let kinds = weights(parameters)?;
        let accounts = parameters.keys.chooser(seed, 0, tables.accounts())?;
        Ok(Self { tables, draw: Draw::new(seed, kinds, accounts, scale) })
    }
}

/// The kinds that occur, each with its weight.
fn weights(parameters: &Parameters) -> Result<Vec<(Kind, u32)>, String> {
    let mix = match (parameters.transaction, parameters.mix) {
        (Some(_), Some(_)) => return Err("workload.mix: transaction is given too; allowed: one of the two".to_owned()),
        (_, Some(mix)) => mix,
        (transaction, None) => match transaction.unwrap_or_default() {
            Transaction::TpcbLike => Mix { tpcb_like: 1, ..Mix::default() },
            Transaction::SimpleUpdate => Mix { simple_update: 1, ..Mix::default() },
            Transaction::SelectOnly => Mix { select_only: 1, ..Mix::default() },
        },
    };
    let all =
        [(Kind::TpcbLike, mix.tpcb_like), (Kind::SimpleUpdate, mix.simple_update), (Kind::SelectOnly, mix.select_only)];
    let kinds: Vec<_> = all.into_iter().filter(|(_, weight)| *weight > 0).collect();
    if kinds.is_empty() { Err("workload.mix: every weight is 0".to_owned()) } else { Ok(kinds) }
}

impl RowSource for Bank {
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut) {
        self.tables.write_rows(table, from, to, out);
    }
}

impl DataSet for Bank {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> BTreeMap<String, u64> {
        self.tables.rows()
    }

    fn estimated_bytes(&self) -> u64 {
        self.tables.estimated_bytes()
    }

    fn making(&self, _parallel: usize, _minimal: bool) -> Making {
        self.tables.making()
    }

    fn stamped_table(&self) -> Option<&'static str> {
        Some(tables::BRANCHES)
    }

    fn stamp(&self) -> Stamp {
        let Tables { scale, partitions, method, unlogged, fillfactor } = self.tables;
        let mut parameters =
            vec![("scale", json!(scale)), ("unlogged", json!(unlogged)), ("fillfactor", json!(fillfactor))];
        if partitions > 0 {
            parameters.extend([("partitions", json!(partitions)), ("partition_method", json!(method))]);
        }
        Stamp::new(NAME, &parameters)
    }

    fn recognise(&self, client: &mut Administrator, schema: &str) -> Result<(), DataSetError> {
        recognise::recognise(&self.tables, &self.stamp(), client, schema)
    }

    fn check(
        &self,
        client: &mut Administrator,
        schema: &str,
        segments: &[Summary],
    ) -> Result<Vec<Check>, DataSetError> {
        recognise::recognise(&self.tables, &self.stamp(), client, schema)?;
        Ok(check::check(&self.tables, client, segments)?)
    }
}

impl Workload for Bank {
    type Client = Client;

    const NAME: &'static str = NAME;

    fn data(&self) -> Option<&dyn DataSet> {
        Some(self)
    }

    fn kinds(&self) -> Vec<String> {
        self.draw.kinds().map(|kind| kind.name().to_owned()).collect()
    }

    fn statements(&self) -> Vec<Statement> {
        transactions::STATEMENTS.to_vec()
    }

    fn client(&self, _number: u32) -> Client {
        Client::default()
    }

    fn begin(&self, client: &mut Client, index: u64) -> Begun {
        Begun { kind: self.draw.draw(client, index), skipped: false }
    }

    fn again(&self, client: &mut Client) {
        client.start_over();
    }

    fn next(&self, client: &mut Client, connection: &mut Connection) -> Next {
        client.step(self.tables.aid_is_bigint(), connection).map_or(Next::Complete, Next::RoundTrip)
    }

    fn total_names(&self) -> &'static [&'static str] {
        &transactions::TOTALS
    }

    fn tally(&self, client: &Client, outcome: Outcome, totals: &mut [i64]) {
        client.tally(outcome, totals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(more: &str) -> Result<Bank, String> {
        let text = format!(r#"{{"name": "bank", "scale": 1, "seed": 7{more}}}"#);
        let parameters = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Bank::new(&parameters)
    }

    #[test]
    fn kinds_are_those_that_occur() {
        assert_eq!(bank("").unwrap().kinds(), ["tpcb_like"]);
        assert_eq!(bank(r#", "transaction": "select_only", "mix": null"#).unwrap().kinds(), ["select_only"]);
        let mixed = bank(r#", "mix": {"select_only": 9, "tpcb_like": 1}, "keys": {"zipf": 1.1}"#).unwrap();
        assert_eq!(mixed.kinds(), ["tpcb_like", "select_only"]);
    }

    #[test]
    fn wrong_parameters_name_the_field() {
        for (more, field) in [
            (r#", "mix": {}"#, "workload.mix"),
            (r#", "mix": {"select_only": 1}, "transaction": "select_only""#, "workload.mix"),
            (r#", "mix": {"select": 1}"#, "select"),
            (r#", "fillfactor": 9"#, "workload.fillfactor"),
            (r#", "partitions": 10001"#, "workload.partitions"),
            (r#", "keys": {"zipf": -1}"#, "workload.keys.zipf"),
            (r#", "size_bytes": 1"#, "size_bytes"),
        ] {
            let error = bank(more).unwrap_err();
            assert!(error.contains(field), "{more}: {error}");
        }
    }
}
