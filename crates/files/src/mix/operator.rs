//! What every session does around its calls: draws the operation, opens the file, stamps what is written, verifies what was read,
//! and accounts for it.

use super::descriptors::{Access, Descriptors, KEPT_MAX, key};
use super::errno::{failed, failure};
use super::live::Live;
use super::places::Places;
use super::plan::{Draws, Task};
use super::report::Report;
use super::verify;
use super::versions::{BLOCK, Before};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_keys::Words;
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, Ending, Failure, SessionReport};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So often a file is drawn for an operation before it has nothing to do.
const ATTEMPTS: u64 = 64;

/// How the session uses the file of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    None,
    Shared,
}

/// The operation under way.
#[derive(Debug)]
pub(super) struct Drawn {
    index: u64,
    step: usize,
    pub(super) task: Task,
    pub(super) place: u32,
    /// Where its open file is kept.
    file: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Of an append, from the body's end.
    tail_from: u64,
    refused: Option<Failure>,
    /// Its file was not open before.
    was_opened: bool,
    uses: Use,
}

/// A session's hands and books.
pub(super) struct Operator {
    pub(super) live: Arc<Live>,
    pub(super) tree: Arc<Tree>,
    draws: Draws,
    /// Which one it goes on with, where operations do not draw.
    stream: Option<usize>,
    descriptors: Descriptors,
    known: Vec<Before>,
    versions: Vec<u32>,
    removals: u64,
    pub(super) at: Drawn,
    pub(super) name: String,
    /// What a file is renamed to.
    pub(super) other_name: String,
    pub(super) report: Report,
}

/// Descriptors that a session of `plan` keeps.
pub(super) fn kept_max(places: u64, writes_through: bool) -> u32 {
    let all = places.saturating_mul(if writes_through { 2 } else { 1 });
    u32::try_from(all).unwrap_or(KEPT_MAX).min(KEPT_MAX)
}

impl Operator {
    /// The one of session `number`.
    pub(super) fn new(live: &Arc<Live>, tree: &Arc<Tree>, number: u32) -> Result<Self, FilesError> {
        let plan = &live.plan;
        let draws = Draws::new(plan, live.drawn_among);
        let draws = draws.ok_or_else(|| FilesError::Content("workload.keys: not a distribution".to_owned()))?;
        let writes_through = plan.tasks.iter().any(|task| task.writes_through());
        let at = Drawn {
            index: 0,
            step: 0,
            task: Task::Stat,
            place: 0,
            file: 0,
            offset: 0,
            bytes: 0,
            tail_from: 0,
            refused: None,
            was_opened: false,
            uses: Use::None,
        };
        let descriptors = Descriptors::new(kept_max(live.drawn_among, writes_through));
        let mut operator = Self {
            live: Arc::clone(live),
            tree: Arc::clone(tree),
            draws,
            stream: live.streams.as_ref().map(|streams| streams.of_session(number)),
            descriptors,
            known: Vec::new(),
            versions: Vec::new(),
            removals: 0,
            at,
            name: String::new(),
            other_name: String::new(),
            report: Report::default(),
        };
        operator.open_ahead();
        Ok(operator)
    }

    /// Opens the files that are there before the clock runs, where all of them are kept: else the first operation on each
    /// would take as much longer as opening it does. What cannot be opened says so when it is to be used.
    fn open_ahead(&mut self) {
        let live = Arc::clone(&self.live);
        let wanted = |writes_through| {
            let is_so = |task: &&Task| task.needs_a_descriptor() && task.writes_through() == writes_through;
            live.plan.tasks.iter().any(|task| is_so(&task))
        };
        let accesses: Vec<Access> = [Access::Write, Access::WriteThrough]
            .into_iter()
            .zip([false, true])
            .filter(|&(_, of)| wanted(of))
            .map(|(access, _)| access)
            .collect();
        if !self.descriptors.has_room_for(live.drawn_among * accesses.len() as u64) {
            return;
        }
        for (place, _) in live.places.iter().filter(|(_, at)| !at.kept().is_absent) {
            self.at.place = place;
            self.write_name();
            for &access in &accesses {
                let _ = self.opened(access);
            }
        }
        (self.report.system_calls, self.report.opened) = (0, 0);
    }

