//! What a pass consists of, before it has an order: visits (a handle from its opening to its closing) and single lines.
//!
//! Their numbers are those of one pass of dbench 4.0's load file, counted in Debian's package.

use super::draw::Draw;

/// Files that are made by many writes of 64 KiB, first those that are read from the beginning on.
pub(super) const BULKS_KEPT: usize = 24;
const BULKS: usize = 790;
const BULK_WRITES: usize = 16;
const EMPTY: usize = 10_968;
const SMALL: usize = 4_299;
const READ_ONCE: usize = 15_810;
const READ_AND_WRITTEN: usize = 10_000;
const READ_LONG: usize = 4_000;
const ASKED: usize = 3_807;
const ONLY_OPENED: usize = 4_902;
const TIMED: usize = 258;
const RENAMED: usize = 3_355;
const LOCKED: usize = 258;
const READS: usize = 124_199;
const WRITES: usize = 39_502;
const ASKS: usize = 12_585;
const TIMES: usize = 6_454;
const FLUSHES: usize = 5_553;
/// Lines that stand alone, with how many there are.
const SINGLES: [(Single, usize); 7] = [
    (Single::Asked, 47_429),
    (Single::AskedOfNone, 24_256),
    (Single::AskedOfNoDirectory, 129),
    (Single::Found, 13_437),
    (Single::FoundNone, 14_328),
    (Single::Space, 13_168),
    (Single::OpenedNone, 21_030),
];
/// Sizes of reads and how many there are of each; the others are between these.
const READ_SIZES: [(u32, usize); 5] =
    [(4_096, 83_172), (61_440, 16_641), (8_192, 4_644), (2_048, 4_644), (16_384, 1_937)];
const OTHER_READS: (u32, u32) = (16, 4_498);
/// The same of writes, without those of bulks.
const WRITE_SIZES: [(u32, usize); 5] = [(1, 6_634), (4_096, 9_942), (2_048, 1_677), (8_192, 1_164), (65_536, 18)];
const OTHER_WRITES: (u32, u32) = (10, 39_984);

/// What is done with an open handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Read(u32),
    Write(u32),
    Ask,
    SetTimes,
    Flush,
    Lock,
    Unlock,
}

/// Which file a visit is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// A new one, large, and made at once.
    Bulk,
    /// A new one.
    New,
    /// A new one that stays empty.
    NewEmpty,
    /// One that is there.
    Any,
    /// A large one that is there.
    AnyBulk,
}

/// A handle's life.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) of: Of,
    /// The last one is done first.
    pub(super) deeds: Vec<Deed>,
    /// Other lines come between its own.
    pub(super) lingers: bool,
    /// The file has another name afterwards.
    pub(super) renames: bool,
}

/// A line that stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Single {
    Asked,
    AskedOfNone,
    AskedOfNoDirectory,
    Found,
    FoundNone,
    Space,
    OpenedNone,
}

/// A part of the pass.
#[derive(Clone, Debug)]
pub(super) enum Card {
    Visit(Visit),
    Single(Single),
}

/// All of a pass; the last one comes first.
pub(super) fn deck(draw: &mut Draw) -> Vec<Card> {
    let mut reads = sizes(draw, &READ_SIZES, OTHER_READS, READS);
    let mut writes = sizes(draw, &WRITE_SIZES, OTHER_WRITES, WRITES - BULKS * (1 + BULK_WRITES));
    let bulk = visits(BULKS, Of::Bulk, &[]);
    let mut small = visits(SMALL, Of::New, &[Deed::Ask]);
    let mut once = visits(READ_ONCE, Of::Any, &[]);
    let mut both = visits(READ_AND_WRITTEN, Of::Any, &[]);
    let mut long = visits(READ_LONG, Of::AnyBulk, &[]);
    let asked = visits(ASKED, Of::Any, &[Deed::Ask]);
    for visit in once.iter_mut().chain(&mut both) {
        visit.deeds.extend(reads.pop().map(Deed::Read));
    }
    while let Some(size) = reads.pop() {
        let place = draw.below(long.len());
        long[place].deeds.push(Deed::Read(size));
    }
    for visit in &mut small {
        visit.deeds.extend(writes.pop().map(Deed::Write));
    }
    while let Some(size) = writes.pop() {
        spread(draw, &mut [&mut small, &mut both], Deed::Write(size));
    }
    (0..ASKS - BULKS - SMALL - ASKED).for_each(|_| spread(draw, &mut [&mut both, &mut long], Deed::Ask));
    (0..TIMES - TIMED).for_each(|_| spread(draw, &mut [&mut small, &mut both], Deed::SetTimes));
    (0..FLUSHES).for_each(|_| spread(draw, &mut [&mut small, &mut both], Deed::Flush));
    for visit in small.iter_mut().chain(&mut both).chain(&mut long) {
        draw.shuffle(&mut visit.deeds);
        visit.lingers = true;
    }
    for visit in &mut long[..LOCKED] {
        visit.deeds.insert(0, Deed::Unlock);
        visit.deeds.push(Deed::Lock);
    }
    for visit in &mut once {
        visit.lingers = draw.below(2) == 0;
    }
    let renamed = visits(RENAMED, Of::Any, &[]).into_iter().map(|visit| Visit { renames: true, ..visit });
    let mut bulk = bulk;
    let first = bulk.split_off(BULKS - BULKS_KEPT);
    let others = [
        bulk,
        small,
        once,
        both,
        long,
        asked,
        visits(EMPTY, Of::NewEmpty, &[]),
        visits(ONLY_OPENED, Of::Any, &[]),
        visits(TIMED, Of::Any, &[Deed::SetTimes]),
    ];
    let mut cards: Vec<Card> = others.into_iter().flatten().chain(renamed).map(Card::Visit).collect();
    cards.extend(SINGLES.iter().flat_map(|(single, count)| std::iter::repeat_n(Card::Single(*single), *count)));
    draw.shuffle(&mut cards);
    cards.extend(first.into_iter().map(Card::Visit));
    cards
}

/// What a bulk's making consists of: a byte at the end of its first part, then all parts.
pub(super) fn bulk_deeds() -> impl Iterator<Item = (u64, u32)> {
    const PART: u32 = 65_536;
    let parts = (0..BULK_WRITES as u64).map(|part| (part * u64::from(PART), PART));
    std::iter::once((u64::from(PART) - 2, 1)).chain(parts)
}

fn visits(count: usize, of: Of, deeds: &[Deed]) -> Vec<Visit> {
    vec![Visit { of, deeds: deeds.to_vec(), lingers: false, renames: false }; count]
}

/// Gives a deed to any visit of the groups.
fn spread(draw: &mut Draw, groups: &mut [&mut Vec<Visit>], deed: Deed) {
    let mut place = draw.below(groups.iter().map(|group| group.len()).sum());
    for group in groups {
        match group.get_mut(place) {
            Some(visit) => return visit.deeds.push(deed),
            None => place -= group.len(),
        }
    }
}

/// `count` sizes in any order: those that are named, and others between two.
fn sizes(draw: &mut Draw, named: &[(u32, usize)], others: (u32, u32), count: usize) -> Vec<u32> {
    let mut sizes: Vec<u32> = named.iter().flat_map(|(size, count)| std::iter::repeat_n(*size, *count)).collect();
    let (least, most) = others;
    while sizes.len() < count {
        sizes.push(least + draw.below((most - least) as usize + 1) as u32);
    }
    draw.shuffle(&mut sizes);
    sizes
}
