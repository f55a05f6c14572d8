//! What passes have left in the files, kept in the tree's folder of state from one segment to the next.
//!
//! The fact that constrains it: a kill may come at any time. So a pass that writes is noted before it begins, and what
//! it has left only when it is over; where the note is still there, nobody knows what the files hold, and only a pass
//! that makes them anew goes on.

use super::progress::Reached;
use super::sequence::{Order, Sequence};
use crate::tree::Tree;
use crate::workload::FilesError;
use rustix::fs::{Mode, OFlags, fsync, openat, renameat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};

const NAME: &str = "passes.json";
const NEW: &str = "passes.json.new";

/// What the files are, whatever passes go over them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Of the stamps and of random orders.
    pub(crate) seed: u64,
    /// How many.
    pub(crate) files: u32,
    /// Of each.
    pub(crate) file_bytes: u64,
    /// Of each record.
    pub(crate) record_bytes: u64,
}

impl Shape {
    /// Records of a file.
    pub(crate) fn records(&self) -> u64 {
        self.file_bytes / self.record_bytes
    }
}

/// What one pass has written to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    /// A prefix of its order, all with one version.
    Pass {
        /// In the stamps of its records.
        version: u64,
        /// How it went through the file.
        order: Order,
        /// Places of the order, from the first.
        places: u64,
        /// Places among them that were not written.
        unwritten: BTreeSet<u64>,
    },
    /// Single records, each with its version.
    Records(BTreeMap<u64, u64>),
}

/// The passes so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// Of the files.
    pub(crate) shape: Shape,
    /// The newest version that anything may have.
    pub(crate) newest: u64,
    /// The pass that writes and is not known to have ended.
    pub(crate) under_way: Option<String>,
    /// Of each file, the oldest first.
    pub(crate) files: Vec<Vec<Layer>>,
}

impl History {
    /// Of files that have nothing in them yet.
    pub(crate) fn new(shape: Shape) -> Self {
        let files = (0..shape.files).map(|_| Vec::new()).collect();
        Self { shape, newest: 0, under_way: None, files }
    }

    /// That of the tree; `None` before the first pass.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn load(tree: &Tree) -> Result<Option<Self>, FilesError> {
        let file = match openat(tree.state(), NAME, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            opened => opened.map_err(|error| unusable(error.into()))?,
        };
        let mut text = Vec::new();
        File::from(file).read_to_end(&mut text).map_err(unusable)?;
        serde_json::from_slice(&text).map(Some).map_err(|error| unusable(error.into()))
    }

    /// Keeps it, so that after a crash there is either this one or the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn store(&self, tree: &Tree) -> Result<(), FilesError> {
        let stored = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
            let mut file = File::from(openat(tree.state(), NEW, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            renameat(tree.state(), NEW, tree.state(), NAME)?;
            Ok(fsync(tree.state())?)
        };
        stored().map_err(unusable)
    }

    /// Notes in the tree that `pass` is about to write so many versions above the newest. This one stays as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note(&self, tree: &Tree, pass: &str, versions: u64) -> Result<(), FilesError> {
        Self { newest: self.newest + versions, under_way: Some(pass.to_owned()), ..self.clone() }.store(tree)
    }

    /// That of the tree, for a pass over files that are there: `first` is the pass that makes them.
    ///
    /// # Errors
    /// When they are not there, or are not those of `shape`, or a pass was ended in its middle.
    pub(crate) fn ready(tree: &Tree, shape: &Shape, first: &str) -> Result<Self, FilesError> {
        let refused = |why: String| Err(FilesError::Content(format!("{why}: begin with the pass {first}")));
        let Some(history) = Self::load(tree)? else {
            return refused("there are no files yet".to_owned());
        };
        if let Some(pass) = &history.under_way {
            return refused(format!("nobody knows what the pass {pass} has left, which was ended in its middle"));
        }
        if history.shape != *shape {
            let Shape { seed, files, file_bytes, record_bytes } = &history.shape;
            let of = format!("{files} of {file_bytes} bytes in records of {record_bytes}, seed {seed}");
            return refused(format!("the files that are there are others ({of})"));
        }
        let short = (0..).zip(history.known()).find(|(_, known)| !known.is_complete());
        if let Some((number, _)) = short {
            let name = super::names::file_name(number);
            return refused(format!("{name} is not complete, because the pass that wrote it was stopped"));
        }
        Ok(history)
    }

    /// What each file holds.
    pub(crate) fn known(&self) -> Vec<Known> {
        self.files.iter().map(|layers| Known::new(&self.shape, layers.clone())).collect()
    }

    /// A pass of one version has written a file as far as it came.
    pub(crate) fn wrote(&mut self, file: u32, version: u64, order: Order, reached: Reached) {
        let Reached { given_out: places, given_back: unwritten } = reached;
        let layers = &mut self.files[file as usize];
        if places == self.shape.records() && unwritten.is_empty() {
            layers.clear();
        }
        if places > 0 {
            layers.push(Layer::Pass { version, order, places, unwritten });
        }
        self.newest = self.newest.max(version);
    }
}

