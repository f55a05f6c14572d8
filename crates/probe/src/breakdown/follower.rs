//! Takes the records from the ring while the load runs, and writes the tables.
//!
//! The fact that constrains it: the load shares the CPUs. So the kernel wakes nobody for a record; a few times in a second
//! what has gathered is taken at once.

use super::counters::BUSY;
use super::live::Lives;
use super::live::presence::{self, Found};
use super::live::teller::{self, Teller};
use super::processes::{self, Processes};
use super::records::{PROCESS_ENDED, QUEUED, Record, split};
use super::slices::Watching;
use super::target::Server;
use crate::bpf::{now_ns, summed};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use plimsoll_record::BreakdownWriter;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);
/// While a slice is being closed, which costs more than having it closed.
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// For transactions that are under way when the segment ends.
const PATIENCE: Duration = Duration::from_millis(250);

/// What was taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Requests by the server's process, of transactions that were recorded.
    pub(crate) requests: BTreeMap<u32, u64>,
    /// Transactions.
    pub(crate) rows: u64,
    /// Of those the ones whose first message was read without waiting.
    pub(crate) queued: u64,
    /// Wait events that occurred.
    pub(crate) events: BTreeSet<u32>,
    /// Records that could not be read.
    pub(crate) unreadable: u64,
    pub(crate) processes: Processes,
    /// Transactions that were cut at the end of a slice.
    pub(crate) cut: u64,
    /// When the server was found to have ended.
    pub(crate) server_ended_ns: Option<i64>,
}

struct Taking {
    taken: Taken,
    parent: u32,
    /// What goes on, where that is told.
    lives: Option<Lives>,
    /// Whether a process is the server's, as far as it was asked.
    of_server: HashMap<u32, bool>,
    /// When the newest transaction of a process arrived.
    newest: HashMap<u32, i64>,
    writer: Option<BreakdownWriter>,
    failed: Option<io::Error>,
    record: Record,
}

impl Taking {
    fn new(parent: u32, processes: Processes, lives: Option<Lives>, writer: BreakdownWriter) -> Self {
        Self {
            taken: Taken { processes, ..Taken::default() },
            parent,
            lives,
            of_server: HashMap::new(),
            newest: HashMap::new(),
            writer: Some(writer),
            failed: None,
            record: Record::default(),
        }
    }

