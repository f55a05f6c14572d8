//! What a segment leaves for the next one and for the check: how far each client has come.
//!
//! The fact that constrains it: at the end the disk may be full. So its room is taken at the beginning, and filled in place.

use crate::tree::Tree;
use crate::workload::FilesError;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};

const NAME: &str = "clients.json";
/// At most so many bytes are taken by what is kept of all clients, and of each.
const HEAD_BYTES: usize = 256;
const POSITION_BYTES: usize = 128;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// Counted from 0.
    pub(super) client: u32,
    /// Which of its passes it was in.
    pub(super) pass: u64,
    /// Lines of it that were performed.
    pub(super) lines: u64,
    /// A line of the pass went wrong, so the files are not those that the script foretells.
    pub(super) is_disturbed: bool,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Of the script that was performed.
    pub(super) fingerprint: u64,
    /// How many clients there were; of those that have not ended there is no position.
    pub(super) clients: u32,
    /// The number of its first pass.
    pub(super) first_pass: u64,
    /// No pass with this number, or a higher one, was begun.
    pub(super) next_pass: u64,
    pub(super) positions: Vec<Position>,
}

impl State {
    /// What the last segment has left; `None` if there was none.
    pub(super) fn read(tree: &Tree) -> Result<Option<Self>, FilesError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(tree.state(), NAME, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            other => File::from(other.map_err(|error| failed(error.into()))?),
        };
        let mut text = Vec::new();
        (&file).read_to_end(&mut text).map_err(failed)?;
        let state = serde_json::from_slice(&text)
            .map_err(|error| failed(std::io::Error::new(ErrorKind::InvalidData, error)))?;
        Ok(Some(state))
    }

    /// Keeps it, and takes the room that it will need when every client has ended.
    pub(super) fn begin(&self, tree: &Tree) -> Result<(), FilesError> {
        self.write(tree, OFlags::CREATE | OFlags::TRUNC)
    }

    /// Keeps it in the room that was taken.
    pub(super) fn conclude(&self, tree: &Tree) -> Result<(), FilesError> {
        self.write(tree, OFlags::empty())
    }

    fn write(&self, tree: &Tree, more: OFlags) -> Result<(), FilesError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        let file =
            openat(tree.state(), NAME, flags, Mode::from_raw_mode(0o600)).map_err(|error| failed(error.into()))?;
        let mut file = File::from(file);
        let mut text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        text.resize(text.len().max(HEAD_BYTES + POSITION_BYTES * self.clients as usize), b' ');
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
    }
}

fn failed(error: std::io::Error) -> FilesError {
    FilesError::File { path: format!("state/{NAME}"), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_needs_no_more_room_than_was_taken() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::create(folder.path(), "file_serving").unwrap();
        let most =
            State { fingerprint: u64::MAX, clients: 5, first_pass: u64::MAX, next_pass: u64::MAX, ..State::default() };
        most.begin(&tree).unwrap();
        let size = || std::fs::metadata(folder.path().join("state/clients.json")).unwrap().len();
        let taken = size();
        let position = Position { client: u32::MAX, pass: u64::MAX, lines: u64::MAX, is_disturbed: false };
        let most = State { positions: vec![position; 5], ..most };
        most.conclude(&tree).unwrap();
        assert_eq!((size(), State::read(&tree).unwrap()), (taken, Some(most)));
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::create(folder.path(), "file_serving").unwrap();
        assert_eq!(State::read(&tree).unwrap(), None);
        let position = Position { client: 2, pass: 7, lines: 99, is_disturbed: true };
        let state = State { fingerprint: u64::MAX, clients: 3, first_pass: 5, next_pass: 8, positions: vec![position] };
        state.begin(&tree).unwrap();
        assert_eq!(State::read(&tree).unwrap(), Some(state));
        std::fs::write(folder.path().join("state/clients.json"), "{").unwrap();
        assert!(State::read(&tree).unwrap_err().to_string().contains("state/clients.json"));
    }
}
