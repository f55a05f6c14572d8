//! Takes the records from the ring while the load runs, and writes the tables.
//!
//! The fact that constrains it: the load shares the CPUs. So the kernel wakes nobody for a record; a few times in a second
//! what has gathered is taken at once.

use super::processes::Processes;
use super::records::{PROCESS_ENDED, QUEUED, Record};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use plimsoll_record::BreakdownWriter;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

/// What was taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Requests by the server's process.
    pub(crate) requests: BTreeMap<u32, u64>,
    /// Of those the ones whose message was read without waiting.
    pub(crate) queued: u64,
    /// Wait events that occurred.
    pub(crate) events: BTreeSet<u32>,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    pub(crate) processes: Processes,
}

struct Taking {
    taken: Taken,
    writer: Option<BreakdownWriter>,
    failed: Option<io::Error>,
    record: Record,
}

impl Taking {
    fn take(&mut self, bytes: &[u8]) {
        if self.record.decode(bytes).is_none() {
            self.taken.unreadable += 1;
            return;
        }
        let request = &self.record.request;
        self.taken.events.extend(self.record.waits.iter().map(|wait| wait.wait));
        if request.flags & PROCESS_ENDED != 0 {
            self.taken.processes.ended(&self.record);
            return;
        }
        self.taken.queued += u64::from(request.flags & QUEUED != 0);
        *self.taken.requests.entry(request.backend_pid).or_insert(0) += 1;
        if let Some(writer) = &mut self.writer {
            if let Err(error) = writer.append(request, self.record.waits.iter().copied()) {
                self.failed = Some(error);
                self.writer = None;
            }
        }
    }
}

fn ring(map: &MapHandle, mut take: impl FnMut(&[u8]) + 'static) -> io::Result<RingBuffer<'static>> {
    let failed = |error: libbpf_rs::Error| io::Error::other(error.to_string());
    let mut builder = RingBufferBuilder::new();
    builder
        .add(map, move |bytes| {
            take(bytes);
            0
        })
        .map_err(failed)?;
    builder.build().map_err(failed)
}

/// Takes what is in the ring.
pub(crate) fn drain(map: &MapHandle, take: impl FnMut(&[u8]) + 'static) -> io::Result<()> {
    ring(map, take)?.consume().map_err(|error| io::Error::other(error.to_string()))
}

/// The thread that takes.
pub(crate) struct Follower {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<Taken>>,
}

impl Follower {
    /// Goes on until it is told to finish; tables are made in `folder`.
    pub(crate) fn start(map: MapHandle, folder: &Path, processes: Processes) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let writer = BreakdownWriter::create(folder)?;
        let thread = std::thread::Builder::new()
            .name("breakdown".to_owned())
            .spawn(move || follow(&map, writer, processes, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Takes the rest and closes the tables.
    pub(crate) fn finish(self) -> io::Result<Taken> {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that takes records panicked")))
    }
}

fn follow(map: &MapHandle, writer: BreakdownWriter, processes: Processes, stopped: &Receiver<()>) -> io::Result<Taken> {
    let taken = Taken { processes, ..Taken::default() };
    let taking = Rc::new(RefCell::new(Taking { taken, writer: Some(writer), failed: None, record: Record::default() }));
    let into = Rc::clone(&taking);
    let ring = ring(map, move |bytes| into.borrow_mut().take(bytes))?;
    loop {
        let last = !matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout));
        ring.consume().map_err(|error| io::Error::other(error.to_string()))?;
        let mut taking = taking.borrow_mut();
        if let Some(error) = taking.failed.take() {
            return Err(error);
        }
        if let Some(writer) = &mut taking.writer {
            writer.flush()?;
        }
        if last {
            break;
        }
    }
    let mut taking = taking.borrow_mut();
    if let Some(writer) = taking.writer.take() {
        writer.close()?;
    }
    Ok(std::mem::take(&mut taking.taken))
}
