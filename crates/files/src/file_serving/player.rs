//! One client's way through the script: each line with the calls that the original makes for it.
//!
//! | line | calls of generation 4.0 |
//! |---|---|
//! | any with a path | stat; where that fails, the directory is read for a name in other case (`resolve`) |
//! | NTCreateX | open, fstat; of a directory mkdir before them |
//! | FIND_FIRST | of a pattern the directory is read once more, up to so many entries; none is compared |
//! | SET_FILE_INFORMATION | fstat, utimensat |
//! | others | one call of their own |
//!
//! Generation 2.1 stats a path for QUERY_PATH_INFORMATION alone, and does nothing for Flush and QUERY_FS_INFORMATION.

use super::calls::Calls;
use super::options::{Lookup, Options};
use super::pattern::{Hand, Pattern};
use super::place::Place;
use super::script::{Generation, HANDLES_MAX, HOLE, How, Script, Step, UNKNOWN};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How a line went wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A call failed.
    Call(Errno),
    /// What was read is not what was written: how, in words.
    Wrong(String),
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Self {
        Self::Call(error)
    }
}

/// What a client has in its hands.
pub(super) struct Player {
    script: Arc<Script>,
    options: Options,
    pattern: Arc<Pattern>,
    places: Vec<Place>,
    home: Option<Place>,
    pub(super) calls: Calls,
    slots: Vec<Option<OwnedFd>>,
    buffer: Vec<u8>,
    /// Reads whose bytes were compared.
    pub(super) compared: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}

impl Player {
    /// `work`: the work directory.
    pub(super) fn new(
        script: &Arc<Script>,
        pattern: &Arc<Pattern>,
        options: Options,
        client: u32,
        work: OwnedFd,
    ) -> Self {
        let place = |path: &String| Place::of_client(path, client);
        Self {
            options,
            places: script.names.iter().map(place).collect(),
            home: script.home.as_ref().map(place),
            calls: Calls::new(work),
            slots: (0..HANDLES_MAX).map(|_| None).collect(),
            buffer: vec![0; script.bytes_max as usize],
            script: Arc::clone(script),
            pattern: Arc::clone(pattern),
            compared: 0,
            bytes_read: 0,
            bytes_written: 0,
        }
    }

    /// Has nothing of the client's left: no open file, no folder.
    pub(super) fn empty(&mut self) -> Result<(), Errno> {
        self.slots.fill_with(|| None);
        match &self.home {
            Some(home) => self.calls.remove_tree(&home.path),
            None => Ok(()),
        }
    }

    /// Performs a line; gives the bytes that it moved. With `compares` reads are compared with what `hand` has written.
    #[inline]
    pub(super) fn play(&mut self, line: usize, hand: Hand, compares: bool) -> Result<u64, Trouble> {
        match self.script.steps[line] {
            Step::Read { slot, offset, size, returned, content } => {
                self.read(slot, offset, size, returned)?;
                if compares && content != UNKNOWN {
                    self.compare(offset, returned, content, hand)?;
                }
                // What the original counts is the size that was asked for.
                Ok(u64::from(returned))
            }
            Step::Write { slot, offset, size } => {
                let file = open(&self.slots, slot)?;
                let bytes = &mut self.buffer[..size as usize];
                hand.write(&self.pattern, line as u32, offset, bytes);
                self.calls.write(file, bytes, offset)?;
                if self.options.sync_writes {
                    self.calls.sync(file)?;
                }
                self.bytes_written += u64::from(size);
                Ok(u64::from(size))
            }
            step => self.play_other(step).map(|()| 0).map_err(Trouble::Call),
        }
    }

    fn read(&mut self, slot: u8, offset: u64, size: u32, returned: u32) -> Result<(), Trouble> {
        let file = open(&self.slots, slot)?;
        let found = self.calls.read(file, &mut self.buffer[..size as usize], offset)?;
        self.bytes_read += found as u64;
        if found != returned as usize {
            return Err(Trouble::Wrong(format!("{found} bytes were read at {offset}, where there are {returned}")));
        }
        Ok(())
    }

    fn compare(&mut self, offset: u64, returned: u32, content: u32, hand: Hand) -> Result<(), Trouble> {
        self.compared += 1;
        let segments = self.script.content(content);
        let ends = segments.iter().skip(1).map(|next| next.at).chain([returned]);
        for (segment, end) in segments.iter().zip(ends) {
            let found = &self.buffer[segment.at as usize..end as usize];
            let at = offset + u64::from(segment.at);
            if !hand.agrees(&self.pattern, segment.writer, at, found) {
                let end = at + found.len() as u64;
                return Err(Trouble::Wrong(format!("bytes {at} to {end} are not {}", written_by(segment.writer))));
            }
        }
        Ok(())
    }