fn unusable(error: std::io::Error) -> FilesError {
    FilesError::File { path: format!("state/{NAME}"), error }
}

/// What one file holds.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The newest first.
    layers: Vec<(Sequence, Layer)>,
    /// Of every record that no layer says anything of.
    records: u64,
}

impl Known {
    fn new(shape: &Shape, layers: Vec<Layer>) -> Self {
        let sequence = |layer: &Layer| {
            let order = if let Layer::Pass { order, .. } = layer { *order } else { Order::Forward };
            Sequence::new(order, shape.seed, shape.records())
        };
        let layers = layers.into_iter().rev().map(|layer| (sequence(&layer), layer)).collect();
        Self { layers, records: shape.records() }
    }

    /// The version that `record` holds; 0: nothing was written there.
    #[inline]
    pub(crate) fn version(&self, record: u64) -> u64 {
        for (sequence, layer) in &self.layers {
            match layer {
                Layer::Pass { version, places, unwritten, .. } => {
                    let is_whole = *places == self.records && unwritten.is_empty();
                    let place = if is_whole { 0 } else { sequence.place(record) };
                    if place < *places && !unwritten.contains(&place) {
                        return *version;
                    }
                }
                Layer::Records(records) => {
                    if let Some(&version) = records.get(&record) {
                        return version;
                    }
                }
            }
        }
        0
    }

    /// Whether every record was written once.
    pub(crate) fn is_complete(&self) -> bool {
        self.layers.iter().any(|(_, layer)| match layer {
            Layer::Pass { places, unwritten, .. } => *places == self.records && unwritten.is_empty(),
            Layer::Records(_) => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { seed: 1, files: 1, file_bytes: 40_960, record_bytes: 4_096 }
    }

    fn reached(given_out: u64, given_back: &[u64]) -> Reached {
        Reached { given_out, given_back: given_back.iter().copied().collect() }
    }

    #[test]
    fn a_record_holds_what_the_newest_pass_that_came_to_it_has_left() {
        let mut history = History::new(shape());
        history.wrote(0, 1, Order::Forward, reached(10, &[]));
        history.wrote(0, 2, Order::Backward, reached(4, &[1]));
        let held = |history: &History| -> Vec<u64> {
            let known = &history.known()[0];
            assert!(known.is_complete());
            (0..10).map(|record| known.version(record)).collect()
        };
        assert_eq!(held(&history), [1, 1, 1, 1, 1, 1, 2, 2, 1, 2]);
        history.files[0].push(Layer::Records(BTreeMap::from([(3, 9)])));
        assert_eq!(held(&history), [1, 1, 1, 9, 1, 1, 2, 2, 1, 2]);
        history.wrote(0, 10, Order::Random { table: 5 }, reached(10, &[]));
        assert_eq!(history.files[0].len(), 1, "a whole pass hides all before");
        assert_eq!(held(&history), [10; 10]);
    }

    #[test]
    fn a_prefix_of_a_random_order_is_known_exactly() {
        let mut history = History::new(shape());
        history.wrote(0, 1, Order::Forward, reached(10, &[]));
        let order = Order::Random { table: 3 };
        history.wrote(0, 2, order, reached(6, &[]));
        let known = &history.known()[0];
        let sequence = Sequence::new(order, 1, 10);
        for place in 0..10 {
            let expected = if place < 6 { 2 } else { 1 };
            assert_eq!(known.version(sequence.record(place)), expected, "place {place}");
        }
    }

    #[test]
    fn what_was_not_ended_or_is_another_s_is_refused_until_the_files_are_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::create(folder.path(), "toy").unwrap();
        let refused = || History::ready(&tree, &shape(), "write").unwrap_err().to_string();
        assert!(refused().contains("no files yet: begin with the pass write"), "{}", refused());
        let mut history = History::new(shape());
        history.wrote(0, 1, Order::Forward, reached(9, &[]));
        history.store(&tree).unwrap();
        assert!(refused().contains("file.0000 is not complete"), "{}", refused());
        history.wrote(0, 2, Order::Forward, reached(10, &[]));
        history.store(&tree).unwrap();
        assert_eq!(History::ready(&tree, &shape(), "write").unwrap(), history);
        let other = Shape { record_bytes: 8_192, ..shape() };
        let told = History::ready(&tree, &other, "write").unwrap_err().to_string();
        assert!(told.contains("records of 4096"), "{told}");
        history.note(&tree, "rewrite", 1).unwrap();
        assert_eq!(History::load(&tree).unwrap().unwrap().newest, 3, "its version is used up, whatever becomes of it");
        assert!(refused().contains("the pass rewrite has left"), "{}", refused());
    }
}
