//! What is kept from segment to segment, in one file beside the tree: the places, and the version of every block.
//!
//! The fact that constrains it: a segment may be killed. So the file says that one is under way from its beginning until all is
//! written; and it is made longer than it has to be when files are laid out, so that it can be written on a full disk.

use super::contested::Contested;
use super::places::Kept;
use super::plan::Plan;
use super::versions::BLOCK;
use crate::tree::Tree;
use crate::workload::FilesError;
use rustix::fs::{Mode, OFlags, fsync, openat};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

const NAME: &str = "files";
const MAGIC: &[u8; 16] = b"plimsoll files 1";
const UNDER_WAY_AT: u64 = 16;
/// Room for what was not known of some blocks at the end.
const SLACK: u64 = 1 << 16;

/// A block whose version is not known: of which place, the block in its file, and what it may hold.
pub(super) type Unknown = (u32, u64, Contested);

/// All that is kept.
#[derive(Debug, PartialEq)]
pub(super) struct State {
    /// Bytes that were written to files that are gone.
    pub(super) gone: u64,
    /// Bytes of writes that failed: some of them may have been written.
    pub(super) failed: u64,
    pub(super) places: Vec<Kept>,
    /// Of the blocks of each file there is, place after place; 0 where it is not known.
    pub(super) versions: Vec<u32>,
    pub(super) unknown: Vec<Unknown>,
    /// Where appending failed, by place.
    pub(super) holes: HashMap<u32, Vec<(u64, u64)>>,
}

impl State {
    /// That of files just laid out.
    pub(super) fn laid_out(plan: &Plan) -> Self {
        let there = (0..plan.count).map(|place| Kept { body: plan.laid_out_bytes(place), ..Kept::default() });
        let absent = (0..plan.count).map(|_| Kept { is_absent: true, ..Kept::default() });
        let places: Vec<Kept> = there.chain(absent).collect();
        let blocks = places.iter().map(|place| place.body / BLOCK).sum::<u64>() as usize;
        Self { gone: 0, failed: 0, places, versions: vec![1; blocks], unknown: Vec::new(), holes: HashMap::new() }
    }

    fn identity(plan: &Plan) -> [(&'static str, u64); 5] {
        let (least, most) = plan.file_bytes;
        [
            ("seed", plan.seed),
            ("count", plan.count),
            ("fanout", plan.fanout),
            ("file_bytes (least)", least),
            ("file_bytes (most)", most),
        ]
    }

    fn encoded(&self, plan: &Plan) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |value: u64| bytes.extend(value.to_le_bytes());
        put(1);
        Self::identity(plan).iter().for_each(|(_, value)| put(*value));
        [self.gone, self.failed, self.places.len() as u64, self.versions.len() as u64].into_iter().for_each(&mut put);
        put(self.unknown.len() as u64);
        put(self.holes.values().map(Vec::len).sum::<usize>() as u64);
        for kept in &self.places {
            put(u64::from(kept.is_absent) | u64::from(kept.is_unsure) << 1);
            put(u64::from(kept.generation) << u32::BITS | u64::from(kept.incarnation));
            [kept.body, kept.tail, kept.tail_ended].into_iter().for_each(&mut put);
        }
        for (place, block, contested) in &self.unknown {
            let versions: Vec<_> = contested.versions().collect();
            [u64::from(*place), *block, u64::from(contested.issued), versions.len() as u64]
                .into_iter()
                .for_each(&mut put);
            versions.iter().for_each(|(version, is_whole)| put(u64::from(*version) << 1 | u64::from(*is_whole)));
        }
        for (place, holes) in &self.holes {
            holes.iter().for_each(|(from, length)| [u64::from(*place), *from, *length].into_iter().for_each(&mut put));
        }
        self.versions.iter().for_each(|version| bytes.extend(version.to_le_bytes()));
        bytes
    }

