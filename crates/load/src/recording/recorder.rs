//! What is recorded on its way to the files: batches of rows and sets of histograms circulate between the workers and one
//! writer.
//!
//! The fact that constrains it: a slow disk must not slow the load. The number of batches is fixed; if all are waiting for
//! the disk a row is dropped and counted.

use crate::config::Config;
use crate::recording::keep::Keep;
use crate::recording::seconds::{Merger, SETS_A_WORKER, Second, SecondSet};
use crossbeam_channel::{Receiver, Sender, bounded};
use plimsoll_record::{KIND_NOT_DRAWN, SecondsWriter, Transaction, TransactionWriter};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Rows wait in memory no longer than this, unless a call blocks for longer.
pub(crate) const FLUSH_NS: i64 = 250_000_000;
const ROWS_A_BATCH: usize = 2048;
// Half a million rows, 32 MiB: a journal that commits on a busy disk holds a writer up for seconds.
const BATCHES: usize = 256;

/// The files that a load writes while it runs.
#[derive(Debug)]
pub struct Tables {
    /// One row a transaction.
    pub transactions: TransactionWriter,
    /// Histograms by second; `None` where the rows say it all.
    pub seconds: Option<Seconds>,
}

/// The histograms of each second.
#[derive(Debug)]
pub struct Seconds {
    /// Latency by kind.
    pub latency: SecondsWriter,
    /// Lag.
    pub lag: SecondsWriter,
}

impl Tables {
    /// Creates the files in `folder`.
    ///
    /// # Errors
    /// When one cannot be created; the text names it.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let (latency, lag) = ("latency_seconds.npy", "lag_seconds.npy");
        let seconds = Seconds {
            latency: SecondsWriter::latency(&folder.join(latency)).map_err(named(latency))?,
            lag: SecondsWriter::lag(&folder.join(lag)).map_err(named(lag))?,
        };
        Ok(Self { seconds: Some(seconds), ..Self::of_rows(folder)? })
    }

    /// Creates the table of rows alone.
    ///
    /// # Errors
    /// When it cannot be created; the text names it.
    pub fn of_rows(folder: &Path) -> io::Result<Self> {
        let name = "transactions.npy";
        let transactions = TransactionWriter::create(&folder.join(name)).map_err(named(name))?;
        Ok(Self { transactions, seconds: None })
    }
}

fn named(name: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::other(format!("{name}: {error}"))
}

/// What the writer gets.
#[derive(Debug)]
enum ToWriter {
    Rows(Vec<Transaction>),
    Second(Box<SecondSet>),
}

/// A worker's end.
#[derive(Debug)]
pub(crate) struct RowSink {
    keep: Keep,
    batch: Vec<Transaction>,
    second: Second,
    full: Sender<ToWriter>,
    empty: Receiver<Vec<Transaction>>,
    empty_sets: Receiver<Box<SecondSet>>,
    dropped: u64,
}

impl RowSink {
    /// Records a transaction that has ended; the newest ending so far.
    #[inline]
    pub(crate) fn push(&mut self, row: Transaction) {
        if row.kind != KIND_NOT_DRAWN {
            if self.second.is_past(row.end_ns) {
                self.roll(row.end_ns);
            }
            self.second.set.add(&row);
        }
        if self.keep.keeps(row.index) {
            if self.batch.len() == self.batch.capacity() {
                self.send_batch();
            }
            if self.batch.len() < self.batch.capacity() { self.batch.push(row) } else { self.dropped += 1 }
        }
    }

    /// Records a row that was never begun, waiting for the writer if need be: for after the load.
    pub(crate) fn push_waiting(&mut self, row: Transaction) {
        if self.keep.keeps(row.index) {
            if self.batch.len() == self.batch.capacity() {
                // It fails only when the writer is gone, whose error is reported by it.
                if let Ok(empty) = self.empty.recv() {
                    let full = std::mem::replace(&mut self.batch, empty);
                    let _ = self.full.send(ToWriter::Rows(full));
                }
            }
            if self.batch.len() < self.batch.capacity() { self.batch.push(row) } else { self.dropped += 1 }
        }
    }

    /// Sends what has gathered, if an empty batch is there to go on with.
    pub(crate) fn flush(&mut self, now_ns: i64) {
        if !self.batch.is_empty() {
            self.send_batch();
        }
        if self.second.is_past(now_ns) {
            self.roll(now_ns);
        }
    }

    fn send_batch(&mut self) {
        if let Ok(empty) = self.empty.try_recv() {
            let full = std::mem::replace(&mut self.batch, empty);
            // There is room for every batch; it fails only when the writer is gone, whose error is reported by it.
            let _ = self.full.try_send(ToWriter::Rows(full));
        }
    }

    #[cold]
    fn roll(&mut self, now_ns: i64) {
        if !self.second.set.is_empty()
            && let Ok(empty) = self.empty_sets.try_recv()
        {
            let full = std::mem::replace(&mut self.second.set, empty);
            let _ = self.full.try_send(ToWriter::Second(full));
        }
        self.second.begin(now_ns);
    }

    /// Sends the rest, waiting for the writer if need be, and gives the number of rows dropped.
    pub(crate) fn finish(self) -> u64 {
        let _ = self.full.send(ToWriter::Rows(self.batch));
        if !self.second.set.is_empty() {
            let _ = self.full.send(ToWriter::Second(self.second.set));
        }
        self.dropped
    }
}

/// The writer, and what circulates.
#[derive(Debug)]
pub(crate) struct Recorder {
    keep: Keep,
    kinds: usize,
    full: Sender<ToWriter>,
    empty: Receiver<Vec<Transaction>>,
    empty_sets: Receiver<Box<SecondSet>>,
    writer: JoinHandle<io::Result<u64>>,
}

