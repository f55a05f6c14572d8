//! The data of `order_entry` at one seed and size, and what it is to the loader.

use super::ddl::{self, TableId};
use super::numbers::Constants;
use super::rows::Rows;
use super::{NAME, OrderEntry, check, functions, scale};
use crate::data_set::{DataSet, DataSetError, Making, Stamp, stamp_of_schema};
use bytes::BytesMut;
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::Client;
use plimsoll_target::postgres::bulk::RowSource;
use serde_json::json;
use std::collections::BTreeMap;

/// The tables.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) rows: Rows,
    pub(super) has_foreign_keys: bool,
    seed: u64,
}

impl Data {
    pub(super) fn new(seed: u64, warehouses: u32, has_foreign_keys: bool) -> Self {
        Self { rows: Rows::new(seed, warehouses), has_foreign_keys, seed }
    }

    pub(super) fn warehouses(&self) -> i64 {
        self.rows.warehouses()
    }

    /// The constants of NURand.
    pub(super) fn constants(&self) -> &Constants {
        self.rows.constants()
    }

    /// Rows of `table` when loaded.
    pub(super) fn count(&self, table: TableId) -> u64 {
        match table {
            TableId::OrderLine => self.rows.all_lines(),
            _ => scale::rows(table, self.warehouses()) as u64,
        }
    }
}

impl RowSource for OrderEntry {
    fn write_rows(&self, table: usize, from: u64, to: u64, out: &mut BytesMut) {
        self.data.write_rows(TableId::ALL[table], from, to, out);
    }
}

impl DataSet for OrderEntry {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> BTreeMap<String, u64> {
        TableId::ALL.into_iter().map(|table| (table.name().to_owned(), self.data.count(table))).collect()
    }

    fn estimated_bytes(&self) -> u64 {
        TableId::ALL.into_iter().map(|table| scale::table_bytes(table, self.data.count(table))).sum()
    }

    fn making(&self, parallel: usize, _minimal: bool) -> Making {
        ddl::making(&self.data, parallel, functions::statements())
    }

    fn stamped_table(&self) -> Option<&'static str> {
        None
    }

    fn stamp(&self) -> Stamp {
        let parameters = [
            ("seed", json!(self.data.seed)),
            ("warehouses", json!(self.data.warehouses())),
            ("foreign_keys", json!(self.data.has_foreign_keys)),
            ("nurand", json!(self.data.constants())),
        ];
        Stamp::new(NAME, &parameters)
    }

    fn recognise(&self, client: &mut Client, schema: &str) -> Result<(), DataSetError> {
        self.stamp().require_of_schema(stamp_of_schema(client, schema)?, schema).map(drop)
    }

    fn check(&self, client: &mut Client, schema: &str, segments: &[Summary]) -> Result<Vec<Check>, DataSetError> {
        self.recognise(client, schema)?;
        Ok(check::check(&self.data, client, segments)?)
    }
}

#[cfg(test)]
mod tests;