    /// `None` where it is cut short.
    fn decoded(bytes: &[u8]) -> Option<Self> {
        let words = bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        let mut words = words.skip(MAGIC.len() / 8 + 1 + 5);
        let mut next = || words.next();
        let (gone, failed) = (next()?, next()?);
        let [places, versions, unknown, holes] = [next()?, next()?, next()?, next()?];
        let mut read = 16 + 8 * (1 + 5 + 6 + 5 * places);
        let mut state =
            Self { gone, failed, places: Vec::new(), versions: Vec::new(), unknown: Vec::new(), holes: HashMap::new() };
        for _ in 0..places {
            let (flags, names) = (next()?, next()?);
            state.places.push(Kept {
                is_absent: flags & 1 != 0,
                is_unsure: flags & 2 != 0,
                generation: (names >> u32::BITS) as u32,
                incarnation: names as u32,
                body: next()?,
                tail: next()?,
                tail_ended: next()?,
            });
        }
        for _ in 0..unknown {
            let (place, block, issued, count) = (next()? as u32, next()?, next()? as u32, next()?);
            let mut of = Vec::new();
            for _ in 0..count {
                let version = next()?;
                of.push(((version >> 1) as u32, version & 1 != 0));
            }
            read += 8 * (4 + count);
            state.unknown.push((place, block, Contested::of(issued, &of)));
        }
        for _ in 0..holes {
            let (place, hole) = (next()? as u32, (next()?, next()?));
            read += 8 * 3;
            state.holes.entry(place).or_default().push(hole);
        }
        let versions = bytes.get(read as usize..)?.get(..4 * versions as usize)?.chunks_exact(4);
        state.versions = versions.map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap_or_default())).collect();
        Some(state)
    }

    /// Writes it for the first time, with room to grow.
    pub(super) fn create(&self, tree: &Tree, plan: &Plan) -> Result<(), FilesError> {
        let file = opened(tree, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let written = self.encoded(plan);
        let room = vec![0; written.len() + SLACK as usize];
        let all = file.write_all_at(&written, 0).and_then(|()| file.write_all_at(&room, written.len() as u64));
        all.and_then(|()| complete(&file)).map_err(failed)
    }

    /// Writes it at the end of a segment.
    pub(super) fn write(&self, tree: &Tree, plan: &Plan) -> Result<(), FilesError> {
        let file = opened(tree, OFlags::RDWR)?;
        file.write_all_at(&self.encoded(plan), 0).and_then(|()| complete(&file)).map_err(failed)
    }

    /// Says that a segment is under way.
    pub(super) fn begin(tree: &Tree) -> Result<(), FilesError> {
        let file = opened(tree, OFlags::RDWR)?;
        let marked = file.write_all_at(&1u64.to_le_bytes(), UNDER_WAY_AT);
        marked.and_then(|()| Ok(fsync(&file)?)).map_err(failed)
    }

    /// Reads what the layout, or the segment before, has left.
    pub(super) fn read(tree: &Tree, plan: &Plan) -> Result<Self, FilesError> {
        let (mut bytes, anew) = (Vec::new(), "drop the files and populate again");
        opened(tree, OFlags::RDONLY)?.read_to_end(&mut bytes).map_err(failed)?;
        let word = |place: usize| -> Option<u64> {
            Some(u64::from_le_bytes(bytes.get(16 + 8 * place..)?.get(..8)?.try_into().ok()?))
        };
        let data = tree.data_path();
        let content = |what: String| FilesError::Content(format!("{}: {what}", data.display()));
        if !bytes.starts_with(MAGIC) {
            return Err(content(format!("its state file is not of this workload: {anew}")));
        }
        if word(0) != Some(0) {
            let why = "a segment, or the layout, ended before its state was saved";
            return Err(content(format!("{why}, so no read can be verified; {anew}")));
        }
        for (place, (name, asked)) in (1..).zip(Self::identity(plan)) {
            if word(place) != Some(asked) {
                let found = word(place).unwrap_or_default();
                return Err(FilesError::Content(format!(
                    "workload.{name}: {asked} is asked for, and the files were laid out with {found}: give that, \
                     or {anew}"
                )));
            }
        }
        Self::decoded(&bytes).ok_or_else(|| content(format!("its state file is truncated: {anew}")))
    }
}

fn opened(tree: &Tree, flags: OFlags) -> Result<File, FilesError> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(tree.state(), NAME, flags, Mode::from_raw_mode(0o600));
    file.map(File::from).map_err(|error| failed(error.into()))
}

/// All of it is there, so no segment is under way any more.
fn complete(file: &File) -> io::Result<()> {
    fsync(file)?;
    file.write_all_at(&0u64.to_le_bytes(), UNDER_WAY_AT)?;
    Ok(fsync(file)?)
}

fn failed(error: io::Error) -> FilesError {
    FilesError::File { path: format!("state/{NAME}"), error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::request::plan_of;
    use serde_json::json;

    fn plan(count: u64) -> Plan {
        plan_of(json!({"count": count, "file_bytes": [4096, 65536], "mix": [{"operation": "stat", "weight": 1}]}))
    }

    #[test]
    fn all_of_it_comes_back() {
        let plan = plan(20);
        let mut state = State::laid_out(&plan);
        (state.gone, state.failed, state.versions[3], state.versions[7]) = (1 << 40, 7, 99, 0);
        state.places[4] = Kept {
            is_absent: false,
            is_unsure: true,
            generation: 3,
            incarnation: 4,
            body: 4096,
            tail: u64::MAX / 3,
            tail_ended: 17,
        };
        state.unknown = vec![(2, 5, Contested::of(9, &[(7, true), (9, false)]))];
        state.holes = HashMap::from([(1, vec![(0, 10), (50, 1)]), (9, vec![(1, 2)])]);
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::create(folder.path(), "files").unwrap();
        State::laid_out(&plan).create(&tree, &plan).unwrap();
        state.write(&tree, &plan).unwrap();
        assert_eq!(State::read(&tree, &plan).unwrap(), state);
        let bytes = state.encoded(&plan);
        for length in [20, 100, 500, bytes.len() - 1] {
            assert!(State::decoded(&bytes[..length]).is_none(), "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn a_segment_that_was_killed_is_named_by_the_next_one() {
        let (plan, folder) = (plan(2), tempfile::tempdir().unwrap());
        let tree = Tree::create(folder.path(), "files").unwrap();
        State::laid_out(&plan).create(&tree, &plan).unwrap();
        State::begin(&tree).unwrap();
        let said = State::read(&tree, &plan).unwrap_err().to_string();
        assert!(said.contains("ended before its state was saved") && said.contains("populate again"), "{said}");
    }

    #[test]
    fn files_of_another_layout_are_refused_by_the_field() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::create(folder.path(), "files").unwrap();
        State::laid_out(&plan(2)).create(&tree, &plan(2)).unwrap();
        let said = State::read(&tree, &plan(3)).unwrap_err().to_string();
        assert!(said.starts_with("workload.count: 3 is asked for") && said.contains("laid out with 2"), "{said}");
    }
}
