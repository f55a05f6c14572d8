//! How many rows there are, and what holds of the numbers in them (clauses 1.2 and 4.3.3 of TPC-C 5.11).

use super::tables::TableId;
use crate::pages::{PAGE_BYTES, heap_pages, index_pages, map_pages};

/// Districts of a warehouse.
pub(super) const DISTRICTS: i64 = 10;
/// Customers of a district.
pub(super) const CUSTOMERS: i64 = 3000;
/// Orders of a district when it is loaded: one of each customer.
pub(super) const ORDERS: i64 = CUSTOMERS;
/// The first order of a district that was not delivered when it was loaded.
pub(super) const FIRST_UNDELIVERED: i64 = 2101;
/// Undelivered orders of a district when it is loaded.
pub(super) const UNDELIVERED: i64 = ORDERS - FIRST_UNDELIVERED + 1;
/// Items, and stocks of a warehouse.
pub(super) const ITEMS: i64 = 100_000;
/// Fewest lines of an order.
pub(super) const LINES_MIN: i64 = 5;
/// Most lines of an order.
pub(super) const LINES_MAX: i64 = 15;
/// Customers of a district whose last names are numbers 0 to 999 in turn; the others' are drawn.
pub(super) const LAST_NAMES: i64 = 1000;

/// Rows of `table` at `warehouses`; those of order_line hang on the seed, and are about this many.
pub(super) const fn rows(table: TableId, warehouses: i64) -> i64 {
    let districts = DISTRICTS * warehouses;
    match table {
        TableId::Warehouse => warehouses,
        TableId::District => districts,
        TableId::Customer | TableId::History => districts * CUSTOMERS,
        TableId::Orders => districts * ORDERS,
        TableId::NewOrder => districts * UNDELIVERED,
        TableId::OrderLine => districts * ORDERS * (LINES_MIN + LINES_MAX) / 2,
        TableId::Stock => warehouses * ITEMS,
        TableId::Item => ITEMS,
    }
}

/// Bytes of a row's values as they are stored, on average: texts with a one-byte header, numbers with three bytes and two for
/// each four digits before and after the point, all aligned.
const fn width(table: TableId) -> u64 {
    // Five address lines: two streets, city, state, zip.
    const ADDRESS: u64 = 3 * 16 + 3 + 10;
    match table {
        TableId::Warehouse => 4 + 9 + ADDRESS + 5 + 5,
        TableId::District => 8 + 9 + ADDRESS + 5 + 5 + 3 + 4,
        TableId::Customer => 12 + 13 + 3 + 11 + ADDRESS + 17 + 4 + 8 + 3 + 5 + 5 + 5 + 5 + 2 + 8 + 403,
        TableId::History => 20 + 4 + 8 + 5 + 19,
        TableId::Orders => 16 + 8 + 12,
        TableId::NewOrder => 12,
        // Most amounts are 0, which has no digits.
        TableId::OrderLine => 24 + 8 + 4 + 3 + 25,
        TableId::Stock => 12 + 10 * 25 + 2 + 12 + 39,
        TableId::Item => 8 + 20 + 6 + 39,
    }
}

/// Bytes of the keys in an index: of the primary key, and of the other one, 0 if there is none.
const fn index_widths(table: TableId) -> [u64; 2] {
    match table {
        TableId::Warehouse | TableId::Item => [4, 0],
        TableId::District | TableId::Stock => [8, 0],
        TableId::Customer => [12, 8 + 11 + 13],
        TableId::History => [0, 0],
        TableId::Orders => [12, 16],
        TableId::NewOrder => [12, 0],
        TableId::OrderLine => [16, 0],
    }
}

/// Bytes of `rows` rows of `table` alone, when loaded.
pub(super) fn heap_bytes(table: TableId, rows: u64) -> u64 {
    PAGE_BYTES * heap_pages(rows, width(table), 100)
}

/// Bytes of `rows` rows of `table` with its maps, its indexes and the empty index of its TOAST table, when loaded.
pub(super) fn table_bytes(table: TableId, rows: u64) -> u64 {
    let heap = heap_pages(rows, width(table), 100);
    let toast = u64::from(table.columns().iter().any(|(_, kind)| kind.starts_with("varchar")));
    let indexes: u64 =
        index_widths(table).iter().filter(|&&width| width > 0).map(|&width| index_pages(rows, width)).sum();
    PAGE_BYTES * (heap + map_pages(heap) + toast + indexes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_specification() {
        let counts = TableId::ALL.map(|table| rows(table, 3));
        assert_eq!(counts, [3, 30, 90_000, 90_000, 90_000, 27_000, 900_000, 300_000, 100_000]);
    }
}