    /// The end of the session.
    pub(super) fn close(self, counts_calls: bool) -> SessionReport {
        self.live.keep(self.descriptors);
        self.report.session(counts_calls)
    }

    /// Draws operation `index`, and prepares it; what it writes comes to stand in `buffer`.
    pub(super) fn begin(&mut self, index: u64, buffer: &mut [u8]) -> Begun {
        self.forget_removed();
        self.begin_on(index, buffer)
    }

    /// The same, while what others remove may still be open here.
    pub(super) fn begin_on(&mut self, index: u64, buffer: &mut [u8]) -> Begun {
        let (words, step) = self.draws.step(index);
        let (task, kind) = (self.live.plan.tasks[step], step as u8);
        (self.at.index, self.at.step, self.at.task) = (index, step, task);
        (self.at.offset, self.at.bytes, self.at.refused, self.at.uses) = (0, 0, None, Use::None);
        self.at.was_opened = false;
        let Some(place) = self.choose(&words, task) else { return Begun { kind, skipped: true } };
        self.at.place = place;
        if task.needs_a_descriptor() {
            self.open();
        } else {
            self.write_name();
        }
        if self.at.refused.is_none() {
            self.prepare(&words, buffer);
        }
        Begun { kind, skipped: false }
    }

    /// Whether the operation begun had nothing to stamp or to note, and no file to open or to close.
    #[inline]
    pub(super) fn has_only_drawn(&self) -> bool {
        let is_plain_read = matches!(self.at.task, Task::Read { .. }) && !self.live.plan.verify;
        is_plain_read && self.live.is_still && !self.at.was_opened
    }

    /// Draws the file.
    fn choose(&mut self, words: &Words, task: Task) -> Option<u32> {
        let places = &self.live.places;
        if matches!(task, Task::Create { .. }) {
            return places.take_absent();
        }
        if let (Some(streams), Some(stream)) = (&self.live.streams, self.stream) {
            let (Task::Read { bytes } | Task::Write { bytes, .. }) = task else {
                return Some(streams.place(stream, self.at.place));
            };
            let (place, offset) = streams.take(stream, bytes, self.at.place);
            self.at.offset = offset;
            return Some(place);
        }
        let drawn = |draws: &Draws, attempt| draws.place(words, attempt) as u32;
        if self.live.is_still || task == Task::Readdir {
            return Some(drawn(&self.draws, 0));
        }
        let least = match task {
            Task::Read { bytes } | Task::Write { bytes, .. } => bytes,
            _ => 0,
        };
        for attempt in 0..ATTEMPTS {
            let place = drawn(&self.draws, attempt);
            let at = places.at(place);
            if task.is_of_names() {
                if at.take() {
                    return Some(place);
                }
            } else if at.share() {
                if at.body.load(Ordering::Acquire) >= least {
                    self.at.uses = Use::Shared;
                    return Some(place);
                }
                at.leave();
            }
        }
        None
    }

    /// Closes what others have removed: as long as it is open it takes its room. What they remove from now until the session uses its
    /// place is not told of here, and so it is told apart when it is looked for.
    pub(super) fn forget_removed(&mut self) {
        let Self { live, descriptors, .. } = self;
        if !live.is_still && live.places.has_removed_since(self.removals) {
            self.removals = live.places.removed_since(self.removals, |place| match place {
                Some(place) => Access::ALL.into_iter().for_each(|access| descriptors.close(key(place, access))),
                None => descriptors.close_all(),
            });
        }
    }

    /// Has the file open.
    #[inline]
    fn open(&mut self) {
        let writes_through = self.at.task.writes_through();
        let access = if writes_through { Access::WriteThrough } else { Access::Write };
        match self.kept(access) {
            Some(at) => self.at.file = at,
            None => self.open_anew(access),
        }
    }

    /// Where the place's file is kept, if it is open. While the session uses the place, it has no other file.
    #[inline]
    fn kept(&mut self, access: Access) -> Option<usize> {
        let incarnation = self.live.places.at(self.at.place).incarnation.load(Ordering::Acquire);
        self.descriptors.find(key(self.at.place, access), incarnation)
    }

