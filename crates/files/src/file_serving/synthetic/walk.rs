//! Puts the parts of a pass in an order, and makes lines of them.

use super::deck::{BULKS_KEPT, Card, Deed, Of, Single, Visit, bulk_deeds, deck};
use super::desk::{AREAS, DESK, Desk, HOME};
use super::draw::Draw;
use crate::file_serving::builder::{Asked, Builder};
use crate::file_serving::script::{Generation, How, Script};

/// Entries that FIND_FIRST asks for.
const ENTRIES_MAX: u32 = 1_366;
/// For so many parts of the pass as many handles linger at most.
const SPELL: usize = 512;
const LINGERING_MAX: usize = 7;
/// Of ten reads so many go on where the last one ended.
const SEQUENTIAL_OF_TEN: usize = 7;
const BLOCK: u64 = 4_096;

/// A visit under way.
struct Under {
    visit: Visit,
    handle: i64,
    path: String,
    /// Where the next read in sequence begins.
    next: u64,
}

struct Walk {
    builder: Builder,
    draw: Draw,
    desk: Desk,
    handles: i64,
}

/// The script of `seed`.
pub(super) fn walk(seed: u64) -> Result<Script, String> {
    let builder = Builder::new(Generation::Four);
    let mut walk = Walk { builder, draw: Draw::new(seed), desk: Desk::new(), handles: 10_000 };
    let mut cards = deck(&mut walk.draw);
    walk.line(Asked::RemoveTree { path: HOME })?;
    walk.line(Asked::MakeDirectory { path: "/clients" })?;
    let areas = AREAS.iter().map(|area| format!("{DESK}/{area}"));
    for path in [HOME.to_owned(), DESK.to_owned()].into_iter().chain(areas) {
        let handle = walk.open(&path, How::Directory)?;
        walk.line(Asked::Close { handle })?;
    }
    let (mut lingering, mut lingering_max): (Vec<Under>, usize) = (Vec::new(), 0);
    loop {
        if cards.len().is_multiple_of(SPELL) {
            lingering_max = 1 + walk.draw.below(LINGERING_MAX);
        }
        let goes_on = cards.is_empty() || lingering.len() >= lingering_max || walk.draw.below(3) == 0;
        if goes_on && !lingering.is_empty() {
            let place = walk.draw.below(lingering.len());
            if walk.go_on(&mut lingering[place])? {
                let under = lingering.swap_remove(place);
                walk.end(under)?;
            }
            continue;
        }
        match cards.pop() {
            Some(Card::Single(single)) => walk.single(single)?,
            Some(Card::Visit(visit)) => {
                let mut under = walk.begin(visit)?;
                if under.visit.lingers {
                    lingering.push(under);
                    continue;
                }
                while !walk.go_on(&mut under)? {}
                walk.end(under)?;
            }
            None => break,
        }
    }
    walk.line(Asked::RemoveTree { path: HOME })?;
    Ok(walk.builder.build())
}

impl Walk {
    fn line(&mut self, asked: Asked<'_>) -> Result<(), String> {
        self.builder.add(asked, Some(true))
    }

    fn open(&mut self, path: &str, how: How) -> Result<i64, String> {
        self.handles += 1;
        self.line(Asked::Open { path, how, handle: self.handles })?;
        Ok(self.handles)
    }

    fn single(&mut self, single: Single) -> Result<(), String> {
        match single {
            Single::Asked => {
                let path = self.desk.with(&mut self.draw, 0).unwrap_or(DESK).to_owned();
                self.line(Asked::QueryPath { path: &path })
            }
            Single::AskedOfNone => {
                let path = self.desk.free(&mut self.draw);
                self.builder.add(Asked::QueryPath { path }, Some(false))
            }
            Single::AskedOfNoDirectory => {
                let path = format!("{DESK}/nowhere/D000.DAT");
                self.builder.add(Asked::QueryPath { path: &path }, Some(false))
            }
            Single::Found | Single::FoundNone => {
                let is_found = single == Single::Found;
                let path = format!("{}/{}", Desk::area(&mut self.draw), if is_found { "*.*" } else { "*.NEW" });
                self.builder.add(Asked::Find { path: &path, entries_max: ENTRIES_MAX }, Some(is_found))
            }
            Single::Space => self.line(Asked::QueryFileSystem),
            Single::OpenedNone => {
                let path = self.desk.free(&mut self.draw);
                self.builder.add(Asked::Open { path, how: How::Plain, handle: -1 }, Some(false))
            }
        }
    }

