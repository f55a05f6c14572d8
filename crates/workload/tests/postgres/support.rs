//! A driver of sessions that waits for one at a time, and what tests say to it.

use crate::server::Server;
use plimsoll_record::Outcome;
use plimsoll_session::{Ending, Opener, Progress, Ready, Session, SessionReport};
use plimsoll_target::postgres::Protocol;
use plimsoll_workload::{Bank, ConversationOpener, DataSet, Workload, populate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::Duration;

/// No reply takes so long.
const HANGS_AFTER_S: i64 = 60;

impl Server {
    /// Loads `data` into `schema` over two connections.
    pub(crate) fn populate(&self, data: &dyn DataSet, schema: &str) {
        populate(data, &self.address(), schema, 2, &|_| {}).unwrap();
    }

    /// Opens `count` conversations of `workload` in `schema`.
    pub(crate) fn open<W: Workload + 'static>(
        &self,
        workload: &Arc<W>,
        schema: &str,
        (protocol, retries_max): (Protocol, u32),
        count: u32,
    ) -> Vec<Box<dyn Session>> {
        let address = self.address().with_settings([("search_path", schema)]);
        let opener = ConversationOpener::new(&address, Arc::clone(workload), protocol, retries_max).unwrap();
        (0..count).map(|number| opener.open(number).unwrap_or_else(|failure| panic!("{failure:?}"))).collect()
    }

    /// Performs transactions `indexes` of `workload` in `schema`, one after the other.
    pub(crate) fn perform<W: Workload + 'static>(
        &self,
        workload: &Arc<W>,
        schema: &str,
        how: (Protocol, u32),
        indexes: std::ops::Range<u64>,
    ) -> (Vec<Ending>, SessionReport) {
        let mut session = self.open(workload, schema, how, 1).remove(0);
        let endings = indexes.map(|index| perform(session.as_mut(), index)).collect();
        (endings, session.close())
    }
}

/// Performs a transaction to its end.
pub(crate) fn perform(session: &mut dyn Session, index: u64) -> Ending {
    assert!(!session.begin(index).skipped);
    let mut ready = Ready::Nothing;
    loop {
        match session.advance(ready) {
            Progress::Ended(ending) => return ending,
            Progress::Closed => panic!("closed while a transaction is under way"),
            Progress::Resting { ns } => {
                // As if something had come meanwhile: the rest goes on.
                assert_eq!(session.advance(Ready::Readable), Progress::Waiting { to_write: false });
                std::thread::sleep(Duration::from_nanos(ns as u64));
                ready = Ready::Nothing;
            }
            Progress::Waiting { to_write } | Progress::Moved { to_write } => {
                let wanted = if to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                let timeout = Timespec { tv_sec: HANGS_AFTER_S, tv_nsec: 0 };
                let mut watched = [PollFd::from_borrowed_fd(session.as_fd(), wanted)];
                assert_eq!(poll(&mut watched, Some(&timeout)).unwrap(), 1, "no reply");
                ready = if watched[0].revents() == PollFlags::OUT { Ready::Nothing } else { Ready::Readable };
            }
        }
    }
}

/// Performs `count` transactions on each of the conversations, at the same time, which must all be done.
pub(crate) fn perform_all(conversations: Vec<Box<dyn Session>>, count: u64) {
    std::thread::scope(|scope| {
        for mut conversation in conversations {
            scope.spawn(move || {
                for index in 0..count {
                    let ending = perform(conversation.as_mut(), index);
                    assert_eq!(ending.outcome, Outcome::Done, "{ending:?}");
                }
                conversation.close();
            });
        }
    });
}

/// A bank of scale 1 with `more` parameters, such as `, "partitions": 3`.
pub(crate) fn bank(more: &str) -> Bank {
    let text = format!(r#"{{"name": "bank", "scale": 1, "seed": 7{more}}}"#);
    Bank::new(&serde_json::from_str(&text).unwrap()).unwrap()
}
