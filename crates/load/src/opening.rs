//! Opening connections: all of them at the start, side by side; and during the load those that broke, beside the workers.
//!
//! The fact that constrains it: opening blocks, and no thread that carries load may.

use crate::conversation::Conversation;
use crate::driver::CloseLate;
use crossbeam_channel::{Receiver, Sender, bounded};
use plimsoll_session::{Failure, Opener, Session};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections opened at the same time: a server forks one process after the other, so more of them gain nothing.
const OPENED_SIDE_BY_SIDE: u32 = 8;
/// Descriptors beside those of the connections: files of the record, probes, the server's counters.
const DESCRIPTORS_BESIDE: u64 = 512;
/// A connection that cannot be opened again is tried again after this.
pub(crate) const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// An opening under way when the load is over may take this much longer; then it is left behind.
pub(crate) const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(2);

/// Lets this process have `connections` descriptors and some more; raises the soft limit, and the hard one if it may.
///
/// # Errors
/// When the system's limit is lower.
pub fn raise_descriptor_limit(connections: u32) -> io::Result<()> {
    let needed = u64::from(connections) + DESCRIPTORS_BESIDE;
    let found = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(found.current) {
        return Ok(());
    }
    let maximum = if enough(found.maximum) { found.maximum } else { Some(needed) };
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).map_err(|error| {
        let limit = found.maximum.unwrap_or(needed);
        io::Error::other(format!(
            "{needed} open files are needed, the hard limit is {limit} ({error}): raise ulimit -Hn"
        ))
    })
}

/// Opens `count` connections, several at a time, and gives them in the order of their numbers.
///
/// # Errors
/// When one cannot be opened; the others are then closed again.
pub fn open_all(opener: &dyn Opener, count: u32) -> Result<Vec<Box<dyn Session>>, Failure> {
    let (next, failed) = (AtomicU32::new(0), AtomicBool::new(false));
    let open_some = || {
        let mut opened = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let session = opener.open(number).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            opened.push((number, session));
        }
        Ok(opened)
    };
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count.min(OPENED_SIDE_BY_SIDE)).map(|_| scope.spawn(open_some)).collect();
        let panicked = || Failure { code: Failure::BROKEN.to_owned(), message: "opening panicked".to_owned() };
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| panicked())?);
        // All are joined before the first failure is looked at, or a later one would panic unseen.
        let joined: Vec<Result<Vec<_>, Failure>> = joined.collect();
        joined.into_iter().collect::<Result<Vec<_>, Failure>>()
    })?;
    let mut opened: Vec<(u32, Box<dyn Session>)> = opened.into_iter().flatten().collect();
    opened.sort_unstable_by_key(|(number, _)| *number);
    Ok(opened.into_iter().map(|(_, session)| session).collect())
}

/// A connection that is to be opened again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    worker: usize,
    place: usize,
    number: u32,
}

/// How a connection is opened, by its number.
pub(crate) trait Open<S: ?Sized>: Fn(u32) -> Result<Box<S>, Failure> + Send + 'static {}

impl<S: ?Sized, F: Fn(u32) -> Result<Box<S>, Failure> + Send + 'static> Open<S> for F {}

/// Where a worker finds its connections that were opened again; a bell wakes it.
struct Mailbox<S: ?Sized> {
    arrived: AtomicBool,
    sessions: Mutex<VecDeque<(usize, Box<S>)>>,
    bell: OwnedFd,
}

impl<S: ?Sized> Mailbox<S> {
    fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { arrived: AtomicBool::new(false), sessions: Mutex::new(VecDeque::new()), bell })
    }

    fn put(&self, place: usize, session: Box<S>) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push_back((place, session));
        self.arrived.store(true, Ordering::Release);
        // It cannot fail but by an overflow of 64 bits; and the worker looks up now and then anyway.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn take(&self) -> Option<(usize, Box<S>)> {
        if !self.arrived.load(Ordering::Acquire) {
            return None;
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = sessions.pop_front();
        self.arrived.store(!sessions.is_empty(), Ordering::Release);
        taken
    }
}

/// A worker's end of the opener.
pub(crate) struct Reopening<S: ?Sized> {
    worker: usize,
    asks: Sender<Ask>,
    reopener: Arc<Reopener<S>>,
}

impl<S: ?Sized> Reopening<S> {
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.mailbox().bell.as_fd()
    }

    fn mailbox(&self) -> &Mailbox<S> {
        &self.reopener.mailboxes[self.worker]
    }

    pub(crate) fn ask(&self, place: usize, number: u32) {
        // There is room for every connection, and none is asked for twice before it has come.
        let _ = self.asks.try_send(Ask { worker: self.worker, place, number });
    }

    pub(crate) fn take(&self) -> Option<(usize, Box<S>)> {
        self.mailbox().take()
    }
}

/// Opens again what the workers ask for, on a thread of its own that a server which answers nothing can keep for ever: so it
/// borrows nothing, and the load does not wait for it without limit.
pub(crate) struct Reopener<S: ?Sized> {
    mailboxes: Vec<Mailbox<S>>,
    asks: Receiver<Ask>,
    over: AtomicBool,
}

impl<S: Conversation + ?Sized + 'static> Reopener<S> {
    pub(crate) fn new(workers: usize, connections: usize) -> io::Result<(Arc<Self>, Sender<Ask>)> {
        let mailboxes = (0..workers).map(|_| Mailbox::new()).collect::<io::Result<Vec<_>>>()?;
        let (sender, asks) = bounded(connections);
        Ok((Arc::new(Self { mailboxes, asks, over: AtomicBool::new(false) }), sender))
    }

    pub(crate) fn end_of(self: &Arc<Self>, worker: usize, asks: Sender<Ask>) -> Reopening<S> {
        Reopening { worker, asks, reopener: Arc::clone(self) }
    }

    /// Starts the thread. It ends when every worker's end is gone, or with the opening that is under way at
    /// [`Reopener::end`]; then the receiver hears that nobody is left to send.
    pub(crate) fn start(self: &Arc<Self>, open: impl Open<S>) -> io::Result<Receiver<()>> {
        let (under_way, ended) = bounded(0);
        let this = Arc::clone(self);
        std::thread::Builder::new().name("open".to_owned()).spawn(move || {
            this.run(open);
            drop(under_way);
        })?;
        Ok(ended)
    }

    fn run(&self, open: impl Open<S>) {
        for ask in &self.asks {
            while !self.over.load(Ordering::Relaxed) {
                match open(ask.number) {
                    Ok(session) => {
                        self.mailboxes[ask.worker].put(ask.place, session);
                        break;
                    }
                    Err(_) => std::thread::sleep(TRY_AGAIN_AFTER),
                }
            }
        }
    }

    /// No more is to be opened.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// After [`Reopener::end`]: what closes the connections that come too late. `ended` is what [`Reopener::start`] gave.
    pub(crate) fn late(self: Arc<Self>, ended: Receiver<()>) -> CloseLate {
        Box::new(move || {
            let _ = ended.recv_timeout(LEFT_BEHIND_AFTER);
            let late = self.mailboxes.iter().flat_map(|mailbox| std::iter::from_fn(|| mailbox.take()));
            late.map(|(_, session)| {
                let pid = session.server_process();
                session.close();
                pid
            })
            .collect()
        })
    }
}
