//! `wpi_orders`: the order-entry load of the WPI and EMC study of 2002 (nine tables, five transactions 10:10:1:1:1).
//!
//! - Money is bigint cents, so every sum is exact.
//! - Rows are a pure function of (seed, table, key), of constant width; keys run from 1 without gaps. Inserted rows take the
//!   keys above the loaded ones: loaded + 1 + index, so they collide neither with loaded rows nor between segments.
//! - Zipf ranks are scattered over the keys by a seeded bijection (`plimsoll_keys::Permutation`): hot rows are no neighbours.
//! - A new order is six round trips: BEGIN with the first of its five statements, then one each, then COMMIT.
//! - `access = "scan"` turns index, index-only and bitmap scans off on the load connections, as planner settings of the
//!   session. The server's own foreign-key look-ups run in the same session and become scans too.

mod check;
mod ddl;
mod rows;
mod size;
mod tables;
mod transactions;

use crate::Keys;
use crate::data_set::{DataSet, DataSetError, Making, Stamp, stamp_of_schema};
use crate::workload::{Next, Statement, Workload};
use bytes::BytesMut;
use check::Loaded;
use plimsoll_record::{Check, Outcome, Summary};
use plimsoll_session::Begun;
use plimsoll_target::postgres::bulk::RowSource;
use plimsoll_target::postgres::{Client as Administrator, Connection, Form};
use rows::Rows;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
pub use tables::TableId;
pub use transactions::Client;
use transactions::{Draw, KINDS};

/// The workload's name.
pub const NAME: &str = "wpi_orders";

/// How the next transaction is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawKind {
    /// The weights as they are: 23 buckets by default.
    #[default]
    Mix,
    /// The original's draw: one bucket more than the weights, and it does nothing.
    Study,
}

/// How rows are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// As the server plans: by index.
    #[default]
    Index,
    /// By sequential scans.
    Scan,
}

/// Weights of the kinds; a kind that is left out has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// Weight of new orders.
    pub new_order: u32,
    /// Weight of payments.
    pub payment: u32,
    /// Weight of looking at an order.
    pub check_order: u32,
    /// Weight of deliveries.
    pub delivery: u32,
    /// Weight of looking at the stock.
    pub stock: u32,
}

/// The study's proportions, those of TPC-C.
const STUDY_MIX: Mix = Mix { new_order: 10, payment: 10, check_order: 1, delivery: 1, stock: 1 };

fn study_mix() -> Mix {
    STUDY_MIX
}

/// The workload's own part of a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Always [`NAME`].
    pub name: String,
    /// Bytes of the nine tables with their indexes, hit within 3 %.
    pub size_bytes: u64,
    /// Decides rows and transactions.
    pub seed: u64,
    /// How the next transaction is drawn.
    #[serde(default)]
    pub draw: DrawKind,
    /// Which keys are touched.
    #[serde(default)]
    pub keys: Keys,
    /// How rows are found.
    #[serde(default)]
    pub access: Access,
    /// Weights of the kinds.
    #[serde(default = "study_mix")]
    pub mix: Mix,
}

/// The workload at one size and seed.
#[derive(Clone, Debug)]
pub struct WpiOrders {
    seed: u64,
    size_bytes: u64,
    access: Access,
    draw_kind: DrawKind,
    units: u64,
    rows: Rows,
    draw: Draw,
}

impl WpiOrders {
    /// Checks the parameters and computes the sizes.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        let units = size::units_for(parameters.size_bytes).ok_or_else(|| {
            let (low, high) = (size::SIZE_BYTES_MIN, size::SIZE_BYTES_MAX);
            format!("workload.size_bytes: {} is not between {low} and {high}", parameters.size_bytes)
        })?;
        let mix = parameters.mix;
        let weights = [mix.new_order, mix.payment, mix.check_order, mix.delivery, mix.stock];
        if weights.iter().all(|&weight| weight == 0) {
            return Err("workload.mix: every weight is 0".to_owned());
        }
        let rows = Rows::new(parameters.seed, units);
        let chooser = |table: TableId| parameters.keys.chooser(parameters.seed, table as u64, rows.count(table));
        let draw = Draw {
            seed: parameters.seed,
            weights,
            with_nothing: parameters.draw == DrawKind::Study,
            accounts: chooser(TableId::Customer)?,
            items: chooser(TableId::Item)?,
            orders: chooser(TableId::Orders)?,
        };
        Ok(Self {
            seed: parameters.seed,
            size_bytes: parameters.size_bytes,
            access: parameters.access,
            draw_kind: parameters.draw,
            units,
            rows,
            draw,
        })
    }
}