    /// Takes a batch.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(rest) = self.record.decode(bytes) else {
                self.taken.unreadable += 1;
                return;
            };
            bytes = rest;
            self.take_one();
        }
    }

    fn take_one(&mut self) {
        let row = &self.record.row;
        if row.flags & PROCESS_ENDED != 0 {
            self.taken.events.extend(self.record.waits.iter().map(|wait| wait.wait));
            self.taken.processes.ended(&self.record);
            self.lives.iter_mut().for_each(|lives| lives.ended(&mut self.record));
            return;
        }
        // What was read from a process's memory may have been handed over meanwhile, too.
        let newest = self.newest.entry(row.backend_pid).or_insert(i64::MIN);
        if row.arrived_ns <= *newest {
            return;
        }
        *newest = row.arrived_ns;
        self.taken.queued += u64::from(row.flags & QUEUED != 0);
        self.lives.iter_mut().for_each(|lives| lives.ended(&mut self.record));
        self.append();
    }

    /// Writes the record's row.
    fn append(&mut self) {
        let row = &self.record.row;
        self.taken.events.extend(self.record.waits.iter().map(|wait| wait.wait));
        self.taken.rows += 1;
        *self.taken.requests.entry(row.backend_pid).or_insert(0) += u64::from(row.requests);
        let Self { of_server, parent, writer, failed, record, .. } = self;
        of_server.insert(record.row.backend_pid, true);
        let mut is_of_server =
            |pid: u32| *of_server.entry(pid).or_insert_with(|| processes::parent_of(pid) == Some(*parent));
        for wait in &mut record.waits {
            if !is_of_server(wait.waker_pid) {
                wait.waker_pid = 0;
            }
        }
        if let Some(to) = writer
            && let Err(error) = to.append(&record.row, record.waits.iter().copied())
        {
            (*failed, *writer) = (Some(error), None);
        }
    }

    /// The server's processes, where somebody wants to know: all of them at the end, before that as far as is known at little cost.
    fn meet(&mut self, last: bool) -> Vec<u32> {
        let pids = match (last, &mut self.lives) {
            (true, _) => processes::children(self.parent),
            (false, Some(lives)) => lives.meet(presence::pids(self.parent, lives.known()), &processes::what),
            (false, None) => Vec::new(),
        };
        // Who wakes somebody may have ended before that is known.
        self.of_server.extend(pids.iter().map(|pid| (*pid, true)));
        pids
    }

    /// Takes the batches as they were found, after what was handed over since.
    fn take_found(&mut self, found: &[Found]) {
        for stored in found.iter().filter_map(|process| process.stored.as_deref()) {
            if let Some((batch, _)) = split(stored) {
                self.take(batch);
            }
        }
    }

    /// Writes what is under way at the end.
    fn append_open(&mut self, found: &[Found], now_ns: i64) {
        let open = self.lives.as_mut().map(|lives| lives.open(found, now_ns)).unwrap_or_default();
        for record in open {
            self.record = record;
            self.append();
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

/// Takes what `pid` has not handed over.
pub(crate) fn take_batch(backends: &MapHandle, pid: u32, mut take: impl FnMut(&[u8])) {
    if let Some(batch) = processes::batch(backends, pid) {
        take(&batch);
    }
}

/// The thread that takes.
pub(crate) struct Follower {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<Taken>>,
}

/// What is followed.
pub(crate) struct Followed {
    pub(crate) ended: MapHandle,
    pub(crate) backends: MapHandle,
    pub(crate) counters: MapHandle,
    pub(crate) watching: Watching,
    pub(crate) server: Server,
    pub(crate) processes: Processes,
    pub(crate) teller: Option<Teller>,
    pub(crate) lives: Option<Lives>,
}

impl Follower {
    /// Goes on until it is told to finish; tables are made in `folder`.
    pub(crate) fn start(followed: Followed, folder: &Path) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let writer = BreakdownWriter::create(folder)?;
        let thread = std::thread::Builder::new()
            .name("breakdown".to_owned())
            .spawn(move || follow(followed, writer, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Takes the rest and closes the tables.
    pub(crate) fn finish(self) -> io::Result<Taken> {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that takes records panicked")))
    }
}

/// A client has its answer a moment before the backend has noted that it was sent.
fn settle(parent: u32, backends: &MapHandle) {
    let began = Instant::now();
    while processes::open(parent, backends) > 0 && began.elapsed() < PATIENCE {
        std::thread::sleep(SHORT_PAUSE);
    }
}

fn follow(followed: Followed, writer: BreakdownWriter, stopped: &Receiver<()>) -> io::Result<Taken> {
    let Followed { ended, backends, counters, mut watching, server, processes, mut teller, lives } = followed;
    let parent = server.cluster.postmaster;
    let taking = Rc::new(RefCell::new(Taking::new(parent, processes, lives, writer)));
    let into = Rc::clone(&taking);
    let ring = ring(&ended, move |bytes| into.borrow_mut().take(bytes))?;
    let consume = || ring.consume().map_err(|error| io::Error::other(error.to_string()));
    let busy = || summed(&counters, 0, BUSY + 1).map_or(0, |counts| counts[BUSY]);
    let mut consumed = Instant::now();
    loop {
        let pause = if watching.slices.is_closing() { SHORT_PAUSE } else { PAUSE };
        let until_due = teller.as_ref().map_or(pause, Teller::until_due);
        let last = !matches!(stopped.recv_timeout(pause.min(until_due)), Err(RecvTimeoutError::Timeout));
        watching.go_on(now_ns(), busy).map_err(|refusal| io::Error::other(refusal.reason))?;
        let mut due = false;
        if let Some(teller) = teller.as_mut().filter(|teller| teller.until_due().is_zero()) {
            due = teller.is_ready();
            if !due {
                teller.go_on(now_ns());
            }
        }
        if !last && !due && consumed.elapsed() < PAUSE {
            continue;
        }
        consumed = Instant::now();
        if last && teller.is_none() {
            settle(parent, &backends);
        }
        let pids = taking.borrow_mut().meet(last);
        // First what is kept, then what was handed over: a batch that was handed over between the two is in both, and is
        // known by its times; the other way round it would be in neither.
        let found = if last || due { teller::read(&backends, &watching, pids) } else { Vec::new() };
        let read_ns = now_ns();
        consume()?;
        let mut taking = taking.borrow_mut();
        taking.take_found(&found);
        if let (true, Taking { lives: Some(lives), .. }, Some(teller)) = (last || due, &mut *taking, &mut teller) {
            teller.tell(lives, &found, &server, &watching, read_ns);
        }
        if last {
            taking.append_open(&found, read_ns);
        }
        if let Some(error) = taking.failed.take() {
            return Err(error);
        }
        if let Some(writer) = &mut taking.writer {
            writer.flush()?;
        }
        if (last || due) && taking.taken.server_ended_ns.is_none() {
            taking.taken.server_ended_ns = (!server.cluster.runs()).then_some(read_ns);
        }
        if last {
            break;
        }
    }
    let mut taking = taking.borrow_mut();
    taking.taken.cut = watching.slices.cut();
    if let Some(writer) = taking.writer.take() {
        writer.close()?;
    }
    Ok(std::mem::take(&mut taking.taken))
}
