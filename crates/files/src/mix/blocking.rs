//! Sessions whose calls block: every operation of the language.

use super::live::Live;
use super::names::{ENTRIES_BYTES, create, readdir, rename, stat, unlink, write_all};
use super::operator::Operator;
use super::plan::{Sync, Task};
use crate::tree::Tree;
use plimsoll_session::{Begun, BlockingOpener, BlockingSession, Buffer, Ending, Failure, SessionReport};
use rustix::fs::{fdatasync, fsync};
use rustix::io::{Errno, pread, retry_on_intr};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Opens them.
pub(super) struct Opener {
    pub(super) live: Arc<Live>,
    pub(super) tree: Arc<Tree>,
}

/// The buffer of a session.
pub(super) fn buffer(live: &Live) -> Buffer {
    let bytes = live.plan.tasks.iter().map(|task| task.buffer_bytes()).max().unwrap_or(0);
    Buffer::zeroed(bytes as usize)
}

/// A session that cannot be made.
pub(super) fn refused(error: impl std::fmt::Display) -> Failure {
    Failure { code: "EINVAL".to_owned(), message: error.to_string() }
}

impl BlockingOpener for Opener {
    fn open(&self, number: u32) -> Result<Box<dyn BlockingSession>, Failure> {
        let operator = Operator::new(&self.live, &self.tree, number).map_err(refused)?;
        let is_reading = self.live.plan.tasks.contains(&Task::Readdir);
        let entries = vec![MaybeUninit::uninit(); if is_reading { ENTRIES_BYTES } else { 0 }];
        Ok(Box::new(Session { operator, buffer: buffer(&self.live), entries }))
    }
}

struct Session {
    operator: Operator,
    buffer: Buffer,
    entries: Vec<MaybeUninit<u8>>,
}

impl Session {
    fn read(&mut self) -> Ending {
        let at = &self.operator.at;
        let (offset, bytes) = (at.offset, at.bytes as usize);
        let read = retry_on_intr(|| pread(self.operator.file(), &mut self.buffer[..bytes], offset));
        self.operator.has_read(read, &self.buffer)
    }

    fn write(&mut self, call: &'static str, sync: Sync) -> Ending {
        let at = &self.operator.at;
        let (offset, bytes) = (at.offset, at.bytes as usize);
        let (written, calls) = write_all(self.operator.file(), &self.buffer[..bytes], offset);
        let (durable, calls) = match (written, sync) {
            (Err(errno), _) => (Err((call, errno)), calls),
            (Ok(()), Sync::None | Sync::ODsync) => (Ok(()), calls),
            (Ok(()), Sync::Fsync) => (fsync(self.operator.file()).map_err(|errno| ("fsync", errno)), calls + 1),
            (Ok(()), Sync::Fdatasync) => {
                (fdatasync(self.operator.file()).map_err(|errno| ("fdatasync", errno)), calls + 1)
            }
        };
        self.operator.has_written(durable, calls)
    }

    fn fsync(&mut self) -> Ending {
        let synced: Result<(), Errno> = fsync(self.operator.file());
        match synced {
            Ok(()) => self.operator.done(1, 0),
            Err(errno) => self.operator.errs("fsync", errno, 1),
        }
    }
}

impl BlockingSession for Session {
    fn begin(&mut self, index: u64) -> Begun {
        self.operator.begin(index, &mut self.buffer)
    }

    fn has_only_drawn(&self) -> bool {
        self.operator.has_only_drawn()
    }

    fn perform(&mut self) -> Ending {
        if let Some(refused) = self.operator.refused() {
            return refused;
        }
        match self.operator.at.task {
            Task::Read { .. } => self.read(),
            Task::Write { sync, .. } => self.write("write", sync),
            Task::Append { sync, .. } => self.write("append", sync),
            Task::Fsync => self.fsync(),
            Task::Create { .. } => create(&mut self.operator, &mut self.buffer),
            Task::Stat => stat(&mut self.operator),
            Task::Rename => rename(&mut self.operator),
            Task::Unlink => unlink(&mut self.operator),
            Task::Readdir => readdir(&mut self.operator, &mut self.entries),
        }
    }