    /// Opens what a visit is of.
    fn begin(&mut self, visit: Visit) -> Result<Under, String> {
        let largest = visit.deeds.iter().map(|deed| if let Deed::Read(size) = deed { *size } else { 0 }).max();
        let draw = &mut self.draw;
        let there = match visit.of {
            Of::Any if visit.renames => self.desk.idle(draw),
            Of::Any => self.desk.with(draw, u64::from(largest.unwrap_or(0))),
            Of::AnyBulk => self.desk.bulk(draw),
            Of::Bulk | Of::New | Of::NewEmpty => None,
        };
        let (path, how) = match (visit.of, there) {
            (Of::Any | Of::AnyBulk, there) => (there.ok_or("there is no file to visit")?.to_owned(), How::Plain),
            (of, _) => (self.desk.make(draw, of == Of::Bulk), How::Create),
        };
        let handle = self.open(&path, how)?;
        if let Some(document) = self.desk.named(&path) {
            document.open += 1;
        }
        if visit.of == Of::Bulk {
            for (offset, size) in bulk_deeds() {
                self.write(handle, &path, offset, size)?;
            }
            self.line(Asked::QueryFile { handle })?;
        }
        Ok(Under { visit, handle, path, next: 0 })
    }

    /// A visit's next line; whether it is over.
    fn go_on(&mut self, under: &mut Under) -> Result<bool, String> {
        let Some(deed) = under.visit.deeds.pop() else { return Ok(true) };
        let handle = under.handle;
        match deed {
            Deed::Read(size) => self.read(under, size)?,
            Deed::Write(size) => {
                let at = self.place_of_write(under, size);
                self.write(handle, &under.path, at, size)?;
            }
            Deed::Ask => self.line(Asked::QueryFile { handle })?,
            Deed::SetTimes => self.line(Asked::SetFile { handle })?,
            Deed::Flush => self.line(Asked::Flush { handle })?,
            Deed::Lock => self.line(Asked::Lock { handle, offset: 0, size: 1 })?,
            Deed::Unlock => self.line(Asked::Unlock { handle, offset: 0, size: 1 })?,
        }
        Ok(false)
    }

    fn end(&mut self, under: Under) -> Result<(), String> {
        let Under { visit, handle, path, .. } = under;
        self.line(Asked::Close { handle })?;
        if let Some(document) = self.desk.named(&path) {
            document.open -= 1;
        }
        if visit.renames
            && let Some(to) = self.desk.rename(&mut self.draw, &path)
        {
            self.line(Asked::Rename { from: &path, to: &to })?;
        }
        while let Some(path) = self.desk.take(&mut self.draw, &path, BULKS_KEPT) {
            self.line(Asked::Unlink { path: &path })?;
        }
        Ok(())
    }

    fn read(&mut self, under: &mut Under, size: u32) -> Result<(), String> {
        let length = self.desk.named(&under.path).map_or(0, |document| document.size);
        let room = length.saturating_sub(u64::from(size));
        let goes_on = under.next <= room && self.draw.below(10) < SEQUENTIAL_OF_TEN;
        let offset = if goes_on { under.next } else { self.draw.below((room / BLOCK) as usize + 1) as u64 * BLOCK };
        under.next = offset + u64::from(size);
        self.line(Asked::Read { handle: under.handle, offset, size, returned: size })
    }

    /// At the end of a file that is new, over its last block where that is full; a single byte beyond it, so that what
    /// comes later fills a hole. In any other file over what is there.
    fn place_of_write(&mut self, under: &Under, size: u32) -> u64 {
        let length = self.desk.named(&under.path).map_or(0, |document| document.size);
        match (under.visit.of, size) {
            (Of::New, 1) => length + BLOCK - 1,
            (Of::New, _) if length.is_multiple_of(BLOCK) => length.saturating_sub(BLOCK),
            (Of::New, _) => length,
            _ => self.draw.below((length / BLOCK) as usize + 1) as u64 * BLOCK,
        }
    }

    fn write(&mut self, handle: i64, path: &str, offset: u64, size: u32) -> Result<(), String> {
        if let Some(document) = self.desk.named(path) {
            document.size = document.size.max(offset + u64::from(size));
        }
        self.line(Asked::Write { handle, offset, size })
    }
}
