//! Sessions that change their descriptor between transactions and within them, and sessions that wait only so long for an end.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::{Config, Control, Tables, open_all, run};
use plimsoll_record::{Outcome, Table};
use plimsoll_session::{Begun, Ending, Failure, Opener, Progress, Ready, Session, SessionReport};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use support::undisturbed::undisturbed;
use support::{MS, config};

const PATIENCE_NS: i64 = 300 * MS;

/// Answers every transaction on a new pair of sockets; those whose index `silent` divides, never.
struct Moving {
    silent: u64,
    index: u64,
    sent: bool,
    ours: UnixStream,
}

impl Moving {
    fn answer(&mut self) -> UnixStream {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        // The descriptor before is closed with this.
        self.ours = ours;
        theirs.write_all(b"x").unwrap();
        theirs
    }
}

impl AsFd for Moving {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }
}

impl Session for Moving {
    fn server_process(&self) -> u32 {
        0
    }

    fn patience_ns(&self) -> i64 {
        PATIENCE_NS
    }

    fn begin(&mut self, index: u64) -> Begun {
        (self.index, self.sent) = (index, false);
        Begun { kind: 0, skipped: false }
    }

    fn advance(&mut self, _: Ready) -> Progress {
        if !self.sent {
            self.sent = true;
            if self.index.is_multiple_of(self.silent) {
                let (ours, theirs) = UnixStream::pair().unwrap();
                self.ours = ours;
                // Stays open, and says nothing.
                std::mem::forget(theirs);
            } else {
                self.answer();
            }
            return Progress::Moved { to_write: false };
        }
        match self.ours.read(&mut [0; 8]) {
            Ok(1) => Progress::Ended(Ending::of_nothing(Outcome::Done, true)),
            Ok(_) | Err(_) => Progress::Waiting { to_write: false },
        }
    }

    fn abandon(&mut self) -> Ending {
        let failure = Failure { code: Failure::ABANDONED.to_owned(), message: "no answer".to_owned() };
        Ending { failure: Some(failure), ..Ending::of_nothing(Outcome::Lost, true) }
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport::default()
    }
}

struct Opens {
    silent: u64,
}

impl Opener for Opens {
    fn open(&self, _: u32) -> Result<Box<dyn Session>, Failure> {
        let (ours, _) = UnixStream::pair().unwrap();
        Ok(Box::new(Moving { silent: self.silent, index: 0, sent: true, ours }))
    }
}

fn segment(silent: u64, transactions: u64) -> (plimsoll_load::Outcomes, Table) {
    let opener: Arc<dyn Opener> = Arc::new(Opens { silent });
    let (folder, sessions) = (tempfile::tempdir().unwrap(), open_all(opener.as_ref(), 4).unwrap());
    let config = Config { first_index: 1, transactions: Some(transactions), ..config() };
    let tables = Tables::create(folder.path()).unwrap();
    let outcomes = run(sessions, &opener, &config, &Control::new(2), tables).unwrap();
    (outcomes, Table::read(&folder.path().join("transactions.npy")).unwrap())
}

#[test]
fn a_session_is_woken_by_the_descriptor_that_it_has_moved_to() {
    undisturbed(Duration::from_millis(100), || {
        let (outcomes, _) = segment(u64::MAX, 3_000);
        // One that is not woken is given up.
        assert_eq!((outcomes.identity.done, outcomes.identity.planned), (3_000, 3_000));
    });
}

#[test]
fn what_is_not_answered_in_time_is_given_up_and_the_session_goes_on() {
    undisturbed(Duration::from_millis(100), || {
        let (outcomes, table) = segment(100, 400);
        let identity = outcomes.identity;
        assert_eq!((identity.done, identity.lost, identity.planned), (396, 4, 400));
        assert_eq!((outcomes.connections_lost, outcomes.errors.len(), outcomes.errors[0].count), (0, 1, 4));
        let column = |name: &str| table.column(name).unwrap();
        for ((outcome, start), end) in column("outcome").into_iter().zip(column("start_ns")).zip(column("end_ns")) {
            let waited = (end - start) as i64;
            assert_eq!(outcome == Outcome::Lost as i128, waited >= PATIENCE_NS, "{waited}");
        }
    });
}
