//! Reads the tables that [`crate::TableWriter`] writes, closed or cut short.
//!
//! It understands the dialect of `schema/record.md` (packed structured arrays of one dimension), not all of NumPy's format.

use crate::npy::{Field, FieldType, MAGIC};
use std::path::{Path, PathBuf};

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a table of this record.
    #[error("{path}: not a table of a record: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A table in memory.
#[derive(Debug, Clone)]
pub struct Table {
    /// The columns in file order.
    pub fields: Vec<Field>,
    /// Rows that the header claims; 0 in a file that was never closed.
    pub claimed_rows: u64,
    rows: Vec<u8>,
    row_bytes: usize,
}

impl Table {
    /// Reads the whole rows of the file at `path`; a last row that was cut is left out.
    ///
    /// # Errors
    /// When the file cannot be read or its header is not understood.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let bytes = std::fs::read(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Self::parse(&bytes).map_err(|reason| ReadError::Format { path: path.to_owned(), reason })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() < 10 || &bytes[..6] != MAGIC || bytes[6] != 1 {
            return Err("no NumPy header of version 1".to_owned());
        }
        let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = bytes.get(10..data).ok_or("the header is cut short")?;
        let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
        let (fields, claimed_rows) = parse_header(header)?;
        let row_bytes: usize = fields.iter().map(|f| f.kind.size_bytes()).sum();
        if row_bytes == 0 {
            return Err("no columns".to_owned());
        }
        let whole = (bytes.len() - data) / row_bytes * row_bytes;
        Ok(Self { fields, claimed_rows, rows: bytes[data..data + whole].to_vec(), row_bytes })
    }

    /// Number of whole rows.
    pub fn len(&self) -> usize {
        self.rows.len() / self.row_bytes
    }

    /// True if there is no whole row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The whole rows as they are in the file, packed in the order of the columns.
    pub fn packed_rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.chunks_exact(self.row_bytes)
    }

    /// The values of the column `name`, or `None` if the table has no such column. `u8` beyond `i64` does not occur
    /// in a record (times, counts and indexes), so every type widens to i128.
    pub fn column(&self, name: &str) -> Option<Vec<i128>> {
        let place = self.fields.iter().position(|f| f.name == name)?;
        let offset: usize = self.fields[..place].iter().map(|f| f.kind.size_bytes()).sum();
        let kind = self.fields[place].kind;
        Some(self.rows.chunks_exact(self.row_bytes).map(|row| value(&row[offset..], kind)).collect())
    }
}

fn value(bytes: &[u8], kind: FieldType) -> i128 {
    let mut wide = [0u8; 8];
    wide[..kind.size_bytes()].copy_from_slice(&bytes[..kind.size_bytes()]);
    match kind {
        FieldType::I64 => i128::from(i64::from_le_bytes(wide)),
        _ => i128::from(u64::from_le_bytes(wide)),
    }
}

fn parse_header(text: &str) -> Result<(Vec<Field>, u64), String> {
    let list = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).ok_or("no list of columns")?;
    let quoted: Vec<&str> = list.0.split('\'').skip(1).step_by(2).collect();
    let fields = quoted
        .chunks(2)
        .map(|pair| match pair {
            [name, kind] => FieldType::from_descriptor(kind)
                .map(|kind| Field::new(name, kind))
                .ok_or_else(|| format!("column {name} has the type {kind}")),
            _ => Err("a column without a type".to_owned()),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let shape = list.1.split_once('(').and_then(|(_, rest)| rest.split_once(',')).ok_or("no shape")?;
    let rows = shape.0.trim().parse().map_err(|_| "the shape is not a number")?;
    Ok((fields, rows))
}
