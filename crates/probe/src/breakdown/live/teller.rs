//! When a line about what goes on is due, what it takes to make it, and how it is handed on.
//!
//! The fact that constrains it: whoever reads the lines may be slow, and records must be taken meanwhile. So a thread of its own
//! hands them on, one at a time; a line that is due while it does is left out, and what it had told is in the next.

use super::presence::{self, Found};
use super::{Lives, Moment};
use crate::bpf::now_ns;
use crate::breakdown::buckets::Buckets;
use crate::breakdown::processes;
use crate::breakdown::slices::Watching;
use crate::breakdown::system_calls;
use crate::breakdown::target::Server;
use crate::postgres_waits::WaitNames;
use libbpf_rs::MapHandle;
use plimsoll_record::LiveLine;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where lines about what goes on are handed.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// From one line to the next.
    pub interval: Duration,
    /// Called from a thread of the probe's.
    pub tell: fn(&LiveLine),
}

/// Whoever starts a watch is shown something soon.
const FIRST: Duration = Duration::from_millis(500);

/// Tells of a server; when it goes, every line has been handed on.
pub(crate) struct Teller {
    live: Live,
    names: WaitNames,
    due_ns: i64,
    lines: Option<Sender<LiveLine>>,
    /// A line is being handed on.
    busy: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.lines = None;
        self.thread.take().map(JoinHandle::join);
    }
}

impl Teller {
    pub(crate) fn new(live: Live, names: WaitNames) -> io::Result<Self> {
        let (lines, made) = channel();
        let busy = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&busy);
        let hand_on = move || {
            for line in made {
                (live.tell)(&line);
                told.store(false, Ordering::Release);
            }
        };
        let thread = std::thread::Builder::new().name("tell".to_owned()).spawn(hand_on)?;
        Ok(Self { live, names, due_ns: 0, lines: Some(lines), busy, thread: Some(thread) })
    }

    /// What is before the first line, which is due soon.
    pub(crate) fn begin(&mut self, server: &Server, backends: &MapHandle, watching: &Watching) -> Lives {
        let in_slices = watching.often.is_some();
        let found = read(backends, watching, processes::children(server.cluster.postmaster));
        // Only now: what has been read has in it what was until then.
        let began_ns = now_ns();
        self.due_ns = began_ns + self.live.interval.min(FIRST).as_nanos() as i64;
        let not_seen = found.iter().filter(|process| process.present.is_none()).map(|process| process.pid);
        // Between slices a process may have gone on unseen.
        let not_seen = not_seen.filter(|_| !in_slices);
        let unseen = presence::unseen(not_seen, server, &Buckets::of(&self.names), began_ns);
        let pids = found.iter().map(|process| process.pid).collect();
        let mut lives = Lives::begin(&found, unseen, in_slices, began_ns, watching.slices.opened_ns(began_ns));
        lives.meet(pids, &processes::what);
        lives
    }

    /// How long it is until the next line.
    pub(crate) fn until_due(&self) -> Duration {
        Duration::from_nanos((self.due_ns - now_ns()).max(0) as u64)
    }

    /// The line after that of `now_ns`; those that are late already are left out.
    pub(crate) fn go_on(&mut self, now_ns: i64) {
        let interval_ns = self.live.interval.as_nanos().clamp(1, i64::MAX as u128) as i64;
        self.due_ns = self.due_ns.saturating_add(interval_ns * ((now_ns - self.due_ns) / interval_ns + 1));
    }

    /// Whether the next line can be handed on.
    pub(crate) fn is_ready(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Makes the line and has it handed on.
    pub(crate) fn tell(
        &mut self,
        lives: &mut Lives,
        found: &[Found],
        server: &Server,
        watching: &Watching,
        now_ns: i64,
    ) {
        let name = |event| name_of(&self.names, event);
        let moment = Moment {
            now_ns,
            watched_ns: watching.slices.opened_ns(now_ns),
            server_ended: !server.cluster.runs(),
            name: &name,
        };
        let line = lives.line(found, &moment);
        self.busy.store(true, Ordering::Release);
        if let Some(lines) = &self.lines {
            // The thread is there as long as this is.
            let _ = lines.send(line);
        }
        self.go_on(now_ns);
    }
}

/// What is kept of the processes in `pids`, and what that says of their present as far as it is followed.
pub(crate) fn read(backends: &MapHandle, watching: &Watching, pids: Vec<u32>) -> Vec<Found> {
    let mut found: Vec<Found> = pids.into_iter().map(|pid| Found::read(backends, pid)).collect();
    for process in &mut found {
        process.present = process.present.take().filter(|present| watching.follows(present.slice));
    }
    found
}

/// "IO:WALSync"; the system call where there was no wait event; the number where the name is not known.
pub(crate) fn name_of(names: &WaitNames, event: u32) -> String {
    match (names.name(event), event) {
        (Some((class, event)), _) => format!("{class}:{event}"),
        (None, 0) => "several".to_owned(),
        (None, event) => system_calls::name_of(event).unwrap_or_else(|| format!("{event:#010x}")),
    }
}
