//! A script: the lines of a load file as all clients perform them, in a few bytes each.
//!
//! The fact that constrains it: a client's files are its own, so what each line finds is known before it is performed.
//! A script says of every read which line has written what it finds.

use super::operation::Operation;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Handles that a client has open at most.
pub(super) const HANDLES_MAX: usize = 200;
/// The part of a path that each client replaces by one of its own.
pub(super) const CLIENT: &str = "client1";
/// In the place of a line: nothing was written there.
pub(super) const HOLE: u32 = u32::MAX;
/// In the place of what a read finds: the script does not say.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Which rules a load file is performed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) enum Generation {
    /// Names are resolved, lines say how they end, files are looped over.
    #[serde(rename = "4.0")]
    Four,
    /// A name costs one stat at most, only a handle of -1 says that a line fails; one pass.
    #[serde(rename = "2.1")]
    Two,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum How {
    /// It has to be there.
    Plain,
    /// Made if it is not there.
    Create,
    /// Made if it is not there, else emptied.
    Truncate,
    /// A directory, made if it is not there.
    Directory,
}

/// What one line does. Names are places in [`Script::names`], slots are places for open handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Open {
        name: u32,
        slot: u8,
        how: How,
    },
    Close {
        slot: u8,
    },
    /// `content`: place in [`Script::contents`], or [`UNKNOWN`].
    Read {
        slot: u8,
        offset: u64,
        size: u32,
        returned: u32,
        content: u32,
    },
    Write {
        slot: u8,
        offset: u64,
        size: u32,
    },
    QueryPath {
        name: u32,
    },
    QueryFile {
        slot: u8,
    },
    QueryFileSystem,
    SetFile {
        slot: u8,
        name: u32,
    },
    /// At most so many entries are read of the directory, where the name is a pattern.
    Find {
        name: u32,
        entries_max: u32,
        is_pattern: bool,
    },
    Unlink {
        name: u32,
    },
    Rename {
        from: u32,
        to: u32,
    },
    Flush {
        slot: u8,
    },
    Lock {
        slot: u8,
        offset: u64,
        size: u32,
    },
    Unlock {
        slot: u8,
        offset: u64,
        size: u32,
    },
    MakeDirectory {
        name: u32,
    },
    RemoveDirectory {
        name: u32,
    },
    RemoveTree {
        name: u32,
    },
}

impl Step {
    /// By which name a load file has it.
    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Open { .. } => Operation::NtCreateX,
            Self::Close { .. } => Operation::Close,
            Self::Read { .. } => Operation::ReadX,
            Self::Write { .. } => Operation::WriteX,
            Self::QueryPath { .. } => Operation::QueryPathInformation,
            Self::QueryFile { .. } => Operation::QueryFileInformation,
            Self::QueryFileSystem => Operation::QueryFsInformation,
            Self::SetFile { .. } => Operation::SetFileInformation,
            Self::Find { .. } => Operation::FindFirst,
            Self::Unlink { .. } => Operation::Unlink,
            Self::Rename { .. } => Operation::Rename,
            Self::Flush { .. } => Operation::Flush,
            Self::Lock { .. } => Operation::LockX,
            Self::Unlock { .. } => Operation::UnlockX,
            Self::MakeDirectory { .. } => Operation::Mkdir,
            Self::RemoveDirectory { .. } => Operation::Rmdir,
            Self::RemoveTree { .. } => Operation::Deltree,
        }
    }
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// By what the line says, or, where it says nothing, by what was done before.
    pub(super) is_ok: bool,
    /// The line says so: an end that differs is a failure.
    pub(super) is_checked: bool,
}

/// A part of what a read finds, up to the next part or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Bytes from the beginning of the read.
    pub(super) at: u32,
    /// The line that wrote it, counted from 0, or [`HOLE`].
    pub(super) writer: u32,
}

/// The lines of a load file, and what follows from them.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) generation: Generation,
    pub(super) steps: Vec<Step>,
    /// Of each line.
    pub(super) expected: Vec<Expected>,
    /// Paths below the work directory, as of [`CLIENT`].
    pub(super) names: Vec<String>,
    /// The client's own folder, a path like those; `None` if it has none.
    pub(super) home: Option<String>,
    /// What reads find, one after the other.
    pub(super) segments: Vec<Segment>,
    /// Where the segments of each read begin; one more than there are reads.
    pub(super) contents: Vec<u32>,
    /// The most bytes that one line moves.
    pub(super) bytes_max: u32,
    /// Whether there is a file or a directory of the client's after the last line.
    pub(super) leaves_files: bool,
}

impl Script {
    /// What read number `content` finds.
    pub(super) fn content(&self, content: u32) -> &[Segment] {
        let place = content as usize;
        &self.segments[self.contents[place] as usize..self.contents[place + 1] as usize]
    }

    /// Bytes that are read and written by so many of its first lines, from none to all of them.
    pub(super) fn moved(&self) -> Vec<(u64, u64)> {
        let moved = self.steps.iter().scan((0, 0), |(read, written), step| {
            match *step {
                Step::Read { returned, .. } => *read += u64::from(returned),
                Step::Write { size, .. } => *written += u64::from(size),
                _ => {}
            }
            Some((*read, *written))
        });
        std::iter::once((0, 0)).chain(moved).collect()
    }

    /// A number that another script hardly has: what one segment leaves is the next one's by it.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.steps, &self.names).hash(&mut hasher);
        hasher.finish()
    }
}