    fn open_anew(&mut self, access: Access) {
        self.at.was_opened = true;
        self.write_name();
        let opened = match (self.opened(access), self.at.task) {
            // On a file system that is read-only files can be read all the same.
            (Err(Errno::ROFS), Task::Read { .. }) => match self.kept(Access::Read) {
                Some(at) => Ok(at),
                None => self.opened(Access::Read),
            },
            (opened, _) => opened,
        };
        match opened {
            Ok(at) => self.at.file = at,
            Err(errno) => self.at.refused = Some(failure("open", &self.name, errno)),
        }
    }

    /// Opens the file, and keeps it.
    fn opened(&mut self, access: Access) -> Result<usize, Errno> {
        let direct = if self.live.plan.direct { OFlags::DIRECT } else { OFlags::empty() };
        let flags = match access {
            Access::Write => OFlags::RDWR,
            Access::WriteThrough => OFlags::RDWR | OFlags::DSYNC,
            Access::Read => OFlags::RDONLY,
        };
        (self.report.system_calls, self.report.opened) = (self.report.system_calls + 1, self.report.opened + 1);
        let file = self.tree.file(&self.name, flags | OFlags::NOFOLLOW | direct)?;
        let incarnation = self.live.places.at(self.at.place).incarnation.load(Ordering::Acquire);
        Ok(self.descriptors.keep(key(self.at.place, access), incarnation, file))
    }

    /// The file that the operation is about, open.
    pub(super) fn file(&self) -> &Arc<OwnedFd> {
        self.descriptors.file(self.at.file)
    }

    fn write_name(&mut self) {
        match self.at.task {
            Task::Readdir => Places::directory_name(self.live.places.directory_of(self.at.place), &mut self.name),
            _ => self.live.places.name(self.at.place, &mut self.name),
        }
    }

    /// Where in the file, and what is written there.
    fn prepare(&mut self, words: &Words, buffer: &mut [u8]) {
        // The live tree is borrowed, not held: all threads would write one count of who holds it, twice an operation.
        let Self { live, draws, stream, at, known, .. } = self;
        let body = live.places.at(at.place).body.load(Ordering::Acquire);
        match at.task {
            Task::Read { bytes } | Task::Write { bytes, .. } => {
                at.bytes = bytes;
                if stream.is_none() {
                    at.offset = draws.offset(words, at.step, (body, bytes));
                }
            }
            Task::Append { sizes, unit, .. } => {
                at.bytes = Draws::bytes(words, sizes, unit);
                at.tail_from = live.places.reserve(at.place, at.bytes);
                at.offset = body + at.tail_from;
                live.places.tail_bytes(at.place, at.offset, &mut buffer[..at.bytes as usize]);
            }
            Task::Create { bytes } => at.bytes = bytes,
            _ => {}
        }
        match at.task {
            Task::Read { .. } if live.plan.verify => {
                verify::before(&live.versions, live.first_block(at.place), (at.offset, at.bytes), known);
            }
            Task::Write { .. } => {
                let (bytes, first) = (at.bytes as usize, live.first_block(at.place));
                self.stamp(&mut buffer[..bytes], first);
            }
            _ => {}
        }
    }

    /// Makes the buffer's blocks the next versions of those that it is written to.
    fn stamp(&mut self, buffer: &mut [u8], first: u64) {
        let stamps = self.live.places.stamps(self.at.place);
        self.versions.clear();
        for (block, bytes) in (self.at.offset / BLOCK..).zip(buffer.chunks_mut(BLOCK as usize)) {
            let Some(version) = self.live.versions.begin(first + block) else {
                return self.refuse_write(block);
            };
            stamps.write(bytes, block * BLOCK, version.into());
            self.versions.push(version);
        }
    }

    /// There are no more versions of a block: nothing is written.
    #[cold]
    fn refuse_write(&mut self, block: u64) {
        self.end_versions(false);
        self.write_name();
        let message =
            format!("write {} byte {}: its version numbers are used up: populate again", self.name, block * BLOCK);
        self.at.refused = Some(Failure { code: "EOVERFLOW".to_owned(), message });
    }

