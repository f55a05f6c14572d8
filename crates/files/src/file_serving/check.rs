//! What is there at the end, against what the lines leave that each client has performed.

use super::pattern::{Hand, Pattern};
use super::place::{Place, path_of_client};
use super::player::written_by;
use super::script::{Script, Segment, Step};
use super::state::{Position, State};
use super::world::{Contents, Node, World};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_record::{Check, Summary};
use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How many names of what is wrong are told.
const TOLD_MAX: usize = 3;
/// Bytes that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// All checks, after `segments`.
pub(super) fn check(script: &Script, seed: u64, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
    let state = State::read(tree)?.unwrap_or_default();
    if state.clients > 0 && state.fingerprint != script.fingerprint() {
        return Err(FilesError::Content("the files were left by another script: check them with that one".to_owned()));
    }
    let mut found = Found::default();
    for position in state.positions.iter().filter(|position| !position.is_disturbed) {
        found.of_client(script, seed, tree, position)?;
    }
    // A line that failed is counted by its error, in whatever pass it was: what its client has left then nobody foretells.
    let disturbed = state.positions.iter().filter(|position| position.is_disturbed).count();
    let left_out = match disturbed {
        0 => String::new(),
        some => format!(" (without {some} of {} clients, of whose last pass a line failed)", state.positions.len()),
    };
    let mut checks = vec![
        equal("clients whose end is known", state.clients as usize, state.positions.len()),
        Check {
            name: "files and directories left".to_owned(),
            expected: found.names_expected.to_string(),
            found: format!("{}{left_out}{}", found.names, told(&found.names_wrong)),
            ok: found.names_wrong.is_empty(),
        },
        Check {
            name: "bytes left in files".to_owned(),
            expected: found.bytes_expected.to_string(),
            found: format!("{}{left_out}{}", found.bytes, told(&found.bytes_wrong)),
            ok: found.bytes_wrong.is_empty() && found.bytes == found.bytes_expected,
        },
    ];
    checks.extend(segments.last().map(|last| moved(script, &state, last)).unwrap_or_default());
    Ok(checks)
}

/// Removes what `client` has left.
pub(super) fn remove(script: &Script, tree: &Tree, client: u32) -> Result<(), FilesError> {
    let Some(home) = &script.home else { return Ok(()) };
    let path = path_of_client(home, client);
    let work = rustix::io::fcntl_dupfd_cloexec(tree.data(), 0).map_err(|error| failed(&path, error))?;
    super::calls::Calls::new(work)
        .remove_tree(&Place::of_client(home, client).path)
        .map_err(|error| failed(&path, error))
}

fn failed(path: &str, error: Errno) -> FilesError {
    FilesError::File { path: format!("data/{path}"), error: error.into() }
}

fn equal(name: &str, expected: usize, found: usize) -> Check {
    Check { name: name.to_owned(), expected: expected.to_string(), found: found.to_string(), ok: expected == found }
}

fn told(wrong: &[String]) -> String {
    match wrong {
        [] => String::new(),
        some => format!("; {} wrong: {}", some.len(), some[..some.len().min(TOLD_MAX)].join("; ")),
    }
}

/// The bytes that the last segment moved, where every line of it ended as it should.
fn moved(script: &Script, state: &State, last: &Summary) -> Vec<Check> {
    let is_whole = state.positions.len() == state.clients as usize
        && state.positions.iter().all(|position| !position.is_disturbed)
        && last.identity.failed + last.identity.lost == 0;
    if !is_whole {
        return Vec::new();
    }
    let sum = |bytes_of: fn(&Step) -> u64| -> u64 {
        let in_all: u64 = script.steps.iter().map(bytes_of).sum();
        let of_client = |position: &Position| {
            let begun: u64 = script.steps[..position.lines as usize].iter().map(bytes_of).sum();
            (position.pass - state.first_pass) * in_all + begun
        };
        state.positions.iter().map(of_client).sum()
    };
    let check = |name: &str, total: &str, bytes: u64| {
        let found = last.totals.get(total).copied().unwrap_or_default();
        Check {
            name: name.to_owned(),
            expected: bytes.to_string(),
            found: found.to_string(),
            ok: i64::try_from(bytes) == Ok(found),
        }
    };
    let read = sum(|step| if let Step::Read { returned, .. } = step { u64::from(*returned) } else { 0 });
    let written = sum(|step| if let Step::Write { size, .. } = step { u64::from(*size) } else { 0 });
    vec![
        check("bytes read in the last segment", "bytes_read", read),
        check("bytes written in the last segment", "bytes_written", written),
    ]
}

/// What was found, of all clients.
#[derive(Default)]
struct Found {
    names_expected: usize,
    names: usize,
    names_wrong: Vec<String>,
    bytes_expected: u64,
    bytes: u64,
    bytes_wrong: Vec<String>,
}

