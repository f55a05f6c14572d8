//! The phases that go through the file from its beginning to its end: one session, whose operations are chunks.

use super::characters::{Getc, Putc};
use super::parameters::Phase;
use super::run::Run;
use crate::passes::{Closing, Due, Lane, Moved, Trouble, Waker, close, file_name, refused};
use plimsoll_session::{Begun, BlockingSession, Buffer, Ending, Failure, Interrupt, Pause, SessionReport};
use rustix::fs::{SeekFrom, fsync, seek};
use rustix::io::{Errno, read, write};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

/// How the file is open.
enum Open {
    /// Its thread has not begun.
    NotYet,
    Characters(Putc),
    FromCharacters(Getc),
    Chunks(File),
    /// The phase is through with it.
    Closed,
}

impl Open {
    fn close(self) -> Result<(), Errno> {
        match self {
            Self::Characters(stream) => close(stream.into_file()),
            Self::FromCharacters(stream) => close(stream.into_file()),
            Self::Chunks(file) => close(file),
            Self::NotYet | Self::Closed => Ok(()),
        }
    }
}

/// The session of a phase.
pub(super) struct Stream {
    run: Arc<Run>,
    open: Open,
    /// Why it could not be opened.
    refused: Option<Failure>,
    lane: Lane,
    due: Option<Due>,
    chunk: u64,
    buffer: Buffer,
}

impl Stream {
    /// Opens the file for the phase once, to see that it can be.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn new(run: &Arc<Run>) -> Result<Self, Failure> {
        drop(run.open()?);
        let lane = Lane::new(0, run.parameters.closings());
        let (run, buffer) = (Arc::clone(run), run.files.buffer());
        Ok(Self { open: Open::NotYet, refused: None, lane, due: None, chunk: 0, buffer, run })
    }

    /// Opens the file, unless it is, on the thread that uses it ([`Run::open`]).
    fn open_here(&mut self) {
        if !matches!(self.open, Open::NotYet) || self.refused.is_some() {
            return;
        }
        match (self.run.open(), self.run.parameters.phase) {
            (Ok(file), Phase::Putc) => self.open = Open::Characters(Putc::new(file)),
            (Ok(file), Phase::Getc) => self.open = Open::FromCharacters(Getc::new(file)),
            (Ok(file), _) => self.open = Open::Chunks(file),
            (Err(failure), _) => self.refused = Some(failure),
        }
    }

    /// Performs the phase's operation on the chunk: what was moved, and whether what was read could be compared.
    fn transfer(&mut self) -> (Moved, Result<bool, Trouble>) {
        let mut moved = Moved::default();
        let result = self.steps(&mut moved);
        (moved, result)
    }

    fn steps(&mut self, moved: &mut Moved) -> Result<bool, Trouble> {
        if let Some(failure) = &self.refused {
            return Err(Trouble::Refused(failure.clone()));
        }
        let (reads, writes) = self.run.parameters.phase.moves();
        let mut is_compared = false;
        if reads {
            let length = self.read()?;
            moved.read = length as u64;
            let expected = || self.run.files.version(0, self.chunk);
            let verified = self.run.verify(self.chunk, &self.buffer[..length], expected);
            is_compared = verified.map_err(Trouble::Wrong)?;
        }
        if writes {
            if reads {
                // What the original changes is one word of the chunk; here it is the version in its stamps.
                self.run.files.stamp(0, self.chunk, self.run.version(), &mut self.buffer);
                self.seek_back()?;
            }
            self.write()?;
            moved.written = self.buffer.len() as u64;
        }
        if reads && self.chunk + 1 == self.run.files.shape().records() {
            self.read_past_the_end()?;
        }
        Ok(is_compared)
    }

    fn read(&mut self) -> Result<usize, Trouble> {
        let Self { open, lane, buffer, .. } = self;
        match open {
            Open::FromCharacters(stream) => stream.get_all(buffer),
            Open::Chunks(file) => retried(|| {
                lane.calls += 1;
                read(&*file, &mut **buffer)
            }),
            _ => Err(Errno::BADF),
        }
        .map_err(|error| trouble("read", error))
    }

    fn write(&mut self) -> Result<(), Trouble> {
        let Self { open, lane, buffer, .. } = self;
        match open {
            Open::Characters(stream) => stream.put_all(buffer).map_err(|error| trouble("write", error)),
            Open::Chunks(file) => write_all(file, buffer, &mut lane.calls),
            _ => Err(trouble("write", Errno::BADF)),
        }
    }

    fn seek_back(&mut self) -> Result<(), Trouble> {
        let Open::Chunks(file) = &self.open else { return Err(trouble("lseek", Errno::BADF)) };
        self.lane.calls += 1;
        let back = SeekFrom::Current(-(self.buffer.len() as i64));
        seek(file, back).map(drop).map_err(|error| trouble("lseek", error))
    }

    /// The read by which the original sees that the file is at its end.
    fn read_past_the_end(&mut self) -> Result<(), Trouble> {
        let Self { open, lane, buffer, .. } = self;
        let length = match open {
            // Its loop counts the characters and asks for no more.
            Open::FromCharacters(_) => return Ok(()),
            Open::Chunks(file) => retried(|| {
                lane.calls += 1;
                read(&*file, &mut **buffer)
            }),
            _ => Err(Errno::BADF),
        };
        match length {
            Ok(0) => Ok(()),
            Ok(_) => Err(Trouble::Wrong(format!("{}: it goes on behind the last chunk", file_name(0)))),
            Err(error) => Err(trouble("read", error)),
        }
    }

    /// A part of the file's end: what is in the buffer is written by the first of them.
    fn close_file(&mut self, closing: Closing) -> Result<(), Failure> {
        let refused = |call: &str, error| refused(&file_name(0), call, error);
        if let Open::Characters(stream) = &self.open {
            stream.flush().map_err(|error| refused("write", error))?;
        }
        self.take_calls();
        self.lane.calls += 1;
        if closing == Closing::Fsync {
            let synced = match &self.open {
                Open::Characters(stream) => stream.with_file(|file| fsync(file)),
                Open::Chunks(file) => fsync(file),
                Open::FromCharacters(_) | Open::NotYet | Open::Closed => Ok(()),
            };
            return synced.map_err(|error| refused("fsync", error));
        }
        std::mem::replace(&mut self.open, Open::Closed).close().map_err(|error| refused("close", error))
    }

    /// Counts the calls of the buffered stream.
    fn take_calls(&mut self) {
        self.lane.calls += match &self.open {
            Open::Characters(stream) => stream.take_calls(),
            Open::FromCharacters(stream) => stream.take_calls(),
            _ => 0,
        };
    }
}