    /// Why the operation cannot be performed, if it cannot.
    #[inline]
    pub(super) fn refused(&mut self) -> Option<Ending> {
        let refused = self.at.refused.take()?;
        self.leave();
        Some(failed(refused))
    }

    fn end_versions(&mut self, is_whole: bool) {
        let first = self.live.first_block(self.at.place) + self.at.offset / BLOCK;
        (first..).zip(&self.versions).for_each(|(block, &version)| self.live.versions.end(block, version, is_whole));
        self.versions.clear();
    }

    fn leave(&mut self) {
        if self.at.uses == Use::Shared {
            self.live.places.at(self.at.place).leave();
            self.at.uses = Use::None;
        }
    }

    /// How it ends well, after so many system calls and with so many bytes moved.
    pub(super) fn done(&mut self, system_calls: u32, bytes: u64) -> Ending {
        self.leave();
        self.report.system_calls += u64::from(system_calls);
        Ending { requests: system_calls, bytes, statements: 1, ..Ending::of_nothing(Outcome::Done, true) }
    }

    /// How it ends where the kernel refused.
    #[cold]
    pub(super) fn errs(&mut self, call: &str, errno: Errno, system_calls: u32) -> Ending {
        self.write_name();
        self.leave();
        self.report.system_calls += u64::from(system_calls);
        let failure = failure(call, &self.name, errno);
        Ending { requests: system_calls, statements: 1, ..failed(failure) }
    }

    /// How it ends where an answer was wrong.
    #[cold]
    pub(super) fn errs_in(&mut self, message: &str, system_calls: u32) -> Ending {
        self.write_name();
        self.leave();
        self.report.system_calls += u64::from(system_calls);
        let message = format!("{}: {message}", self.name);
        self.report.wrong(self.at.index, &message);
        let failure = Failure { code: Failure::WRONG_ANSWER.to_owned(), message };
        Ending { requests: system_calls, statements: 1, ..failed(failure) }
    }

    /// The read has ended.
    #[inline]
    pub(super) fn has_read(&mut self, read: Result<usize, Errno>, buffer: &[u8]) -> Ending {
        let read = match read {
            Ok(read) => read as u64,
            Err(errno) => return self.errs("read", errno, 1),
        };
        self.report.bytes_read += read;
        let (place, offset, bytes) = (self.at.place, self.at.offset, self.at.bytes);
        if read < bytes {
            self.report.verification.checked += 1;
            return self.errs_in(&format!("byte {offset}: short read: {read} of {bytes} bytes"), 1);
        }
        if self.live.plan.verify {
            self.report.verification.checked += 1;
            let (live, known) = (&self.live, &self.known);
            let (stamps, first) = (live.places.stamps(place), live.first_block(place));
            let verified = verify::after(&live.versions, &stamps, first, (offset, &buffer[..bytes as usize]), known);
            if let Err(message) = verified {
                return self.errs_in(&message, 1);
            }
        }
        self.done(1, bytes)
    }

    /// The write or the append, and what was to make it durable, has ended.
    #[inline]
    pub(super) fn has_written(&mut self, written: Result<(), (&str, Errno)>, system_calls: u32) -> Ending {
        let bytes = self.at.bytes;
        self.settle(written.is_ok());
        match written {
            Ok(()) => {
                self.report.bytes_written += bytes;
                self.done(system_calls, bytes)
            }
            Err((call, errno)) => self.errs(call, errno, system_calls),
        }
    }

    /// What was being written is there or may be there in part.
    fn settle(&mut self, is_whole: bool) {
        let (place, bytes) = (self.at.place, self.at.bytes);
        match self.at.task {
            Task::Write { .. } => self.end_versions(is_whole),
            Task::Append { .. } => self.live.places.appended(place, (self.at.tail_from, bytes), is_whole),
            _ => return,
        }
        if !is_whole {
            self.live.count_failed(bytes);
        }
    }

    /// Its calls never came back.
    pub(super) fn abandon(&mut self) -> Ending {
        self.settle(false);
        let message = "no reply within the grace period after the segment".to_owned();
        let failure = Some(Failure { code: Failure::ABANDONED.to_owned(), message });
        Ending { failure, statements: 1, requests: 1, ..Ending::of_nothing(Outcome::Lost, false) }
    }
}
