//! Every byte of every file against what the passes have left.

use super::history::{History, Known, Shape};
use super::names::file_name;
use crate::stamp::{self, Stamps};
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_record::{Check, Summary};
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};

/// Reads all files and compares them, and the segments' own counts with each other.
///
/// # Errors
/// When a file cannot be read at all.
pub(crate) fn check_files(tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
    let Some(history) = History::load(tree)? else {
        return Ok(vec![check("files that passes have made", "some", "none")]);
    };
    if let Some(pass) = &history.under_way {
        return Ok(vec![check(
            "passes of which is known what they left",
            "all",
            &format!("not of {pass}, the last one"),
        )]);
    }
    let mut checks = Vec::new();
    let mut found = Found::default();
    for (number, known) in (0..).zip(&history.known()) {
        found.file(tree, &history.shape, (number, known))?;
    }
    let Found { of_their_length, first_length, right, first_wrong } = found;
    let (files, records) = (u64::from(history.shape.files), u64::from(history.shape.files) * history.shape.records());
    checks.push(counted("files of their length", files, of_their_length, &first_length));
    checks.push(counted("records as the passes left them", records, right, &first_wrong));
    checks.extend(segments.iter().flat_map(payload));
    Ok(checks)
}

/// What a segment says it moved against what its operations that were done have moved, each of them.
fn payload(segment: &Summary) -> Vec<Check> {
    let Some(each) = segment.facts.get("bytes_each").and_then(Value::as_object) else { return Vec::new() };
    let total = |name: String| segment.totals.get(&name).copied().unwrap_or(0);
    let of = |moved: &str| {
        let done = |kind: &str| segment.by_kind.get(kind).map_or(0, |by_kind| by_kind.done as i64);
        let of_kind = |(kind, each): (&String, &Value)| Some(each.get(moved)?.as_i64()? * done(kind));
        let expected: Vec<i64> = each.iter().filter_map(of_kind).collect();
        let found = total(format!("bytes_{moved}")) - total(format!("bytes_{moved}_failed"));
        let name = format!("bytes {moved} by {}", each.keys().cloned().collect::<Vec<_>>().join(" and "));
        let check = |sum: i64| check(&name, &sum.to_string(), &found.to_string());
        (!expected.is_empty()).then(|| check(expected.iter().sum()))
    };
    ["read", "written"].into_iter().filter_map(of).collect()
}

fn check(name: &str, expected: &str, found: &str) -> Check {
    let ok = expected == found;
    Check { name: name.to_owned(), expected: expected.to_owned(), found: found.to_owned(), ok }
}

fn counted(name: &str, expected: u64, found: u64, first: &Option<String>) -> Check {
    let why = first.as_ref().map_or(String::new(), |first| format!("; {first}"));
    Check {
        name: name.to_owned(),
        expected: expected.to_string(),
        found: format!("{found}{why}"),
        ok: expected == found,
    }
}

#[derive(Default)]
struct Found {
    of_their_length: u64,
    first_length: Option<String>,
    right: u64,
    first_wrong: Option<String>,
}

impl Found {
    fn file(&mut self, tree: &Tree, shape: &Shape, (number, known): (u32, &Known)) -> Result<(), FilesError> {
        let name = file_name(number);
        let failed = |error: io::Error| FilesError::File { path: name.clone(), error };
        let mut file = File::from(tree.file(&name, OFlags::RDONLY).map_err(|error| failed(error.into()))?);
        let length = file.metadata().map_err(failed)?.len();
        // Where a pass that makes files was stopped they may be shorter, and nothing says by how much.
        if length == shape.file_bytes || length < shape.file_bytes && !known.is_complete() {
            self.of_their_length += 1;
        } else {
            self.first_length.get_or_insert(format!("{name} has {length} bytes"));
        }
        let stamps = Stamps::of_file(shape.seed, u64::from(number));
        let mut expected = vec![0; shape.record_bytes as usize];
        let mut read = Vec::with_capacity(expected.len());
        for record in 0..shape.records() {
            read.clear();
            file.by_ref().take(shape.record_bytes).read_to_end(&mut read).map_err(failed)?;
            let offset = record * shape.record_bytes;
            let is_right = match known.version(record) {
                0 => read.iter().all(|&byte| byte == 0),
                version => {
                    stamps.write(&mut expected, offset, version);
                    read == expected
                }
            };
            if is_right {
                self.right += 1;
            } else {
                self.first_wrong.get_or_insert_with(|| wrong(&name, offset, &read, &stamps, known.version(record)));
            }
        }
        Ok(())
    }
}

/// What is wrong with a record, in words.
fn wrong(name: &str, offset: u64, read: &[u8], stamps: &Stamps, expected: u64) -> String {
    if !read.len().is_multiple_of(stamp::SECTOR) || read.is_empty() {
        return format!("{name}, byte {offset}: {} bytes are there", read.len());
    }
    match stamps.read(read, offset) {
        Err(wrong) => format!("{name}: {wrong}"),
        Ok(version) if version == expected => format!("{name}, byte {offset}: other bytes between the stamps"),
        Ok(version) => format!("{name}, byte {offset}: version {version} and not {expected}"),
    }
}
