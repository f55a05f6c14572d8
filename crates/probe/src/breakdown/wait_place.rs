//! Where every process of a server keeps its wait event: behind a pointer that the server's program exports.
//!
//! The fact that constrains it: 14 and later export a pointer to the event itself. Before, it is somewhere within what `MyProc`
//! points at, and where is the business of the program's build. So it is looked for in processes of the server whose wait is
//! known by what they are.

use super::processes;
use crate::postgres_waits::WaitNames;
use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const TO_EVENT: &str = "my_wait_event_info";
const TO_PROCESS: &str = "MyProc";

/// What those wait for that have nothing to do.
const IDLE: [(&str, &str); 6] = [
    ("checkpointer", "CheckpointerMain"),
    ("background writer", "BgWriterMain"),
    ("background writer", "BgWriterHibernate"),
    ("walwriter", "WalWriterMain"),
    ("autovacuum launcher", "AutoVacuumMain"),
    ("logical replication launcher", "LogicalLauncherMain"),
];
/// Of what a process has of itself in the shared memory, more than any version needs.
const LOOKED_AT: usize = 2048;
/// So many of them have to have it at one place, and none at another as often.
const AGREE: usize = 2;
/// A process may just have something to do.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(50);

/// The address of a pointer, equal in all processes since they are forks, and how far behind its target the event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPlace {
    pub(crate) pointer: u64,
    pub(crate) offset: u32,
}

impl WaitPlace {
    /// Of the server whose first process is `postmaster`; None if its program does not tell.
    pub(crate) fn of(postmaster: u32, major: u32) -> Option<Self> {
        let process = Path::new("/proc").join(postmaster.to_string());
        // By way of /proc, so that it is the program that runs even if the file was replaced.
        let bytes = fs::read(process.join("exe")).ok()?;
        let program = object::File::parse(&*bytes).ok()?;
        let first = load_address(&process)?;
        match address_of(&program, first, TO_EVENT) {
            Some(pointer) => Some(Self { pointer, offset: 0 }),
            None => Self::by_process(postmaster, major, address_of(&program, first, TO_PROCESS)?),
        }
    }

    fn by_process(postmaster: u32, major: u32, pointer: u64) -> Option<Self> {
        let names = WaitNames::of(major)?;
        let found = (0..TRIES).find_map(|tried| {
            if tried > 0 {
                std::thread::sleep(BETWEEN);
            }
            agreed(processes::children(postmaster).into_iter().filter_map(|pid| candidates(pid, pointer, &names)))
        });
        Some(Self { pointer, offset: found? })
    }

    /// The event of a process; 0 before it has joined the shared memory.
    pub(crate) fn event_of(self, pid: u32) -> Option<u32> {
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        let at = pointed_at(&memory, self.pointer)?;
        let mut event = [0; 4];
        if at != 0 {
            memory.read_exact_at(&mut event, at.checked_add(u64::from(self.offset))?).ok()?;
        }
        Some(u32::from_ne_bytes(event))
    }

    /// How the event is reached, in the record.
    pub(crate) fn name(self) -> &'static str {
        if self.offset == 0 { TO_EVENT } else { TO_PROCESS }
    }
}

fn pointed_at(memory: &File, pointer: u64) -> Option<u64> {
    let mut at = [0; 8];
    memory.read_exact_at(&mut at, pointer).ok()?;
    Some(u64::from_ne_bytes(at))
}

/// What the process is, and where in its part of the shared memory its number stands if it has nothing to do.
fn candidates(pid: u32, pointer: u64, names: &WaitNames) -> Option<(&'static str, Vec<u32>)> {
    let what = processes::what(pid)?;
    let is_of = |event: &str| IDLE.contains(&(what, event));
    let expected: Vec<u32> = names.all().filter(|(.., event)| is_of(event)).map(|(number, ..)| number).collect();
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; LOOKED_AT];
    memory.read_exact_at(&mut bytes, pointed_at(&memory, pointer)?).ok()?;
    let numbers = bytes.chunks_exact(4).map(|four| four.try_into().map_or(0, u32::from_ne_bytes));
    let places = (0..).step_by(4).zip(numbers).filter(|(_, number)| expected.contains(number));
    Some((what, places.map(|(offset, _)| offset).collect()))
}

