//! Whether the tree holds what the segments have left: every name, every length, every block; and as many bytes as they counted.

use super::layout::of_file;
use super::live::Live;
use super::names::listed;
use super::places::{Kept, Places};
use super::plan::CHUNK;
use super::verify;
use crate::tree::Tree;
use crate::workload::FilesError;
use plimsoll_record::{Check, Summary};
use rustix::fs::OFlags;
use rustix::io::{Errno, pread, retry_on_intr};
use std::os::fd::OwnedFd;

/// What was found of one kind of thing.
#[derive(Debug, Default)]
struct Tally {
    found: u64,
    wrong: u64,
    first: Option<String>,
}

impl Tally {
    fn wrong(&mut self, what: String) {
        self.wrong += 1;
        self.first.get_or_insert(what);
    }

    fn check(self, name: &str, unit: &str, expected: String, is_so_many: bool) -> Check {
        let Self { found, wrong, first } = self;
        let found = match first {
            None => format!("{found} {unit}"),
            Some(first) => format!("{found} {unit}, {wrong} wrong; the first: {first}"),
        };
        Check { name: name.to_owned(), expected, found, ok: wrong == 0 && is_so_many }
    }
}

/// Reads everything.
pub(super) fn check(live: &Live, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
    let (names, lengths) = walk(live, tree)?;
    let blocks = read_all(live, tree)?;
    let total = |name: &str| segments.iter().map(|of| of.totals.get(name).copied().unwrap_or(0)).sum::<i64>();
    let unsure = live.places.iter().filter(|(_, place)| place.kept().is_unsure).count() as i64;
    let files = live.plan.count as i64 + total("files_created") - total("files_removed");
    let is_so_many = (names.found as i64 - files).abs() <= unsure;
    let expected = if unsure == 0 { format!("{files} files") } else { range(files - unsure, files + unsure, "files") };
    let sure = live.places.iter().filter(|(_, place)| !place.kept().is_absent && !place.kept().is_unsure);
    let (sure, counted) = (sure.count() as u64, names.found);
    let block_count = live.places.iter().filter(|(_, place)| !place.kept().is_absent && !place.kept().is_unsure);
    let block_count: u64 = block_count.map(|(_, place)| blocks_of(&place.kept())).sum();
    let (is_measured, is_read) = (lengths.found >= sure && counted >= sure, blocks.found == block_count);
    Ok(vec![
        names.check("names", "files", expected, is_so_many),
        lengths.check("lengths", "files", format!("{sure} files"), is_measured),
        blocks.check("blocks", "blocks", format!("{block_count} blocks"), is_read),
        bytes(live, total("bytes_written")),
    ])
}

fn range(low: i64, high: i64, unit: &str) -> String {
    if low == high { format!("{low} {unit}") } else { format!("{low} to {high} {unit}") }
}

/// Bytes that the versions and tails in the tree tell of, against those that the segments counted.
fn bytes(live: &Live, counted: i64) -> Check {
    let there = live.places.iter().filter(|(_, place)| !place.kept().is_absent);
    let (gone, failed) = live.gone_and_failed();
    let found = (there.map(|(place, _)| live.bytes_written(place)).sum::<u64>() + gone) as i64;
    let low = (found - failed as i64).max(0);
    Check {
        name: "bytes".to_owned(),
        expected: format!("{counted} bytes written"),
        found: range(low, found, "bytes written"),
        ok: (low..=found).contains(&counted),
    }
}

/// Looks at every name and length.
fn walk(live: &Live, tree: &Tree) -> Result<(Tally, Tally), FilesError> {
    let (mut names, mut lengths) = (Tally::default(), Tally::default());
    let (mut directory, mut name) = (String::new(), String::new());
    let mut is_found = vec![false; live.places.iter().count()];
    for number in 0..live.places.directories() {
        Places::directory_name(number, &mut directory);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let opened = tree.file(&directory, flags).map_err(|errno| of_file(&directory, errno))?;
        for (file, length) in listed(&opened).map_err(|errno| of_file(&directory, errno))? {
            let is_known = place_of(&file).filter(|&(place, _)| (place as usize) < is_found.len());
            let known = is_known.filter(|&(place, generation)| may_be_called(live, place, generation, number));
            let Some((place, generation)) = known else {
                names.wrong(format!("{directory}/{file}, which no segment has left"));
                continue;
            };
            live.places.name_of(place, generation, &mut name);
            (names.found, lengths.found) = (names.found + 1, lengths.found + 1);
            is_found[place as usize] = true;
            let kept = live.places.at(place).kept();
            let (least, most) = (kept.body + kept.tail_ended, live.places.longest(place));
            if !kept.is_unsure && !(least..=most).contains(&length) {
                lengths.wrong(format!(
                    "{name}: {length} bytes, where {} were written",
                    range(least as i64, most as i64, "bytes")
                ));
            }
        }
    }
    for (place, at) in live.places.iter() {
        let kept = at.kept();
        if !kept.is_absent && !kept.is_unsure && !is_found[place as usize] {
            live.places.name(place, &mut name);
            names.wrong(format!("{name} is missing"));
        }
    }
    Ok((names, lengths))
}

