//! Tables whose columns are the fields of a type, in its order: the type says what a row is, and nothing else has to.

use crate::npy::{Field, FieldType, TableWriter};
use std::io;
use std::marker::PhantomData;
use std::path::Path;

/// What stands in one column of one row.
pub(crate) trait Cell: Copy {
    const KIND: FieldType;

    fn pack(self, row: &mut Vec<u8>);
}

macro_rules! cells {
    ($($number:ty: $kind:ident),*) => {$(
        impl Cell for $number {
            const KIND: FieldType = FieldType::$kind;

            fn pack(self, row: &mut Vec<u8>) {
                row.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
cells!(u8: U8, u32: U32, i64: I64);

/// A row of a table.
pub trait TableRow {
    /// The table's name in its folder.
    const FILE: &'static str;

    /// The columns in their order.
    fn fields() -> Vec<Field>;

    /// Appends the values, in the order of the columns.
    fn pack(&self, row: &mut Vec<u8>);
}

/// Declares a type whose fields are the columns of a table.
macro_rules! table_row {
    ($(#[$about_row:meta])* $see:vis $row:ident in $file:literal { $($(#[$about:meta])* $column:ident: $number:ty,)* }) => {
        $(#[$about_row])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $see struct $row {
            $($(#[$about])* $see $column: $number,)*
        }

        impl $crate::rows::TableRow for $row {
            const FILE: &'static str = $file;

            fn fields() -> Vec<$crate::npy::Field> {
                vec![$($crate::npy::Field::new(stringify!($column), <$number as $crate::rows::Cell>::KIND)),*]
            }

            fn pack(&self, row: &mut Vec<u8>) {
                $($crate::rows::Cell::pack(self.$column, row);)*
            }
        }
    };
}
pub(crate) use table_row;

/// Writes a table of such rows.
#[derive(Debug)]
pub struct RowWriter<Row> {
    table: TableWriter,
    packed: Vec<u8>,
    of: PhantomData<fn(&Row)>,
}

impl<Row: TableRow> RowWriter<Row> {
    /// Creates the file in `folder`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let table = TableWriter::create(&folder.join(Row::FILE), Row::fields())?;
        Ok(Self { table, packed: Vec::new(), of: PhantomData })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn append(&mut self, row: &Row) -> io::Result<()> {
        self.packed.clear();
        row.pack(&mut self.packed);
        self.table.row(&self.packed)
    }

    /// Hands what was appended to the kernel.
    ///
    /// # Errors
    /// When the file system refuses the bytes.
    pub fn flush(&mut self) -> io::Result<()> {
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

/// A table of this one row, as its readers have it.
#[cfg(test)]
pub(crate) fn read_back<Row: TableRow>(row: Row) -> crate::Table {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RowWriter::create(folder.path()).unwrap();
    writer.append(&row).unwrap();
    assert_eq!(writer.close().unwrap(), 1);
    crate::Table::read(&folder.path().join(Row::FILE)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    table_row! {
        /// Of each type one.
        Known in "known.npy" {
            /// Its columns stand as its fields do.
            small: u8,
            /// Below 0, too.
            wide: i64,
            /// The last one.
            word: u32,
        }
    }

    #[test]
    fn columns_stand_in_the_order_of_the_fields() {
        let mut packed = Vec::new();
        Known { small: 1, wide: -2, word: 3 }.pack(&mut packed);
        assert_eq!(packed, [&[1][..], &(-2_i64).to_le_bytes(), &3_u32.to_le_bytes()].concat());
        let table = read_back(Known { small: 1, wide: -2, word: 3 });
        let names: Vec<&str> = table.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!((names, table.column("wide").unwrap()), (vec!["small", "wide", "word"], vec![-2]));
    }
}
