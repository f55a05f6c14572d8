//! What is there at the end, against what the lines leave that each client has performed.

use super::pattern::{Hand, Pattern};
use super::place::{Place, path_of_client};
use super::player::written_by;
use super::script::{Script, Segment};
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
    checks.extend((1..).zip(segments).flat_map(|(number, segment)| moved(number, segment)));
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

/// The lines that a segment performed and the bytes that it moved, the warm-up's too, against what its clients' ways through
/// the script come to: where every line of it ended as it should.
fn moved(number: usize, segment: &Summary) -> Vec<Check> {
    let total = |name: &str| segment.totals.get(name).copied();
    let is_whole = segment.identity.failed + segment.identity.lost == 0 && total("lines_after_a_failure") == Some(0);
    let check = |what: &str, found: Option<i64>, foretold: &str| {
        let (found, expected) = (found?, total(foretold)?);
        let name = format!("{what} in segment {number}");
        Some(Check { name, expected: expected.to_string(), found: found.to_string(), ok: expected == found })
    };
    let checks = [
        check("lines performed", i64::try_from(segment.identity.done).ok(), "lines_passed"),
        check("bytes read", total("bytes_read"), "bytes_read_foretold"),
        check("bytes written", total("bytes_written"), "bytes_written_foretold"),
    ];
    checks.into_iter().flatten().filter(|_| is_whole).collect()
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
