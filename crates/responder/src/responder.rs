//! The connections of a server, shared by a few threads.
//!
//! The fact that constrains it: a connection is heard by one thread at a time. So each is in the epoll set for one event, and put there
//! again by the thread that has gone on with it.

use crate::cgi;
use crate::connection::{Connection, Waits};
use crate::fastcgi::{self, Request};
use crate::listener::{Listen, Listener};
use crate::program::Program;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers under which the listener and the bell are in the epoll set; no connection has them.
const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
/// The last name of a path whose requests are answered by a process of their own.
const CGI: &[u8] = b"/cgi";

/// What it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads, and so processes that are started for requests at once.
    pub threads: u32,
    /// Connections that are open at once; further ones wait in the kernel's queue.
    pub connections: u32,
}

/// What it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were answered.
    pub requests: u64,
    /// Those of them that were answered with another status than 200.
    pub refused: u64,
    /// Processes that were started for a request.
    pub processes: u64,
    /// Connections that were taken.
    pub connections: u64,
    /// As many were open at once at most.
    pub connections_max: u64,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    refused: AtomicU64,
    processes: AtomicU64,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Open {
    /// Those that wait; of the others each is with a thread.
    waiting: HashMap<u64, Connection>,
    count: u64,
    count_max: u64,
    /// Of all so far, and the number of the next one.
    taken: u64,
    /// No more are taken until one is closed.
    is_full: bool,
}

/// What answers a server.
#[derive(Debug)]
pub struct Responder {
    listener: Listener,
    epoll: OwnedFd,
    bell: Arc<OwnedFd>,
    program: Program,
    /// The document root and the program's folder, for processes that are started for requests.
    folders: (PathBuf, PathBuf),
    executable: PathBuf,
    limits: Limits,
    open: Mutex<Open>,
    counts: Counts,
}

/// Ends a responder from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    /// Has it take up nothing more.
    pub fn stop(&self) {
        // A counter takes any number of such writes but the last of 2^64.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

fn once(flags: epoll::EventFlags) -> epoll::EventFlags {
    flags | epoll::EventFlags::ONESHOT
}

impl Responder {
    /// One that listens, for the document root `root` with the program's files in `folder`. `executable` answers a request as a CGI
    /// program.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub fn new(
        listen: &Listen,
        (root, folder): (&Path, &Path),
        executable: PathBuf,
        limits: Limits,
    ) -> io::Result<Self> {
        let listener = Listener::bound(listen)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = epoll::EventData::new_u64;
        epoll::add(&epoll, &listener, data(LISTENER), once(epoll::EventFlags::IN))?;
        // Nobody takes it back, so that every thread hears it.
        epoll::add(&epoll, &bell, data(BELL), epoll::EventFlags::IN)?;
        Ok(Self {
            listener,
            epoll,
            bell: Arc::new(bell),
            program: Program::new(root, folder),
            folders: (root.to_owned(), folder.to_owned()),
            executable,
            limits,
            open: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.bell))
    }

    /// Answers until it is stopped. A request that a thread is at is answered before.
    ///
    /// # Errors
    /// When the kernel refuses to wait for connections.
    pub fn run(&self) -> io::Result<Totals> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.limits.threads).map(|_| scope.spawn(|| self.work())).collect();
            let mut all = Ok(());
            for thread in threads {
                let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
                // Without one of them the others are fewer than was asked for.
                all = all.and(ended.inspect_err(|_| self.stopper().stop()));
            }
            all
        })?;
        let open = self.open();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { requests, refused, processes } = &self.counts;
        let (connections, connections_max) = (open.taken, open.count_max);
        Ok(Totals {
            requests: count(requests),
            refused: count(refused),
            processes: count(processes),
            connections,
            connections_max,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> io::Result<()> {
        // One event at a time: another thread is free for the next.
        let mut events = Vec::with_capacity(1);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    BELL => return Ok(()),
                    LISTENER => self.accept()?,
                    number => self.go_on(number)?,
                }
            }
        }
    }

    fn accept(&self) -> io::Result<()> {
        let mut open = self.open();
        loop {
            open.is_full = open.count >= self.limits.connections.into();
            if open.is_full {
                return Ok(());
            }
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                // Of descriptors or memory there are no more until a connection is closed; without any that waits for ever.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) if open.count > 0 => {
                    open.is_full = true;
                    return Ok(());
                }
                // Nobody waits, or whoever did has gone.
                Err(_) => return self.wait_for(&self.listener, LISTENER, epoll::EventFlags::IN),
            };
            let (number, connection) = (open.taken, Connection::new(socket));
            open.taken += 1;
            open.count += 1;
            open.count_max = open.count_max.max(open.count);
            let data = epoll::EventData::new_u64(number);
            epoll::add(&self.epoll, &connection, data, once(epoll::EventFlags::IN))?;
            open.waiting.insert(number, connection);
        }
    }

    fn wait_for(&self, descriptor: impl AsFd, number: u64, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, epoll::EventData::new_u64(number), once(flags))?)
    }

    fn go_on(&self, number: u64) -> io::Result<()> {
        let Some(mut connection) = self.open().waiting.remove(&number) else { return Ok(()) };
        let flags = match connection.go_on(|request, out| self.answer(request, out)) {
            Waits::ToRead => epoll::EventFlags::IN,
            Waits::ToWrite => epoll::EventFlags::OUT,
            Waits::Over => {
                drop(connection);
                let mut open = self.open();
                open.count -= 1;
                if std::mem::take(&mut open.is_full) {
                    self.wait_for(&self.listener, LISTENER, epoll::EventFlags::IN)?;
                }
                return Ok(());
            }
        };
        // Under the lock: a thread that hears of it at once finds it there.
        let mut open = self.open();
        self.wait_for(&connection, number, flags)?;
        open.waiting.insert(number, connection);
        Ok(())
    }

    fn answer(&self, request: &Request, out: &mut Vec<u8>) {
        let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        add(&self.counts.requests);
        if request.variable("SCRIPT_NAME").ends_with(CGI) {
            add(&self.counts.processes);
            return self.answer_by_process(request, out);
        }
        let variable = |name: &str| request.variable(name);
        let answered = self.program.answer(&cgi::asked(variable, &request.body), cgi::now_s(), std::process::id());
        if answered.status != 200 {
            add(&self.counts.refused);
        }
        let error = (answered.status >= 500).then(|| String::from_utf8_lossy(&answered.body));
        let head = cgi::head(&answered);
        fastcgi::answer(out, request.id, &[head.as_bytes(), &answered.body], error.as_deref());
    }

    fn answer_by_process(&self, request: &Request, out: &mut Vec<u8>) {
        let (root, folder) = &self.folders;
        match cgi::start(&self.executable, (root, folder), request.variables(), &request.body) {
            Ok((answer, error)) => {
                if !answer.starts_with(b"Status: 200 ") {
                    self.counts.refused.fetch_add(1, Ordering::Relaxed);
                }
                fastcgi::answer(out, request.id, &[&answer], Some(&String::from_utf8_lossy(&error)));
            }
            Err(error) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                let why = format!("{}: {error}\n", self.executable.display());
                let answer = "Status: 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\n";
                fastcgi::answer(out, request.id, &[answer.as_bytes(), why.as_bytes()], Some(&why));
            }
        }
    }
}