/// The place and the generation that a name tells.
fn place_of(file: &str) -> Option<(u32, u32)> {
    let (place, generation) = file.strip_prefix('f')?.split_once('.')?;
    let parsed = (place.parse().ok()?, generation.parse().ok()?);
    (format!("f{:09}.{}", parsed.0, parsed.1) == file).then_some(parsed)
}

fn may_be_called(live: &Live, place: u32, generation: u32, directory: u64) -> bool {
    let kept = live.places.at(place).kept();
    let is_its_own = if kept.is_unsure {
        (kept.generation..=kept.generation + 1).contains(&generation)
    } else {
        !kept.is_absent && generation == kept.generation
    };
    is_its_own && live.places.directory_of(place) == directory
}

/// Blocks that are read of a file: those of its body, and its tail's in parts of the same size.
fn blocks_of(kept: &Kept) -> u64 {
    (kept.body + kept.tail_ended).div_ceil(super::versions::BLOCK)
}

/// Reads every byte there is.
fn read_all(live: &Live, tree: &Tree) -> Result<Tally, FilesError> {
    let (mut tally, mut name) = (Tally::default(), String::new());
    let mut buffer = vec![0; CHUNK as usize];
    for (place, at) in live.places.iter() {
        let kept = at.kept();
        if kept.is_absent || kept.is_unsure {
            continue;
        }
        live.places.name(place, &mut name);
        let file = match tree.file(&name, OFlags::RDONLY | OFlags::NOFOLLOW) {
            Ok(file) => file,
            Err(Errno::NOENT) => {
                tally.wrong(format!("{name} is missing"));
                continue;
            }
            Err(errno) => return Err(of_file(&name, errno)),
        };
        read_body(live, place, &kept, (&file, &name), &mut buffer, &mut tally)?;
        read_tail(live, place, &kept, (&file, &name), &mut buffer, &mut tally)?;
        tally.found += blocks_of(&kept);
    }
    Ok(tally)
}

/// Fills the buffer as far as the file goes.
fn filled(file: &OwnedFd, name: &str, buffer: &mut [u8], offset: u64) -> Result<usize, FilesError> {
    let mut done = 0;
    while done < buffer.len() {
        match retry_on_intr(|| pread(file, &mut buffer[done..], offset + done as u64)) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(errno) => return Err(of_file(name, errno)),
        }
    }
    Ok(done)
}

fn read_body(
    live: &Live,
    place: u32,
    kept: &Kept,
    (file, name): (&OwnedFd, &str),
    buffer: &mut [u8],
    tally: &mut Tally,
) -> Result<(), FilesError> {
    let (stamps, first, mut known) = (live.places.stamps(place), live.first_block(place), Vec::new());
    for offset in (0..kept.body).step_by(CHUNK as usize) {
        let part = &mut buffer[..(kept.body - offset).min(CHUNK) as usize];
        let read = filled(file, name, part, offset)?;
        if read < part.len() {
            tally.wrong(format!("{name} ends at byte {}", offset + read as u64));
            return Ok(());
        }
        for (at, block) in (offset..).step_by(super::versions::BLOCK as usize).zip(part.chunks(4096)) {
            verify::before(&live.versions, first, (at, block.len() as u64), &mut known);
            if let Err(wrong) = verify::after(&live.versions, &stamps, first, (at, block), &known) {
                tally.wrong(format!("{name}: {wrong}"));
            }
        }
    }
    Ok(())
}

/// What was appended: every byte that of its offset; where appending failed it may be there or not.
fn read_tail(
    live: &Live,
    place: u32,
    kept: &Kept,
    (file, name): (&OwnedFd, &str),
    buffer: &mut [u8],
    tally: &mut Tally,
) -> Result<(), FilesError> {
    let holes = live.places.holes().remove(&place).unwrap_or_default();
    let mut expected = vec![0; buffer.len().min(kept.tail_ended as usize)];
    for from in (0..kept.tail_ended).step_by(CHUNK as usize) {
        let length = (kept.tail_ended - from).min(CHUNK) as usize;
        let (part, expected) = (&mut buffer[..length], &mut expected[..length]);
        let offset = kept.body + from;
        let read = filled(file, name, part, offset)?;
        live.places.tail_bytes(place, offset, expected);
        let is_wrong = |at: &usize| {
            let in_hole = |(hole, bytes): &(u64, u64)| (*hole..hole + bytes).contains(&(from + *at as u64));
            part[*at] != expected[*at] && !(part[*at] == 0 && holes.iter().any(in_hole))
        };
        if read < length {
            tally.wrong(format!("{name} ends at byte {}", offset + read as u64));
            return Ok(());
        }
        if part != expected
            && let Some(at) = (0..length).find(is_wrong)
        {
            tally.wrong(format!("{name}: byte {} is not what was appended there", offset + at as u64));
        }
    }
    Ok(())
}
