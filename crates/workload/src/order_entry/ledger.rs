//! The durability ledger: every New-Order and Payment that the server acknowledged, in `acknowledged.npy` of the segment.
//!
//! A row is handed to the kernel before the connection takes its next plan, so a kill of the server or of this process loses
//! none. What identifies one:
//! - a New-Order: warehouse, district and order number, with the customer, the count of lines and the time of entry: an order
//!   that was lost and whose number was given again is another one;
//! - a Payment: warehouse, district and customer of both sides, the amount and the time of payment. The server's time, in
//!   microseconds. Two that shared all of these would be two in the tables as well, and are counted.
//!
//! A New-Order that was rolled back promises nothing and has no row.

use super::answers::Replies;
use super::transactions::{Plan, Site};
use plimsoll_record::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The file's name in the segment's folder.
pub const FILE: &str = "acknowledged.npy";

/// `kind` of New-Orders.
pub(super) const NEW_ORDER: u8 = 0;
/// `kind` of Payments.
pub(super) const PAYMENT: u8 = 1;

/// The columns, in order. `made_us` is the server's local time, in microseconds since 1970.
pub(super) const COLUMNS: [(&str, FieldType); 11] = [
    ("kind", FieldType::U8),
    ("index", FieldType::U64),
    ("warehouse", FieldType::U32),
    ("district", FieldType::U32),
    ("order", FieldType::U32),
    ("lines", FieldType::U32),
    ("customer_warehouse", FieldType::U32),
    ("customer_district", FieldType::U32),
    ("customer", FieldType::U32),
    ("amount_cents", FieldType::I64),
    ("made_us", FieldType::I64),
];
const ROW_BYTES: usize = 1 + 8 + 7 * 4 + 2 * 8;

/// A ledger that is being written.
#[derive(Debug)]
pub(super) struct Ledger {
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    /// `None` once a row could not be written.
    table: Option<TableWriter>,
    refused: Option<String>,
}

impl Ledger {
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let fields = COLUMNS.map(|(name, kind)| Field::new(name, kind)).to_vec();
        let table = Some(TableWriter::create(&folder.join(FILE), fields)?);
        Ok(Self { writer: Mutex::new(Writer { table, refused: None }) })
    }

    /// Hands the row of an acknowledged transaction to the kernel, if it is of a kind that has one.
    pub(super) fn acknowledge(&self, index: u64, plan: &Plan, replies: &Replies) {
        let Some(row) = row(index, plan, replies) else { return };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(table) = &mut writer.table else { return };
        let written = table.row(&row).and_then(|()| table.flush());
        if let Err(error) = written {
            (writer.table, writer.refused) = (None, Some(format!("{FILE} cannot be written: {error}")));
        }
    }

    /// Why the ledger is not complete, if it is not.
    pub(super) fn refused(&self) -> Option<String> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).refused.clone()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The header's count is a convenience: readers go by the size of the file.
        let _ = writer.table.take().map(TableWriter::close);
    }
}

fn row(index: u64, plan: &Plan, replies: &Replies) -> Option<[u8; ROW_BYTES]> {
    let (kind, site, of, order, lines, cents) = match plan {
        Plan::NewOrder(order) if !order.rolls_back() => {
            (NEW_ORDER, order.site, order.site, replies.order, order.lines().len(), 0)
        }
        Plan::Payment(payment) => (PAYMENT, payment.site, payment.of, 0, 0, payment.cents),
        _ => return None,
    };
    let customer = match plan {
        Plan::NewOrder(order) => order.customer,
        _ => replies.customer,
    };
    let Site { warehouse, district } = site;
    let mut row = [0; ROW_BYTES];
    row[0] = kind;
    row[1..9].copy_from_slice(&index.to_le_bytes());
    let numbers = [warehouse, district, order, lines as i32, of.warehouse, of.district, customer];
    row[9..37]
        .chunks_exact_mut(4)
        .zip(numbers)
        .for_each(|(place, number)| place.copy_from_slice(&number.to_le_bytes()));
    row[37..45].copy_from_slice(&cents.to_le_bytes());
    row[45..].copy_from_slice(&replies.made_us.to_le_bytes());
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::super::OrderEntry;
    use super::*;
    use crate::Workload;
    use plimsoll_record::{Outcome, Table};

    #[test]
    fn rows_are_those_of_acknowledged_transactions() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"name": "order_entry", "warehouses": 3, "seed": 7, "ledger": true}"#;
        let mut orders = OrderEntry::new(&serde_json::from_str(text).unwrap()).unwrap();
        orders.record_in(folder.path()).unwrap();
        let mut terminal = orders.client(1);
        let mut totals = vec![0; orders.total_names().len()];
        let mut expected = Vec::new();
        for index in 0..600 {
            orders.begin(&mut terminal, index);
            (terminal.replies.order, terminal.replies.customer, terminal.replies.made_us) =
                (3001, 77, 5_000 + index as i64);
            let outcome = if index % 5 == 0 { Outcome::Lost } else { Outcome::Done };
            orders.tally(&terminal, outcome, &mut totals);
            match terminal.plan.unwrap() {
                _ if outcome == Outcome::Lost => {}
                Plan::NewOrder(order) if !order.rolls_back() => expected.push([
                    i128::from(NEW_ORDER),
                    index.into(),
                    order.site.district.into(),
                    3001,
                    order.lines().len() as i128,
                    order.customer.into(),
                    0,
                    5_000 + i128::from(index),
                ]),
                Plan::Payment(payment) => expected.push([
                    i128::from(PAYMENT),
                    index.into(),
                    payment.site.district.into(),
                    0,
                    0,
                    77,
                    payment.cents.into(),
                    5_000 + i128::from(index),
                ]),
                _ => {}
            }
        }
        let path = folder.path().join(FILE);
        // What was acknowledged is in the file before it is closed.
        let columns = ["kind", "index", "district", "order", "lines", "customer", "amount_cents", "made_us"]
            .map(|name| Table::read(&path).unwrap().column(name).unwrap());
        let found: Vec<[i128; 8]> =
            (0..columns[0].len()).map(|row| std::array::from_fn(|column| columns[column][row])).collect();
        assert_eq!(found, expected);
        assert!(expected.len() > 350);
        assert!(Table::read(&path).unwrap().column("warehouse").unwrap().iter().all(|&warehouse| warehouse == 2));
        drop(orders);
        assert_eq!(Table::read(&path).unwrap().claimed_rows, expected.len() as u64);
    }
}
