//! Which POSTs were answered: `posts.npy` in the segment's folder, a row of one column, `index`, for each.
//!
//! The fact that constrains it: a row is handed to the kernel before the connection asks for more, so that a kill of the server or of
//! this process loses none.

use plimsoll_record::{Field, FieldType, ReadError, Table, TableWriter};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The file's name.
pub const LEDGER: &str = "posts.npy";
const COLUMN: &str = "index";

/// A ledger that is being written.
#[derive(Debug)]
pub(super) struct Ledger {
    table: Mutex<Result<TableWriter, String>>,
}

impl Ledger {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let table = TableWriter::create(&folder.join(LEDGER), vec![Field::new(COLUMN, FieldType::U64)])?;
        Ok(Self { table: Mutex::new(Ok(table)) })
    }

    pub(super) fn acknowledge(&self, index: u64) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(open) = &mut *table else { return };
        if let Err(error) = open.row(&index.to_le_bytes()).and_then(|()| open.flush()) {
            *table = Err(format!("{LEDGER} cannot be written: {error}"));
        }
    }

    /// Closes it; why it is not complete, if it is not.
    pub(super) fn close(&self) -> Result<(), String> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *table, Err("the ledger is closed".to_owned())) {
            Ok(open) => open.close().map(drop).map_err(|error| format!("{LEDGER} cannot be written: {error}")),
            Err(why) => Err(why),
        }
    }
}

/// The indexes in the ledger of a segment's folder.
///
/// # Errors
/// When it is not there or is no table.
pub fn acknowledged(folder: &Path) -> Result<Vec<u64>, ReadError> {
    let column = Table::read(&folder.join(LEDGER))?.column(COLUMN);
    Ok(column.unwrap_or_default().into_iter().map(|index| index as u64).collect())
}
