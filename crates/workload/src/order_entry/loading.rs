//! What the data is to the loader and to the check after a trial.

use super::tables::TableId;
use super::{NAME, OrderEntry, check, ddl, functions, scale};
use crate::data_set::{DataSet, DataSetError, Making, Stamp, stamp_of_schema};
use bytes::BytesMut;
use plimsoll_record::{Check, Summary};
use plimsoll_target::postgres::Client;
use plimsoll_target::postgres::bulk::RowSource;
use serde_json::json;
use std::collections::BTreeMap;

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
