//! The data of `order_entry` at one seed and size.

use super::numbers::Constants;
use super::rows::Rows;
use super::scale;
use super::tables::TableId;

/// The tables.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) rows: Rows,
    pub(super) has_foreign_keys: bool,
    pub(super) seed: u64,
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

#[cfg(test)]
mod tests;
