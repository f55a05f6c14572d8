//! The table of waits of a load on files: one row for each time that a session's thread was off its CPU.

use crate::rows::table_row;

table_row! {
    /// A row of `file_waits.npy`; units are in the names.
    pub FileWaitRow in "file_waits.npy" {
        /// The session, as `connection` of `transactions.npy`.
        connection: u32,
        /// Place in the report's `places`.
        place: u32,
        /// When it left its CPU.
        left_ns: i64,
        /// When it had one again.
        back_ns: i64,
        /// Of that time, waiting for a CPU.
        run_queue_ns: i64,
        /// On a CPU in all of the thread's life up to `left_ns`, by the kernel's own sum.
        runtime_ns: i64,
        /// How often the thread had left a CPU, by the kernel's own count.
        switches: i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::read_back;

    #[test]
    fn a_row_has_its_columns_by_name() {
        let (left_ns, back_ns, run_queue_ns, runtime_ns) = (3, 4, 5, 6);
        let row = FileWaitRow { connection: 1, place: 2, left_ns, back_ns, run_queue_ns, runtime_ns, switches: 7 };
        let table = read_back(row);
        let names = ["connection", "place", "left_ns", "back_ns", "run_queue_ns", "runtime_ns", "switches"];
        for (name, value) in names.into_iter().zip(1..) {
            assert_eq!(table.column(name).unwrap(), [value], "{name}");
        }
    }
}
