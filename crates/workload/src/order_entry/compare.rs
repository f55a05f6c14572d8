//! Ledgers against the database, after a crash and a recovery: what was acknowledged must be there, and once.
//!
//! The rows go to the server, which compares them there: a temporary table of what was acknowledged by what identifies it,
//! beside how often the tables hold that. The consistency conditions say the rest (lines of an order, balances of a payment).

use super::ledger::{COLUMNS, NEW_ORDER, PAYMENT};
use super::scale::ORDERS;
use crate::checks::exact;
use plimsoll_record::{Check, Field, ReadError, Table};
use plimsoll_target::postgres::{Client, Error, put_row};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// No more lost ones are listed than this; all are counted.
const LISTED_MAX: i64 = 10_000;
/// From 1970 to 2000, from when the server counts.
const YEAR_2000_US: i64 = 946_684_800_000_000;

/// A ledger that could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The file.
    #[error(transparent)]
    File(#[from] ReadError),
    /// Its columns are not those of a ledger.
    #[error("{0}: not a ledger")]
    Columns(PathBuf),
    /// The server.
    #[error(transparent)]
    Server(#[from] Error),
}

/// What became of the transactions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Rows of the ledgers.
    pub acknowledged: i64,
    /// Of these, not in the database.
    pub lost: i64,
    /// Found once more than acknowledged.
    pub twice: i64,
}

/// An acknowledged transaction that is not in the database.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Lost {
    /// new_order or payment.
    pub kind: String,
    /// The transaction's index.
    pub index: i64,
    /// Where it was made.
    pub warehouse: i64,
    /// Where it was made.
    pub district: i64,
    /// The order's number; 0 for a Payment.
    pub order: i64,
    /// Where the customer is at home.
    pub customer_warehouse: i64,
    /// Where the customer is at home.
    pub customer_district: i64,
    /// The customer.
    pub customer: i64,
    /// What was paid; 0 for a New-Order.
    pub amount_cents: i64,
    /// The server's local time, in microseconds since 1970.
    pub made_us: i64,
}

/// What the ledgers and the database say together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// New-Orders.
    pub new_orders: Fate,
    /// Payments.
    pub payments: Fate,
    /// Those that were lost, by index; the first ten thousand.
    pub lost: Vec<Lost>,
}

impl Compared {
    /// The same as checks: nothing is lost, and nothing there twice.
    pub fn checks(&self) -> Vec<Check> {
        let of = |name: &str, fate: Fate| {
            let check = |what: &str, count| exact(format!("ledger: acknowledged {name} {what}"), 0, count);
            [check("that are lost", fate.lost), check("that are there twice", fate.twice)]
        };
        [of("New-Orders", self.new_orders), of("Payments", self.payments)].concat()
    }
}

const TABLE: &str = "CREATE TEMPORARY TABLE acknowledged (kind integer, index bigint, w integer, d integer, o integer, \
    lines integer, cw integer, cd integer, c integer, cents bigint, made timestamp)";

/// What is found of each, by what identifies it.
fn found_sql() -> String {
    format!(
        "CREATE TEMPORARY TABLE compared AS \
         SELECT a.*, coalesce(f.n, 0) AS found FROM \
         (SELECT kind, w, d, o, lines, cw, cd, c, cents, made, min(index) AS index, count(*) AS n FROM acknowledged \
          GROUP BY kind, w, d, o, lines, cw, cd, c, cents, made) a \
         LEFT JOIN \
         (SELECT {NEW_ORDER} AS kind, o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS lines, o_w_id AS cw, o_d_id AS cd, \
          o_c_id AS c, 0::bigint AS cents, o_entry_d AS made, count(*) AS n FROM orders WHERE o_id > {ORDERS} \
          GROUP BY 2, 3, 4, 5, 8, 10 \
          UNION ALL SELECT {PAYMENT}, h_w_id, h_d_id, 0, 0, h_c_w_id, h_c_d_id, h_c_id, (100 * h_amount)::bigint, h_date, \
          count(*) FROM history WHERE h_date >= (SELECT min(made) FROM acknowledged) GROUP BY 2, 3, 6, 7, 8, 9, 10) f \
         USING (kind, w, d, o, lines, cw, cd, c, cents, made)"
    )
}

/// Compares the ledgers in `files` with the tables in the search path.
///
/// # Errors
/// When a file is not a ledger, or the server refuses.
pub fn compare(client: &mut Client, files: &[PathBuf]) -> Result<Compared, CompareError> {
    client.run("SET work_mem = '256MB'")?;
    client.run(TABLE)?;
    for file in files {
        copy(client, file)?;
    }
    client.run("ANALYZE acknowledged")?;
    client.run(&found_sql())?;
    let compared =
        Compared { new_orders: fate(client, NEW_ORDER)?, payments: fate(client, PAYMENT)?, lost: lost(client)? };
    client.run("DROP TABLE acknowledged, compared; RESET work_mem")?;
    Ok(compared)
}

fn copy(client: &mut Client, file: &Path) -> Result<(), CompareError> {
    let table = Table::read(file)?;
    if table.fields != COLUMNS.map(|(name, kind)| Field::new(name, kind)) {
        return Err(CompareError::Columns(file.to_owned()));
    }
    let mut copy = client.copy_in("COPY acknowledged FROM STDIN (FORMAT binary)")?;
    for row in table.packed_rows() {
        let integer = |place: usize| {
            let at = 9 + 4 * place;
            i32::from_le_bytes(std::array::from_fn(|byte| row[at + byte]))
        };
        let long = |at: usize| i64::from_le_bytes(std::array::from_fn(|byte| row[at + byte]));
        copy.rows(|out| {
            put_row(out, COLUMNS.len() as u16, |values| {
                values.integer(row[0].into());
                values.bigint(long(1));
                (0..7).for_each(|place| values.integer(integer(place)));
                values.bigint(long(37));
                values.timestamp(long(45) - YEAR_2000_US);
            });
        })?;
    }
    copy.finish()?;
    Ok(())
}

fn fate(client: &mut Client, kind: u8) -> Result<Fate, Error> {
    let sql = format!(
        "SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(greatest(n - found, 0)), 0)::bigint, \
         coalesce(sum(greatest(found - n, 0)), 0)::bigint FROM compared WHERE kind = {kind}"
    );
    let found = client.integers(&sql)?;
    Ok(Fate { acknowledged: found[0], lost: found[1], twice: found[2] })
}

fn lost(client: &mut Client) -> Result<Vec<Lost>, Error> {
    let sql = format!(
        "SELECT json_build_object('kind', CASE kind WHEN {NEW_ORDER} THEN 'new_order' ELSE 'payment' END, 'index', index, \
         'warehouse', w, 'district', d, 'order', o, 'customer_warehouse', cw, 'customer_district', cd, 'customer', c, \
         'amount_cents', cents, 'made_us', (extract(epoch FROM made) * 1000000)::bigint) \
         FROM compared WHERE found < n ORDER BY index LIMIT {LISTED_MAX}"
    );
    let one = |row: Vec<Option<String>>| {
        let found = row.first().and_then(Option::as_deref).and_then(|text| serde_json::from_str(text).ok());
        found.ok_or_else(|| Error::Protocol("a malformed row of what was lost".to_owned()))
    };
    client.rows(&sql)?.into_iter().map(one).collect()
}