impl RowSource for WpiOrders {
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut) {
        let table = TableId::ALL[table];
        (from..to).for_each(|place| self.rows.write(table, place as i64 + 1, Form::Binary, out));
    }
}

impl DataSet for WpiOrders {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> BTreeMap<String, u64> {
        TableId::ALL.into_iter().map(|table| (table.name().to_owned(), self.rows.count(table))).collect()
    }

    fn estimated_bytes(&self) -> u64 {
        size::estimated_bytes(self.units)
    }

    fn making(&self, _parallel: usize, _minimal: bool) -> Making {
        ddl::making(self.units)
    }

    fn stamped_table(&self) -> Option<&'static str> {
        None
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(NAME, &[("seed", json!(self.seed)), ("size_bytes", json!(self.size_bytes))])
    }

    fn recognise(&self, client: &mut Administrator, schema: &str) -> Result<(), DataSetError> {
        self.stamp_found(client, schema).map(drop)
    }

    fn check(
        &self,
        client: &mut Administrator,
        schema: &str,
        segments: &[Summary],
    ) -> Result<Vec<Check>, DataSetError> {
        let stamp = self.stamp_found(client, schema)?;
        Ok(check::check(&Loaded { rows: &self.rows, draw: &self.draw }, client, &stamp, segments)?)
    }
}

impl WpiOrders {
    fn stamp_found(&self, client: &mut Administrator, schema: &str) -> Result<Stamp, DataSetError> {
        self.stamp().require_of_schema(stamp_of_schema(client, schema)?, schema)
    }
}

impl Workload for WpiOrders {
    type Client = Client;

    const NAME: &'static str = NAME;

    fn data(&self) -> Option<&dyn DataSet> {
        Some(self)
    }

    fn kinds(&self) -> Vec<String> {
        let kinds = if self.draw_kind == DrawKind::Study { &KINDS[..] } else { &KINDS[..KINDS.len() - 1] };
        kinds.iter().map(|kind| (*kind).to_owned()).collect()
    }

    fn statements(&self) -> Vec<Statement> {
        transactions::STATEMENTS.to_vec()
    }

    fn session_settings(&self) -> &[(&'static str, &'static str)] {
        match self.access {
            Access::Index => &[],
            Access::Scan => {
                &[("enable_indexscan", "off"), ("enable_indexonlyscan", "off"), ("enable_bitmapscan", "off")]
            }
        }
    }

    fn client(&self, _number: u32) -> Client {
        Client::IDLE
    }

    fn begin(&self, client: &mut Client, index: u64) -> Begun {
        *client = Client { plan: self.draw.plan(index), next_round_trip: 0 };
        client.plan.begun()
    }

    fn again(&self, client: &mut Client) {
        client.next_round_trip = 0;
    }

    fn next(&self, client: &mut Client, connection: &mut Connection) -> Next {
        let number = client.next_round_trip;
        client.next_round_trip += 1;
        transactions::round_trip(&self.rows, &client.plan, number, connection).map_or(Next::Complete, Next::RoundTrip)
    }

    fn expected_row(&self, table: u8, key: i64, form: Form, out: &mut BytesMut) {
        self.rows.write(TableId::ALL[usize::from(table)], key, form, out);
    }

    fn columns(&self, table: u8) -> (&'static str, Vec<&'static str>) {
        let table = TableId::ALL[usize::from(table)];
        (table.name(), table.columns().iter().map(|(name, _)| *name).collect())
    }

    fn total_names(&self) -> &'static [&'static str] {
        &transactions::TOTALS
    }

    fn tally(&self, client: &Client, outcome: Outcome, totals: &mut [i64]) {
        transactions::tally(&client.plan, outcome, totals);
    }
}