impl Recorder {
    /// Starts the writer; `failed` is set if it cannot write. At most `sinks` sinks may be asked for.
    pub(crate) fn start(tables: Tables, config: &Config, sinks: usize, failed: Arc<AtomicBool>) -> io::Result<Self> {
        let sets = sinks * SETS_A_WORKER;
        // Every batch and set, those with the sinks too, fits into every channel: nothing ever waits for room.
        let (full, to_write) = bounded(2 * BATCHES + 2 * sinks + sets);
        let (written, empty) = bounded(2 * BATCHES + sinks);
        let (emptied, empty_sets) = bounded(sets + sinks);
        (0..BATCHES).for_each(|_| drop(written.try_send(Vec::with_capacity(ROWS_A_BATCH))));
        (0..sets - sinks).for_each(|_| drop(emptied.try_send(SecondSet::new(config.kinds))));
        let writer = Writer { to_write, written, emptied, failed };
        let writer =
            std::thread::Builder::new().name("record".to_owned()).spawn(move || writer.write_all_of(tables))?;
        Ok(Self { keep: Keep::new(config), kinds: config.kinds, full, empty, empty_sets, writer })
    }

    /// A worker's end; seconds are counted from `started_ns`.
    pub(crate) fn sink(&self, started_ns: i64) -> RowSink {
        RowSink {
            keep: self.keep,
            batch: Vec::with_capacity(ROWS_A_BATCH),
            second: Second::new(SecondSet::new(self.kinds), started_ns),
            full: self.full.clone(),
            empty: self.empty.clone(),
            empty_sets: self.empty_sets.clone(),
            dropped: 0,
        }
    }

    /// Closes the tables once every sink is finished. Gives the number of rows.
    pub(crate) fn close(self) -> io::Result<u64> {
        drop(self.full);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

struct Writer {
    to_write: Receiver<ToWriter>,
    written: Sender<Vec<Transaction>>,
    emptied: Sender<Box<SecondSet>>,
    failed: Arc<AtomicBool>,
}

impl Writer {
    fn write_all_of(self, tables: Tables) -> io::Result<u64> {
        self.write(tables).inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    fn write(&self, tables: Tables) -> io::Result<u64> {
        let Tables { mut transactions, seconds } = tables;
        let mut seconds = seconds.map(|Seconds { latency, lag }| Merger::new(latency, lag));
        for full in &self.to_write {
            match full {
                ToWriter::Rows(mut batch) => {
                    transactions.append(&batch)?;
                    batch.clear();
                    let _ = self.written.try_send(batch);
                }
                ToWriter::Second(set) => {
                    let emptied = |empty| drop(self.emptied.try_send(empty));
                    match &mut seconds {
                        Some(merger) => merger.take(set, emptied)?,
                        None => emptied(set.empty()),
                    }
                }
            }
        }
        seconds.map_or(Ok(()), Merger::close)?;
        transactions.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::{Outcome, Table};

    const ROW: Transaction =
        Transaction { kind: 0, outcome: Outcome::Done, connection: 0, ..Transaction::unbegun(0, 0, 0) };

    #[test]
    fn a_writer_that_is_behind_drops_rows_and_counts_them_and_no_second() {
        let (full, to_write) = bounded(2 * BATCHES);
        let (_written, empty) = bounded(1);
        let (_emptied, empty_sets) = bounded(1);
        let (keep, batch, second) =
            (Keep::new(&Config::plain()), Vec::with_capacity(4), Second::new(SecondSet::new(1), 0));
        let mut sink = RowSink { keep, batch, second, full, empty, empty_sets, dropped: 0 };
        (0..10).for_each(|second| sink.push(Transaction { end_ns: second * 1_000_000_000, ..ROW }));
        assert_eq!(sink.finish(), 6);
        let Ok(ToWriter::Rows(rows)) = to_write.recv() else { panic!("rows come first") };
        assert_eq!(rows.len(), 4);
        let Ok(ToWriter::Second(set)) = to_write.recv() else { panic!("then the second") };
        assert_eq!(set.counts(), (9, 10), "ten seconds counted as the last");
    }

    #[test]
    fn every_row_and_every_second_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let tables = Tables::create(folder.path()).unwrap();
        let recorder = Recorder::start(tables, &Config::plain(), 2, Arc::default()).unwrap();
        let (mut one, mut two) = (recorder.sink(0), recorder.sink(0));
        // Two workers, and the second one a second behind the first.
        for second in 0..20i64 {
            while recorder.empty_sets.len() < 2 {
                std::thread::yield_now();
            }
            (0..250).for_each(|_| one.push(Transaction { end_ns: (second + 1) * 1_000_000_000, ..ROW }));
            two.push(Transaction { end_ns: second * 1_000_000_000, ..ROW });
        }
        assert_eq!(one.finish() + two.finish(), 0);
        assert_eq!(recorder.close().unwrap(), 5_020);
        let table = Table::read(&folder.path().join("latency_seconds.npy")).unwrap();
        let (seconds, counts) = (table.column("second").unwrap(), table.column("count").unwrap());
        let of = |wanted: i128| -> i128 {
            seconds.iter().zip(&counts).filter(|(second, _)| **second == wanted).map(|(_, count)| count).sum()
        };
        assert!((1..20).all(|second| of(second) == 251), "{seconds:?} {counts:?}");
        assert_eq!((of(0), of(20)), (1, 250));
        assert!(seconds.is_sorted(), "a second is written when the others have had time to bring theirs");
    }
}