/// The offset that most of them share.
fn agreed(candidates: impl Iterator<Item = (&'static str, Vec<u32>)>) -> Option<u32> {
    let mut by_offset: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for (what, offsets) in candidates {
        offsets.into_iter().for_each(|offset| {
            by_offset.entry(offset).or_default().insert(what);
        });
    }
    let most = by_offset.values().map(BTreeSet::len).max().filter(|most| *most >= AGREE)?;
    let mut best = by_offset.into_iter().filter(|(_, what)| what.len() == most);
    let (offset, _) = best.next()?;
    best.next().is_none().then_some(offset)
}

/// Where the first part of the program that `process` runs is mapped.
fn load_address(process: &Path) -> Option<u64> {
    let program = fs::read_link(process.join("exe")).ok()?;
    let program = program.to_string_lossy().into_owned();
    let maps = fs::read_to_string(process.join("maps")).ok()?;
    let mut of_program = maps.lines().filter(|line| line.ends_with(&program));
    let from = of_program.find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (range, offset) = (words.next()?, words.nth(1)?);
        (u64::from_str_radix(offset, 16) == Ok(0)).then(|| range.split('-').next().map(str::to_owned)).flatten()
    })?;
    u64::from_str_radix(&from, 16).ok()
}

/// The address of an exported symbol in the memory of a process in which the program begins at `first`.
fn address_of(program: &object::File<'_>, first: u64, symbol: &str) -> Option<u64> {
    let exported = program.dynamic_symbols().find(|known| known.name() == Ok(symbol) && known.is_definition())?;
    let segment = program.segments().find(|segment| segment.file_range().0 == 0)?;
    Some(first.wrapping_add(exported.address()).wrapping_sub(segment.address()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    static EVENTS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
    static POINTER: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn an_event_is_read_from_a_process_that_was_never_seen() {
        EVENTS[2].store(0x0300_0000, Ordering::Relaxed);
        let place = |offset| WaitPlace { pointer: std::ptr::from_ref(&POINTER) as usize as u64, offset };
        assert_eq!(place(8).event_of(std::process::id()), Some(0), "it has joined nothing yet");
        POINTER.store(std::ptr::from_ref(&EVENTS) as usize, Ordering::Relaxed);
        assert_eq!(place(8).event_of(std::process::id()), Some(0x0300_0000));
        assert_eq!(place(4).event_of(std::process::id()), Some(0));
        let nowhere = WaitPlace { pointer: 0, offset: 0 };
        assert_eq!(nowhere.event_of(std::process::id()), None, "nothing is mapped there");
    }

    #[test]
    fn two_have_to_agree_and_no_two_on_another_place() {
        let of = |found: &[(&'static str, &[u32])]| {
            agreed(found.iter().map(|(what, offsets)| (*what, offsets.to_vec())).collect::<Vec<_>>().into_iter())
        };
        assert_eq!(of(&[("checkpointer", &[8, 700]), ("walwriter", &[700]), ("other", &[])]), Some(700));
        assert_eq!(of(&[("checkpointer", &[700])]), None);
        assert_eq!(of(&[("walwriter", &[700]), ("walwriter", &[700])]), None, "one and the same number twice");
        assert_eq!(of(&[("checkpointer", &[8, 700]), ("walwriter", &[8, 700])]), None);
    }

    #[test]
    fn this_program_is_mapped_somewhere_and_exports_neither() {
        assert!(load_address(Path::new("/proc/self")).unwrap() > 0);
        assert_eq!(WaitPlace::of(std::process::id(), 15), None);
    }
}
