//! How many rows there are at a scale factor, and how many lines their orders have.
//!
//! The fact that constrains it: the generator multiplies in floating point and cuts off, so a product such as 1,500,000 x 0.29
//! comes out one short. It is therefore handed the next larger number, with which every count is exact.

use super::function::Function;
use super::table_id::TableId;
use tpchgen::generators::OrderGenerator;

/// The smallest and largest scale factors, in hundredths. Above, keys of parts need 64 bits, which was not tried.
const HUNDREDTHS_MIN: u64 = 1;
const HUNDREDTHS_MAX: u64 = 1_000_000;
/// Rows per scale factor of 0.01.
const SUPPLIERS: u64 = 100;
const PARTS: u64 = 2_000;
const CUSTOMERS: u64 = 1_500;
const ORDERS: u64 = 15_000;
/// Suppliers of a part.
pub(super) const SUPPLIERS_A_PART: u64 = 4;
/// Lines of an order on average; their number is uniform from 1 to 7.
const LINES_AN_ORDER: u64 = 4;
/// A refresh set is one in so many of the loaded orders.
const SETS_OF_ALL: u64 = 1_000;

/// A scale factor: a multiple of 0.01, so that each refresh set has the same number of whole orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleFactor {
    hundredths: u64,
}

impl ScaleFactor {
    /// Checks `value`.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub fn new(value: f64) -> Result<Self, String> {
        let hundredths = (value * 100.0).round();
        let (low, high) = (HUNDREDTHS_MIN as f64, HUNDREDTHS_MAX as f64);
        if !(low..=high).contains(&hundredths) || (value - hundredths / 100.0).abs() > 1e-9 {
            let (low, high) = (low / 100.0, high / 100.0);
            return Err(format!("workload.scale_factor: {value} is not a multiple of 0.01 from {low} to {high}"));
        }
        Ok(Self { hundredths: hundredths as u64 })
    }

    /// As it is written.
    pub fn value(self) -> f64 {
        self.hundredths as f64 / 100.0
    }

    /// As the generator wants it.
    pub(super) fn of_generator(self) -> f64 {
        self.value().next_up()
    }

    /// Orders when loaded.
    pub(super) fn orders(self) -> u64 {
        self.hundredths * ORDERS
    }

    /// Orders of a refresh set.
    pub(super) fn orders_a_set(self) -> u64 {
        self.orders() / SETS_OF_ALL
    }

    /// Places of `table` when loaded: what the generator counts. A part is a place of its four rows of partsupp, an order of its
    /// lines, of every other table each row is one.
    pub(super) fn places(self, table: TableId) -> u64 {
        match table {
            TableId::Region => 5,
            TableId::Nation => 25,
            TableId::Supplier => self.hundredths * SUPPLIERS,
            TableId::Part | TableId::Partsupp => self.hundredths * PARTS,
            TableId::Customer => self.hundredths * CUSTOMERS,
            TableId::Orders | TableId::Lineitem => self.orders(),
            TableId::RefreshSets => Function::ALL.len() as u64,
        }
    }

    /// Rows of `table` when loaded; of lineitem about so many.
    pub(super) fn rows(self, table: TableId) -> u64 {
        let rows_a_place = match table {
            TableId::Partsupp => SUPPLIERS_A_PART,
            TableId::Lineitem => LINES_AN_ORDER,
            _ => 1,
        };
        rows_a_place * self.places(table)
    }
}

/// Lines of the orders at places `from..to`, also of those beyond the loaded ones.
pub(super) fn lines(from: u64, to: u64) -> u64 {
    let mut drawn = OrderGenerator::create_line_count_random();
    drawn.advance_rows(from as i64);
    let mut lines = 0;
    for _ in from..to {
        lines += drawn.next_value() as u64;
        drawn.row_finished();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpchgen::generators::{CustomerGenerator, PartGenerator, SupplierGenerator};

    #[test]
    fn the_generator_agrees_at_every_scale_factor() {
        // 0.29 is the first at which a product of the number as it is written is one short.
        assert_eq!((1_500_000.0 * 0.29) as i64, 434_999);
        for hundredths in 1..=HUNDREDTHS_MAX {
            let scale = ScaleFactor { hundredths };
            let factor = scale.of_generator();
            let counts = [
                (TableId::Supplier, SupplierGenerator::calculate_row_count(factor, 1, 1)),
                (TableId::Part, PartGenerator::calculate_row_count(factor, 1, 1)),
                (TableId::Customer, CustomerGenerator::calculate_row_count(factor, 1, 1)),
                (TableId::Orders, OrderGenerator::calculate_row_count(factor, 1, 1)),
            ];
            counts.iter().for_each(|&(table, count)| assert_eq!(scale.places(table) as i64, count, "{hundredths}"));
        }
    }

    #[test]
    fn only_hundredths_are_scale_factors() {
        for value in [0.01, 0.29, 1.0, 1.1, 10_000.0] {
            assert_eq!(ScaleFactor::new(value).map(ScaleFactor::value), Ok(value));
        }
        for value in [0.0, -1.0, 0.001, 0.015, 1.005, 10_000.01, f64::NAN, f64::INFINITY] {
            assert!(ScaleFactor::new(value).unwrap_err().contains("workload.scale_factor"), "{value}");
        }
    }

    #[test]
    fn lines_are_as_many_as_the_specification_has() {
        assert_eq!(lines(0, ScaleFactor::new(1.0).unwrap().orders()), 6_001_215);
        assert_eq!(lines(0, 700) + lines(700, 15_000), lines(0, 15_000));
    }
}