impl Found {
    fn of_client(&mut self, script: &Script, seed: u64, tree: &Tree, position: &Position) -> Result<(), FilesError> {
        let mut world = World::new();
        let performed = script.steps.iter().zip(&script.expected).take(position.lines as usize);
        for (line, (step, expected)) in (0..).zip(performed) {
            world.apply(line, step, *expected, &script.names);
        }
        let Some(home) = &script.home else { return Ok(()) };
        let home_path = path_of_client(home, position.client);
        let mut there = BTreeMap::new();
        list(tree, &home_path, &mut there)?;
        self.names += there.len();
        let pattern = Pattern::new(seed, AT_ONCE as usize);
        let hand = Hand::new(seed, position.client, position.pass, script.steps.len());
        for (name, node) in world.nodes() {
            let path = path_of_client(&script.names[name as usize], position.client);
            if path != home_path && !path.starts_with(&format!("{home_path}/")) {
                continue;
            }
            self.names_expected += 1;
            match (node, there.remove(&path)) {
                (Node::Directory, Some(true)) => {}
                (Node::File(place), Some(false)) => self.of_file(tree, &path, world.file(place), (&pattern, hand))?,
                (_, Some(_)) => self.names_wrong.push(format!("{path} is of another kind")),
                (_, None) => self.names_wrong.push(format!("{path} is missing")),
            }
        }
        self.names_wrong.extend(there.into_keys().map(|path| format!("{path} should not be there")));
        Ok(())
    }

    fn of_file(
        &mut self,
        tree: &Tree,
        path: &str,
        contents: &Contents,
        (pattern, hand): (&Pattern, Hand),
    ) -> Result<(), FilesError> {
        let refused = |error: std::io::Error| FilesError::File { path: format!("data/{path}"), error };
        let file = File::from(tree.file(path, OFlags::RDONLY | OFlags::NOFOLLOW).map_err(|error| failed(path, error))?);
        let size = file.metadata().map_err(refused)?.len();
        self.bytes_expected += contents.size;
        if size != contents.size {
            self.bytes_wrong.push(format!("{path} has {size} bytes, not {}", contents.size));
            return Ok(());
        }
        let (mut buffer, mut segments) = (vec![0; size.min(AT_ONCE) as usize], Vec::new());
        for start in (0..size).step_by(AT_ONCE as usize) {
            let end = (start + AT_ONCE).min(size);
            let buffer = &mut buffer[..(end - start) as usize];
            file.read_exact_at(buffer, start).map_err(refused)?;
            segments.clear();
            contents.segments(start, end, &mut segments);
            let wrong =
                first_wrong(&segments, buffer, start, |writer, at, bytes| hand.agrees(pattern, writer, at, bytes));
            match wrong {
                None => self.bytes += end - start,
                Some((at, writer)) => {
                    self.bytes_wrong.push(format!("{path}: from byte {at} on not {}", written_by(writer)))
                }
            }
        }
        Ok(())
    }
}

/// The first segment of `bytes`, which begin at `start`, that does not agree: where it begins, and who wrote it.
fn first_wrong(
    segments: &[Segment],
    bytes: &[u8],
    start: u64,
    agrees: impl Fn(u32, u64, &[u8]) -> bool,
) -> Option<(u64, u32)> {
    let ends = segments.iter().skip(1).map(|next| next.at as usize).chain([bytes.len()]);
    segments.iter().zip(ends).find_map(|(segment, end)| {
        let at = start + u64::from(segment.at);
        let is_wrong = !agrees(segment.writer, at, &bytes[segment.at as usize..end]);
        is_wrong.then_some((at, segment.writer))
    })
}

/// Everything from `path` on, itself too: whether it is a directory. Nothing where it is not there.
fn list(tree: &Tree, path: &str, found: &mut BTreeMap<String, bool>) -> Result<(), FilesError> {
    let refused = |error| failed(path, error);
    let directory = match tree.file(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(refused)?,
    };
    found.insert(path.to_owned(), true);
    for entry in Dir::read_from(&directory).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let name = entry.file_name().to_string_lossy();
        if matches!(&*name, "." | "..") {
            continue;
        }
        let below = format!("{path}/{name}");
        let kind = match entry.file_type() {
            // Not every file system says it.
            FileType::Unknown => kind_of(tree, &below)?,
            kind => kind,
        };
        if kind == FileType::Directory {
            list(tree, &below, found)?;
        } else {
            found.insert(below, false);
        }
    }
    Ok(())
}

fn kind_of(tree: &Tree, path: &str) -> Result<FileType, FilesError> {
    let stat = rustix::fs::statat(tree.data(), path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.map(|stat| FileType::from_raw_mode(stat.st_mode)).map_err(|error| failed(path, error))
}
