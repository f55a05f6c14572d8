//! Rows on their way to `transactions.npy`: batches circulate between the workers and one writer.
//!
//! The fact that constrains it: a slow disk must not slow the load. The number of batches is fixed; if all are waiting for
//! the disk a row is dropped and counted.

use crossbeam_channel::{Receiver, Sender, bounded};
use plimsoll_record::{Transaction, TransactionWriter};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const ROWS_A_BATCH: usize = 2048;
const BATCHES: usize = 64;

/// A worker's end.
#[derive(Debug)]
pub(crate) struct Lane {
    batch: Vec<Transaction>,
    full: Sender<Vec<Transaction>>,
    empty: Receiver<Vec<Transaction>>,
    dropped: u64,
}

impl Lane {
    pub(crate) fn push(&mut self, row: Transaction) {
        if self.batch.len() == self.batch.capacity() {
            self.flush();
        }
        if self.batch.len() < self.batch.capacity() { self.batch.push(row) } else { self.dropped += 1 }
    }

    /// Sends what has gathered, if an empty batch is there to go on with.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if let Ok(empty) = self.empty.try_recv() {
            let full = std::mem::replace(&mut self.batch, empty);
            // There is room for every batch; it fails only when the writer is gone, whose error is reported by it.
            let _ = self.full.try_send(full);
        }
    }

    /// Sends the rest, waiting for the writer if need be, and gives the number of rows dropped.
    pub(crate) fn finish(self) -> u64 {
        let _ = self.full.send(self.batch);
        self.dropped
    }
}

/// The writer and the batches.
#[derive(Debug)]
pub(crate) struct Recorder {
    full: Sender<Vec<Transaction>>,
    empty: Receiver<Vec<Transaction>>,
    writer: JoinHandle<io::Result<u64>>,
}

impl Recorder {
    /// Starts the writer; `failed` is set if it cannot write.
    pub(crate) fn start(table: TransactionWriter, failed: std::sync::Arc<AtomicBool>) -> io::Result<Self> {
        let (full, to_write) = bounded(2 * BATCHES);
        let (written, empty) = bounded(2 * BATCHES);
        for _ in 0..BATCHES {
            let _ = written.try_send(Vec::with_capacity(ROWS_A_BATCH));
        }
        let writer = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(move || write(table, &to_write, &written, &failed))?;
        Ok(Self { full, empty, writer })
    }

    pub(crate) fn lane(&self) -> Lane {
        let (full, empty) = (self.full.clone(), self.empty.clone());
        Lane { batch: Vec::with_capacity(ROWS_A_BATCH), full, empty, dropped: 0 }
    }

    /// Closes the table once every lane is finished. Gives the number of rows.
    pub(crate) fn close(self) -> io::Result<u64> {
        drop(self.full);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

fn write(
    mut table: TransactionWriter,
    full: &Receiver<Vec<Transaction>>,
    empty: &Sender<Vec<Transaction>>,
    failed: &AtomicBool,
) -> io::Result<u64> {
    for mut batch in full {
        table.append(&batch).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        batch.clear();
        let _ = empty.try_send(batch);
    }
    table.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::Outcome;

    const ROW: Transaction = Transaction {
        index: 0,
        planned_ns: 0,
        start_ns: 0,
        end_ns: 0,
        connection: 0,
        backend_pid: 0,
        kind: 0,
        outcome: Outcome::Done,
        statements: 0,
        error: 0,
    };

    #[test]
    fn a_writer_that_is_behind_drops_rows_and_counts_them() {
        let (full, to_write) = bounded(2 * BATCHES);
        let (_written, empty) = bounded(1);
        let mut lane = Lane { batch: Vec::with_capacity(4), full, empty, dropped: 0 };
        (0..10).for_each(|_| lane.push(ROW));
        assert_eq!(lane.finish(), 6);
        assert_eq!(to_write.recv().unwrap().len(), 4);
    }

    #[test]
    fn every_row_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let table = TransactionWriter::create(&folder.path().join("transactions.npy")).unwrap();
        let recorder = Recorder::start(table, std::sync::Arc::default()).unwrap();
        let (mut one, mut two) = (recorder.lane(), recorder.lane());
        (0..5000).for_each(|_| one.push(ROW));
        two.push(ROW);
        assert_eq!(one.finish() + two.finish(), 0);
        assert_eq!(recorder.close().unwrap(), 5001);
    }
}
