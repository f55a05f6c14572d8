//! Writes one-dimensional NumPy structured arrays, little-endian and packed.
//!
//! The header has a fixed length with room for any row count: it is written with 0 rows when the file is created and
//! rewritten in place on close, so a file that was never closed differs from a closed one in its count only.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Signed, 8 bytes.
    I64,
}

impl FieldType {
    /// Bytes of one value.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 | Self::I64 => 8,
        }
    }

    /// NumPy's name of the type.
    pub const fn descriptor(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I64 => "<i8",
        }
    }

    /// The inverse of [`FieldType::descriptor`].
    pub fn from_descriptor(descriptor: &str) -> Option<Self> {
        [Self::U8, Self::U16, Self::U32, Self::U64, Self::I64].into_iter().find(|t| t.descriptor() == descriptor)
    }
}

/// A column: its name and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The column's name, an ASCII identifier.
    pub name: String,
    /// The column's type.
    pub kind: FieldType,
}

impl Field {
    /// A column called `name` of type `kind`.
    pub fn new(name: &str, kind: FieldType) -> Self {
        Self { name: name.to_owned(), kind }
    }
}

pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy asks that the data begins at a multiple of this.
const ALIGNMENT_BYTES: usize = 64;
/// As many digits as a row count can have.
const COUNT_DIGITS_MAX: usize = 20;

fn header(fields: &[Field], rows: u64) -> Vec<u8> {
    let columns: String = fields.iter().map(|f| format!("('{}', '{}'), ", f.name, f.kind.descriptor())).collect();
    let text = |count: &str| format!("{{'descr': [{columns}], 'fortran_order': False, 'shape': ({count},), }}");
    let longest = text(&"9".repeat(COUNT_DIGITS_MAX)).len();
    let prefix = MAGIC.len() + 4;
    let total = (prefix + longest + 1).next_multiple_of(ALIGNMENT_BYTES);
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    let length = u16::try_from(total - prefix).expect("a table has fewer columns than fill 64 KiB of header");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text(&rows.to_string()).as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// A table being written: rows are appended, the header is completed by [`TableWriter::close`].
#[derive(Debug)]
pub struct TableWriter {
    file: BufWriter<File>,
    fields: Vec<Field>,
    row_bytes: usize,
    rows: u64,
}

impl TableWriter {
    /// Creates (or empties) the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be created or its header not written.
    pub fn create(path: &Path, fields: Vec<Field>) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(64 * 1024, File::create(path)?);
        file.write_all(&header(&fields, 0))?;
        file.flush()?;
        let row_bytes = fields.iter().map(|f| f.kind.size_bytes()).sum();
        Ok(Self { file, fields, row_bytes, rows: 0 })
    }

    /// Appends one row, already packed in the order of the columns.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    ///
    /// # Panics
    /// When `row` has not the length of a row.
    pub fn row(&mut self, row: &[u8]) -> io::Result<()> {
        assert_eq!(row.len(), self.row_bytes, "a row of another table");
        self.rows += 1;
        self.file.write_all(row)
    }

    /// Appends whole rows, packed one behind the other.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    ///
    /// # Panics
    /// When `rows` is not a whole number of rows.
    pub fn rows(&mut self, rows: &[u8]) -> io::Result<()> {
        assert_eq!(rows.len() % self.row_bytes, 0, "rows of another table");
        self.rows += (rows.len() / self.row_bytes) as u64;
        self.file.write_all(rows)
    }

    /// Hands what was written to the kernel, so that a kill of this process loses none of it.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Writes the row count into the header and closes the file. Gives the number of rows.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn close(mut self) -> io::Result<u64> {
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header(&self.fields, self.rows))?;
        self.file.flush()?;
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_one_length_whatever_the_count() {
        let fields = [Field::new("t_ns", FieldType::I64), Field::new("kind", FieldType::U8)];
        let short = header(&fields, 0);
        let long = header(&fields, u64::MAX);
        assert_eq!(short.len(), long.len());
        assert_eq!(short.len() % ALIGNMENT_BYTES, 0);
        assert!(short.ends_with(b"\n"));
    }
}
