//! `decision_support`: the decision-support workload of DBT-3, derived from TPC-H. Results are "-like", not comparable to
//! published ones.
//!
//! - Eight tables, and one that says which refresh sets were taken; rows are a pure function of the scale factor, those of
//!   crate `tpchgen`, which makes what the specification's own generator does. No seed changes them.
//! - Rows go from the generator into COPY as they are drawn; no file lies between. The first row of any table waits for the
//!   generator's pool of words, 300 MB of memory that all connections share.
//! - Refresh functions change the tables set by set ([`refresh`]); what each set does is a function of its number.
//! - [`queries`]: the 22 texts, their parameters by seed and stream, their order, and the answers that are known.

mod check;
mod cpus;
mod function;
pub mod queries;
pub mod refresh;
mod rows;
mod scale;
mod table_id;
mod tables;

pub use scale::ScaleFactor;

use crate::data_set::{DataSet, DataSetError, Making, Stamp, stamp_of_schema};
use bytes::BytesMut;
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::Client;
use plimsoll_target::postgres::bulk::{PLACES_A_STEP, RowSource};
use queries::{Ranges, Source};
use rows::RowForm;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use table_id::TableId;

/// The workload's name.
pub const NAME: &str = "decision_support";

/// The workload's own part of a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Always [`NAME`].
    pub name: String,
    /// The scale factor: about so many GB of rows as text. A multiple of 0.01.
    pub scale_factor: f64,
    /// Decides the queries' parameters, and nothing of the data.
    #[serde(default = "one")]
    pub seed: u64,
    /// From where the queries' parameters are drawn.
    #[serde(default)]
    pub ranges: Ranges,
}

fn one() -> u64 {
    1
}

/// The workload at one scale factor.
#[derive(Debug)]
pub struct DecisionSupport {
    scale: ScaleFactor,
    queries: Source,
    lines: OnceLock<u64>,
}

impl DecisionSupport {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        let scale = ScaleFactor::new(parameters.scale_factor)?;
        let queries = Source { scale_factor: scale.value(), seed: parameters.seed, ranges: parameters.ranges };
        Ok(Self { scale, queries, lines: OnceLock::new() })
    }

    /// The queries of any stream.
    pub fn queries(&self) -> Source {
        self.queries
    }

    /// What belongs to the results beside the request.
    pub fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let Source { scale_factor, seed, ranges } = self.queries;
        let facts = [("scale_factor", json!(scale_factor)), ("seed", json!(seed)), ("ranges", json!(ranges))];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The scale factor.
    pub fn scale_factor(&self) -> ScaleFactor {
        self.scale
    }

    /// The number by which [`RowSource`] and [`DecisionSupport::text_of`] know the table `name`.
    pub fn table_number(&self, name: &str) -> Option<usize> {
        TableId::ALL.into_iter().position(|id| id.name() == name)
    }

    /// Hands the rows of table number `table` to `each`, in order, as text: a line a row, `|` between the values, decimals with a
    /// point, dates as 1992-01-02. Gives how many rows they are.
    ///
    /// # Errors
    /// That of `each`, at once.
    pub fn text_of<E>(&self, table: usize, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<u64, E> {
        let (id, mut text) = (TableId::ALL[table], BytesMut::new());
        let places = self.scale.places(id);
        let mut step = |from: u64| {
            let to = (from + PLACES_A_STEP).min(places);
            text.clear();
            rows::write(self.scale, id, (from, to), RowForm::Text, &mut text);
            each(&text).map(|()| self.rows_in(table, from, to))
        };
        let mut steps = (0..places).step_by(PLACES_A_STEP as usize);
        steps.try_fold(0, |rows, from| step(from).map(|more| rows + more))
    }

    /// Lines when loaded: counted once, for there is no formula.
    fn lines(&self) -> u64 {
        *self.lines.get_or_init(|| scale::lines(0, self.scale.orders()))
    }
}

impl RowSource for DecisionSupport {
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut) {
        rows::write(self.scale, TableId::ALL[table], (from, to), RowForm::Binary, out);
    }

    fn rows_in(&self, table: usize, from: u64, to: u64) -> u64 {
        match TableId::ALL[table] {
            TableId::Partsupp => scale::SUPPLIERS_A_PART * (to - from),
            TableId::Lineitem => scale::lines(from, to),
            _ => to - from,
        }
    }
}

impl DataSet for DecisionSupport {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> BTreeMap<String, u64> {
        let rows = |table: TableId| if table == TableId::Lineitem { self.lines() } else { self.scale.rows(table) };
        TableId::ALL.into_iter().map(|table| (table.name().to_owned(), rows(table))).collect()
    }

    fn estimated_bytes(&self) -> u64 {
        TableId::ALL.into_iter().map(|table| table.bytes(self.scale)).sum()
    }

    fn making(&self, parallel: usize, _minimal: bool) -> Making {
        tables::making(self.scale, parallel, cpus::online())
    }

    fn stamped_table(&self) -> Option<&'static str> {
        None
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(NAME, &[("scale_factor", json!(self.scale.value()))])
    }

    fn recognise(&self, client: &mut Client, schema: &str) -> Result<(), DataSetError> {
        self.stamp().require_of_schema(stamp_of_schema(client, schema)?, schema).map(drop)
    }

    fn check(&self, client: &mut Client, schema: &str, _segments: &[Summary]) -> Result<Vec<Check>, DataSetError> {
        self.recognise(client, schema)?;
        Ok(check::check(self.scale, self.lines(), client)?)
    }
}