impl BlockingSession for Stream {
    fn pause(&mut self, _after: u64) -> Pause {
        self.open_here();
        self.lane.pause_or_rest(&self.run.progress)
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.open_here();
        self.due = self.lane.begin(&self.run.progress, index);
        if let Some(Due::Place(chunk)) = self.due {
            self.chunk = chunk;
            if self.run.parameters.phase.is_fresh() {
                self.run.files.stamp(0, chunk, self.run.version(), &mut self.buffer);
            }
        }
        Lane::begun(0, self.due, (1, self.run.parameters.closings()))
    }

    fn perform(&mut self) -> Ending {
        if let Some(Due::Closing(closing)) = self.due {
            let refused = self.close_file(closing).err();
            return self.lane.closed(&self.run.progress, refused);
        }
        let moved = self.transfer();
        self.take_calls();
        self.lane.arrive(&self.run.progress, &moved.1);
        self.lane.end(moved)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(Arc::new(Waker(Arc::clone(&self.run))))
    }

    fn close(self: Box<Self>) -> SessionReport {
        let Self { run, open, lane, .. } = *self;
        // A phase that was stopped leaves in the file what it has put, or nobody knows what.
        let flushed = if let Open::Characters(stream) = &open { stream.flush() } else { Ok(()) };
        if flushed.and(open.close()).is_err() {
            run.progress.lose();
        }
        lane.close(&run.progress, true)
    }
}

/// Writes all of a chunk where the descriptor's position is.
pub(super) fn write_all(file: impl AsFd, chunk: &[u8], calls: &mut u32) -> Result<(), Trouble> {
    let mut rest = chunk;
    while !rest.is_empty() {
        *calls += 1;
        match write(&file, rest) {
            Ok(length) => rest = &rest[length..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(trouble("write", error)),
        }
    }
    Ok(())
}

/// Calls until no signal comes in between.
pub(super) fn retried<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// A call on the file that the kernel refused.
pub(super) fn trouble(call: &str, error: Errno) -> Trouble {
    Trouble::Refused(refused(&file_name(0), call, error))
}