    fn close(self: Box<Self>) -> SessionReport {
        self.operator.close(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::lay_out;
    use super::super::plan::Draws;
    use super::super::request::plan_of;
    use super::super::state::State;
    use super::*;
    use plimsoll_record::Outcome;
    use serde_json::json;

    /// One file of one block, and room for another.
    fn opener(folder: &tempfile::TempDir) -> Opener {
        let operation = |name: &str, bytes: Option<u64>| json!({"operation": name, "weight": 1, "bytes": bytes});
        let moved = ["read", "write", "append", "create"].map(|name| operation(name, Some(4096)));
        let named = ["stat", "unlink"].map(|name| operation(name, None));
        let mix = [&moved[..], &named[..]].concat();
        let plan = plan_of(json!({"count": 1, "file_bytes": 4096, "mix": mix}));
        let (plan, tree) = (Arc::new(plan), Arc::new(Tree::create(folder.path(), "files").unwrap()));
        lay_out(&plan, &tree, &mut |_| ()).unwrap();
        Opener { live: Arc::new(Live::new(&plan, State::laid_out(&plan))), tree }
    }

    fn session(opener: &Opener) -> Session {
        let operator = Operator::new(&opener.live, &opener.tree, 0).unwrap();
        Session { operator, buffer: buffer(&opener.live), entries: Vec::new() }
    }

    /// An operation that is one of `name`.
    fn index_of(opener: &Opener, name: &str) -> u64 {
        let draws = Draws::new(&opener.live.plan, opener.live.drawn_among).unwrap();
        (0..).find(|&index| opener.live.plan.kinds[draws.step(index).1] == name).unwrap()
    }

    fn is_done(begun: &Begun, ending: &Ending) -> Result<(), String> {
        let is_done = !begun.skipped && ending.outcome == Outcome::Done;
        is_done.then_some(()).ok_or_else(|| format!("{:?}", ending.failure))
    }

    #[test]
    fn a_file_that_is_replaced_before_an_operation_has_its_place_is_not_the_one_it_is_on() {
        for name in ["read", "write", "append"] {
            let folder = tempfile::tempdir().unwrap();
            let opener = opener(&folder);
            let (mut ours, mut other) = (session(&opener), session(&opener));
            let perform = |session: &mut Session, name: &str| {
                let begun = session.begin(index_of(&opener, name));
                is_done(&begun, &session.perform())
            };
            assert_eq!(perform(&mut ours, "read"), Ok(()), "so it has the file open");
            // What has been removed so far is closed; then the file goes, and another one comes in its place.
            ours.operator.forget_removed();
            assert_eq!(["unlink", "create"].map(|name| perform(&mut other, name)), [Ok(()), Ok(())]);
            let begun = ours.operator.begin_on(index_of(&opener, name), &mut ours.buffer);
            assert_eq!(is_done(&begun, &ours.perform()), Ok(()), "{name} by the session that had the file open");
            for check in ["read", "stat"] {
                assert_eq!(perform(&mut other, check), Ok(()), "{check} after {name}, by the other session");
            }
        }
    }

    #[test]
    fn no_operation_has_the_opening_of_its_file_in_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let opener = opener(&folder);
        let mut ours = session(&opener);
        for name in ["read", "write", "append", "read"] {
            let begun = ours.begin(index_of(&opener, name));
            assert_eq!(is_done(&begun, &ours.perform()), Ok(()), "{name}");
        }
        assert_eq!((ours.operator.report.opened, ours.operator.report.system_calls), (0, 4));
        // A file that is made within the load is opened by the first operation on it, and that is counted.
        for name in ["unlink", "create", "read"] {
            let begun = ours.begin(index_of(&opener, name));
            assert_eq!(is_done(&begun, &ours.perform()), Ok(()), "{name}");
        }
        assert_eq!(ours.operator.report.opened, 1);
        let is_open = || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
            open.filter_map(|one| std::fs::read_link(one.path()).ok())
                .filter(|at| at.starts_with(folder.path()))
                .count()
        };
        let before = is_open();
        Box::new(ours).close();
        assert_eq!(is_open(), before, "the engine's clock still runs when it closes its sessions");
        opener.live.close().unwrap();
        assert!(is_open() < before);
    }
}
