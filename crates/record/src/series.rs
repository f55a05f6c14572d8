//! Series: tables whose first column is `t_ns` and whose columns, all signed 64-bit, depend on what the machine can give.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::path::Path;

/// The value of a single sample that could not be read. Never 0: a missing sample is not a count of nothing.
pub const ABSENT_SAMPLE: i64 = i64::MIN;

/// Writes one series. Each row reaches the kernel at once: a series is slow (1 s) and a kill should lose nothing.
#[derive(Debug)]
pub struct SeriesWriter {
    table: TableWriter,
    columns: usize,
    packed: Vec<u8>,
}

impl SeriesWriter {
    /// Creates the file with `t_ns` and then `columns`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, columns: &[&str]) -> io::Result<Self> {
        let names = std::iter::once(&"t_ns").chain(columns);
        let fields = names.map(|name| Field::new(name, FieldType::I64)).collect();
        let table = TableWriter::create(path, fields)?;
        Ok(Self { table, columns: columns.len(), packed: Vec::with_capacity(8 * (columns.len() + 1)) })
    }

    /// Appends the sample taken at `t_ns`.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    ///
    /// # Panics
    /// When `values` has not one value a column.
    pub fn sample(&mut self, t_ns: i64, values: &[i64]) -> io::Result<()> {
        assert_eq!(values.len(), self.columns, "a sample of another series");
        self.packed.clear();
        self.packed.extend_from_slice(&t_ns.to_le_bytes());
        values.iter().for_each(|value| self.packed.extend_from_slice(&value.to_le_bytes()));
        self.table.row(&self.packed)?;
        self.table.flush()
    }

    /// Completes the header. Gives the number of rows.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn close(self) -> io::Result<u64> {
        self.table.close()
    }
}
