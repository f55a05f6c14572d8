//! When a line about what goes on is due, and what it takes to make it.

use super::buckets::Buckets;
use super::live::{Lives, Moment};
use super::presence::{self, Found};
use super::processes;
use super::slices::Watching;
use super::target::{Server, now_ns};
use super::{Live, name_of};
use crate::postgres_waits::WaitNames;
use libbpf_rs::MapHandle;
use std::time::Duration;

/// Whoever starts a watch is shown something soon.
const FIRST: Duration = Duration::from_millis(500);

/// Tells of a server.
pub(crate) struct Teller {
    live: Live,
    names: WaitNames,
    due_ns: i64,
}

impl Teller {
    pub(crate) fn new(live: Live, names: WaitNames) -> Self {
        Self { live, names, due_ns: 0 }
    }

    /// What is before the first line, which is due soon.
    pub(crate) fn begin(&mut self, server: &Server, backends: &MapHandle, watching: &Watching) -> Lives {
        let in_slices = watching.often.is_some();
        let found = read(backends, watching, processes::children(server.postmaster));
        // Only now: what has been read has in it what was until then.
        let began_ns = now_ns();
        self.due_ns = began_ns + self.live.interval.min(FIRST).as_nanos() as i64;
        let not_seen = found.iter().filter(|process| process.present.is_none()).map(|process| process.pid);
        // Between slices a process may have gone on unseen.
        let not_seen = not_seen.filter(|_| !in_slices);
        let unseen = presence::unseen(not_seen, server.wait_pointer, &Buckets::of(&self.names), began_ns);
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
    fn go_on(&mut self, now_ns: i64) {
        let interval_ns = self.live.interval.as_nanos().clamp(1, i64::MAX as u128) as i64;
        self.due_ns = self.due_ns.saturating_add(interval_ns * ((now_ns - self.due_ns) / interval_ns + 1));
    }

    /// Makes the line and hands it on.
    pub(crate) fn tell(
        &mut self,
        lives: &mut Lives,
        found: &[Found],
        server: &Server,
        watching: &Watching,
        now_ns: i64,
    ) {
        let name = |event| name_of(&self.names, event);
        let moment =
            Moment { now_ns, watched_ns: watching.slices.opened_ns(now_ns), server_ended: !server.runs(), name: &name };
        (self.live.tell)(&lives.line(found, &moment));
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
