//! `\gset`: the columns of a row become variables.

use super::names::{Names, is_valid};
use super::variables::Variables;
use plimsoll_target::postgres::wire::row_values;

/// What a RowDescription says of a column behind its name: six numbers.
const FIELD_BYTES: usize = 18;

/// The answer to a command with `\gset`, kept until all of it was seen: only the row of the last statement counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    description: Vec<u8>,
    row: Vec<u8>,
    /// How many rows the result has so far.
    rows: u64,
}

impl Columns {
    /// A command with `\gset` is sent.
    pub(super) fn await_answer(&mut self) {
        self.row.clear();
        self.rows = 0;
    }

    /// A result begins.
    pub(super) fn described(&mut self, body: &[u8]) {
        keep(&mut self.description, body);
        self.await_answer();
    }

    pub(super) fn row(&mut self, body: &[u8]) {
        keep(&mut self.row, body);
        self.rows += 1;
    }

    /// Sets the variables, each called as its column behind `prefix`. NULL becomes an empty text.
    ///
    /// # Errors
    /// If there is not exactly one row, a column's name makes no variable's name, or the messages are malformed.
    pub(super) fn set(&self, prefix: &str, variables: &mut Variables, names: &Names) -> Result<(), String> {
        if self.rows != 1 {
            return Err(format!("gset: expected one row, got {}", self.rows));
        }
        let malformed = || "a malformed row".to_owned();
        let values = row_values(&self.row).ok_or_else(malformed)?;
        let (_, mut fields) = self.description.split_first_chunk::<2>().ok_or_else(malformed)?;
        for value in values {
            let length = fields.iter().position(|&byte| byte == 0).ok_or_else(malformed)?;
            let name = String::from_utf8_lossy(&fields[..length]);
            fields = fields.get(length + 1 + FIELD_BYTES..).ok_or_else(malformed)?;
            let place = if prefix.is_empty() { names.find(&name) } else { names.find(&format!("{prefix}{name}")) };
            match place {
                Some(place) => variables.set_text(place, value.unwrap_or_default()),
                // No script of the run looks at it.
                None if is_valid(&format!("{prefix}{name}")) => {}
                None => return Err(format!("gset: invalid variable name: \"{prefix}{name}\"")),
            }
        }
        Ok(())
    }
}

fn keep(room: &mut Vec<u8>, body: &[u8]) {
    room.clear();
    room.extend_from_slice(body);
}