    fn play_other(&mut self, step: Step) -> Result<(), Errno> {
        match step {
            Step::Open { name, slot, how } => self.open(name, slot, how),
            Step::Close { slot } => {
                let file = self.slots[usize::from(slot)].take().ok_or(Errno::BADF)?;
                self.calls.close(file)
            }
            Step::QueryPath { name } => self.query_path(name),
            Step::QueryFile { slot } => self.calls.stat_open(open(&self.slots, slot)?).map(|_| ()),
            Step::QueryFileSystem if self.is_older() => Ok(()),
            Step::QueryFileSystem => self.calls.stat_file_system(),
            Step::SetFile { slot, name } => {
                let stat = self.calls.stat_open(open(&self.slots, slot)?)?;
                let path = &self.places[name as usize].path;
                self.calls.set_times(path, stat.st_atime - 10, stat.st_mtime - 12)
            }
            Step::Find { name, entries_max, is_pattern } => self.find(name, entries_max, is_pattern),
            Step::Unlink { name } => {
                let _ = self.resolve(name);
                self.calls.unlink(&self.places[name as usize].path)?;
                self.sync_parent(name)
            }
            Step::Rename { from, to } => {
                let _ = self.resolve(from);
                let _ = self.resolve(to);
                self.calls.rename(&self.places[from as usize].path, &self.places[to as usize].path)?;
                self.sync_parent(to)
            }
            Step::Flush { .. } if self.is_older() => Ok(()),
            Step::Flush { slot } => self.calls.sync(open(&self.slots, slot)?),
            Step::Lock { slot, offset, size } => self.calls.lock(open(&self.slots, slot)?, offset, size, true),
            Step::Unlock { slot, offset, size } => self.calls.lock(open(&self.slots, slot)?, offset, size, false),
            Step::MakeDirectory { name } => {
                let _ = self.resolve(name);
                // Others may have made it: the original does not ask, either.
                self.is_made(name, 0o777)?;
                self.sync_parent(name)
            }
            Step::RemoveDirectory { name } => {
                let _ = self.resolve(name);
                self.calls.remove_directory(&self.places[name as usize].path)?;
                self.sync_parent(name)
            }
            Step::RemoveTree { name } => self.calls.remove_tree(&self.places[name as usize].path),
            Step::Read { .. } | Step::Write { .. } => Ok(()),
        }
    }

    fn open(&mut self, name: u32, slot: u8, how: How) -> Result<(), Errno> {
        let _ = self.resolve(name);
        let sync = if self.options.o_sync { OFlags::SYNC } else { OFlags::empty() };
        let flags = match how {
            How::Plain => OFlags::RDWR | sync,
            How::Create => OFlags::RDWR | OFlags::CREATE | sync,
            How::Truncate => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | sync,
            How::Directory => {
                self.is_made(name, 0o700)?;
                OFlags::RDONLY | OFlags::DIRECTORY
            }
        };
        let file = self.calls.open(&self.places[name as usize].path, flags)?;
        self.calls.stat_open(&file)?;
        match self.slots.get_mut(usize::from(slot)) {
            Some(place) => {
                *place = Some(file);
                Ok(())
            }
            None => self.calls.close(file),
        }
    }

    fn query_path(&mut self, name: u32) -> Result<(), Errno> {
        if self.is_older() {
            return self.calls.stat(&self.places[name as usize].path).map(|_| ());
        }
        self.resolve(name)
    }

    fn find(&mut self, name: u32, entries_max: u32, is_pattern: bool) -> Result<(), Errno> {
        let resolved = self.resolve(name);
        if is_pattern {
            return self.calls.scan(&self.places[name as usize].parent, entries_max, |_| false).map(|_| ());
        }
        resolved
    }

    /// Looks for a path: as it is, then in its directory without regard to case.
    fn resolve(&mut self, name: u32) -> Result<(), Errno> {
        let place = &self.places[name as usize];
        if self.options.lookup == Lookup::None {
            return Ok(());
        }
        let Err(error) = self.calls.stat(&place.path) else { return Ok(()) };
        if self.options.lookup == Lookup::Scan
            && let Ok(true) = self.calls.scan(&place.parent, u32::MAX, |other| other.eq_ignore_ascii_case(&place.name))
        {
            return Ok(());
        }
        Err(error)
    }

    /// Makes a directory, unless it is there.
    fn is_made(&mut self, name: u32, mode: u32) -> Result<(), Errno> {
        match self.calls.make_directory(&self.places[name as usize].path, mode) {
            Err(Errno::EXIST) => Ok(()),
            other => other,
        }
    }

    fn sync_parent(&mut self, name: u32) -> Result<(), Errno> {
        match self.options.sync_directories {
            true => self.calls.sync_directory(&self.places[name as usize].parent),
            false => Ok(()),
        }
    }

    fn is_older(&self) -> bool {
        self.script.generation == Generation::Two
    }
}

/// Whose bytes they are.
pub(super) fn written_by(writer: u32) -> String {
    match writer {
        HOLE => "the zeros of a hole".to_owned(),
        line => format!("what line {} of the script wrote", line + 1),
    }
}

/// What is open in a slot; an error where opening it has failed.
fn open(slots: &[Option<OwnedFd>], slot: u8) -> Result<&OwnedFd, Errno> {
    slots[usize::from(slot)].as_ref().ok_or(Errno::BADF)
}
