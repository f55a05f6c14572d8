//! A process of a pass whose calls block: the calls that IOzone makes, on a descriptor of its own.
//!
//! The fact that constrains it: the position is the descriptor's. Passes in order leave it to the kernel, others seek
//! before each record, and those that are called so give it with each call.

use super::parameters::{Engine, Pass};
use super::run::{DONTCACHE, Run};
use crate::passes::{Closing, Due, Lane, Moved, Trouble, Waker, close, file_name, refused};
use plimsoll_mapping::Mapping;
use plimsoll_session::{
    Begun, BlockingOpener, BlockingSession, Buffer, Ending, Failure, Interrupt, Pause, SessionReport,
};
use rustix::fs::{SeekFrom, fsync, seek};
use rustix::io::{Errno, IoSlice, IoSliceMut, preadv2, pwritev2};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Opens a session for each process of the pass.
pub(super) struct Processes(pub(super) Arc<Run>);

impl BlockingOpener for Processes {
    fn open(&self, number: u32) -> Result<Box<dyn BlockingSession>, Failure> {
        let Self(run) = self;
        let file = run.parameters.file_of(number);
        let is_writer = run.parameters.is_writer(file);
        let how = match run.parameters.pass {
            _ if run.parameters.engine == Engine::Mmap => How::Mapped,
            _ if run.parameters.uncached => How::Uncached,
            Pass::Write | Pass::Rewrite | Pass::Read | Pass::Reread => How::Stream,
            Pass::Pwrite | Pass::Pread => How::Positioned,
            _ => How::Seek,
        };
        let descriptor = run.open(file)?;
        Ok(Box::new(Process {
            mapping: run.mapped(file, &descriptor)?,
            descriptor: Some(descriptor),
            lane: Lane::new(file, run.parameters.closings_of(file)),
            due: None,
            record: 0,
            is_writer,
            how,
            name: file_name(file),
            buffer: run.buffer(),
            run: Arc::clone(run),
        }))
    }
}

/// Which calls move a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// read and write, one record after the other.
    Stream,
    /// lseek before each.
    Seek,
    /// pread and pwrite.
    Positioned,
    /// preadv2 and pwritev2 with RWF_DONTCACHE.
    Uncached,
    /// None: the record is copied from or to the file's memory.
    Mapped,
}

struct Process {
    run: Arc<Run>,
    /// Open until the pass is through with the file, if closing belongs to it.
    descriptor: Option<OwnedFd>,
    /// Of a pass that makes no calls.
    mapping: Option<Mapping>,
    lane: Lane,
    due: Option<Due>,
    record: u64,
    is_writer: bool,
    how: How,
    name: String,
    buffer: Buffer,
}

impl Process {
    fn refused(&self, call: &str, error: Errno) -> Trouble {
        Trouble::Refused(refused(&self.name, call, error))
    }

    /// Moves the record, and compares what was read. Gives the bytes moved, and whether they could be compared.
    fn transfer(&mut self) -> (Moved, Result<bool, Trouble>) {
        if let Some(mapping) = &self.mapping {
            let (at, bytes) = (self.run.offset(self.record) as usize, self.buffer.len() as u64);
            if self.is_writer {
                mapping.write(at, &self.buffer);
                return (Moved { read: 0, written: bytes }, Ok(false));
            }
            mapping.read(at, &mut self.buffer);
            let verified = self.run.verify(self.lane.file, self.record, &self.buffer);
            return (Moved { read: bytes, written: 0 }, verified.map_err(Trouble::Wrong));
        }
        let Some(descriptor) = self.descriptor.take() else {
            return (Moved::default(), Err(self.refused("read", Errno::BADF)));
        };
        let moved = self.seek(&descriptor).and_then(|()| match self.is_writer {
            true => self.write(&descriptor),
            false => self.read(&descriptor),
        });
        self.descriptor = Some(descriptor);
        match moved {
            Err(trouble) => (Moved::default(), Err(trouble)),
            Ok(bytes) if self.is_writer => (Moved { read: 0, written: bytes as u64 }, Ok(false)),
            Ok(bytes) => {
                let verified = self.run.verify(self.lane.file, self.record, &self.buffer[..bytes]);
                (Moved { read: bytes as u64, written: 0 }, verified.map_err(Trouble::Wrong))
            }
        }
    }

    fn seek(&mut self, descriptor: &OwnedFd) -> Result<(), Trouble> {
        if self.how != How::Seek {
            return Ok(());
        }
        self.lane.calls += 1;
        let to = SeekFrom::Start(self.run.offset(self.record));
        seek(descriptor, to).map(drop).map_err(|error| self.refused("lseek", error))
    }

    fn read(&mut self, descriptor: &OwnedFd) -> Result<usize, Trouble> {
        let offset = self.run.offset(self.record);
        loop {
            self.lane.calls += 1;
            let (call, read) = match self.how {
                How::Stream | How::Seek | How::Mapped => ("read", rustix::io::read(descriptor, &mut *self.buffer)),
                How::Positioned => ("pread", rustix::io::pread(descriptor, &mut *self.buffer, offset)),
                How::Uncached => {
                    let into = &mut [IoSliceMut::new(&mut self.buffer)];
                    ("preadv2", preadv2(descriptor, into, offset, DONTCACHE))
                }
            };
            match read {
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.refused(call, error)),
                Ok(bytes) => return Ok(bytes),
            }
        }
    }

    fn write(&mut self, descriptor: &OwnedFd) -> Result<usize, Trouble> {
        let offset = self.run.offset(self.record);
        let mut done = 0;
        while done < self.buffer.len() {
            self.lane.calls += 1;
            let (rest, at) = (&self.buffer[done..], offset + done as u64);
            let (call, written) = match self.how {
                How::Stream | How::Seek | How::Mapped => ("write", rustix::io::write(descriptor, rest)),
                How::Positioned => ("pwrite", rustix::io::pwrite(descriptor, rest, at)),
                How::Uncached => ("pwritev2", pwritev2(descriptor, &[IoSlice::new(rest)], at, DONTCACHE)),
            };
            match written {
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.refused(call, error)),
                Ok(bytes) => done += bytes,
            }
        }
        Ok(done)
    }

    /// A part of the closing.
    fn close_file(&mut self, closing: Closing) -> Result<(), Failure> {
        self.lane.calls += 1;
        let Some(descriptor) = self.descriptor.take() else { return Ok(()) };
        match closing {
            Closing::Fsync => {
                let synced = self.mapping.as_ref().map_or_else(|| fsync(&descriptor), Mapping::sync);
                self.descriptor = Some(descriptor);
                synced
            }
            Closing::Close => {
                self.mapping = None;
                close(descriptor)
            }
        }
        .map_err(|error| refused(&self.name, closing.name(), error))
    }
}

impl BlockingSession for Process {
    fn pause(&mut self, _after: u64) -> Pause {
        self.lane.pause_or_rest(&self.run.progress)
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.due = self.lane.begin(&self.run.progress, index);
        if let Some(Due::Place(place)) = self.due {
            self.record = self.run.record(self.lane.file, place);
            if self.is_writer {
                self.run.stamp(self.lane.file, self.record, &mut self.buffer);
            }
        }
        self.run.begun(self.lane.file, self.due)
    }

    fn perform(&mut self) -> Ending {
        if let Some(Due::Closing(closing)) = self.due {
            let refused = self.close_file(closing).err();
            return self.lane.closed(&self.run.progress, refused);
        }
        let moved = self.transfer();
        self.lane.arrive(&self.run.progress, &moved.1);
        self.lane.end(moved)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(Arc::new(Waker(Arc::clone(&self.run))))
    }

    fn close(self: Box<Self>) -> SessionReport {
        if let Some(descriptor) = self.descriptor {
            self.run.keep(descriptor, self.mapping);
        }
        self.lane.close(&self.run.progress, true)
    }
}
