//! Names of PostgreSQL's wait events: what the number `wait_event_info` of a process means, by major version.
//!
//! The fact that constrains it: the top byte is the class and the rest the event, and events are numbered anew in every major
//! version (WALSync is 65 in 13, WalSync 78 in 18); within one they are only added. So each version has a table of its own,
//! printed by a server of that version: docs/decisions/0014-names-of-waits.md.

use std::fmt;

/// First bytes of the numbers, by the classes' names as pg_stat_activity prints them.
const CLASSES: [(u8, &str); 10] = [
    (0x01, LWLOCK),
    (0x03, "Lock"),
    (0x04, BUFFER_PIN),
    (0x05, "Activity"),
    (0x06, "Client"),
    (0x07, EXTENSION),
    (0x08, "IPC"),
    (0x09, "Timeout"),
    (0x0A, "IO"),
    (0x0B, INJECTION_POINT),
];
const LWLOCK: &str = "LWLock";
const BUFFER_PIN: &str = "BufferPin";
const EXTENSION: &str = "Extension";
const INJECTION_POINT: &str = "InjectionPoint";

const TABLES: [(u32, &str); 6] = [
    (13, include_str!("13.txt")),
    (14, include_str!("14.txt")),
    (15, include_str!("15.txt")),
    (16, include_str!("16.txt")),
    (17, include_str!("17.txt")),
    (18, include_str!("18.txt")),
];

/// In a table, a number that stands for nothing.
const HOLE: &str = "-";
/// An event that an extension names at run time, in the server's memory; it is PostgreSQL's own word for those it cannot name.
const REGISTERED: &str = "extension";
/// The version since which extensions can name events of the class Extension.
const REGISTERED_SINCE: u32 = 17;
/// Bits of a number that tell the class.
const CLASS_SHIFT: u32 = 24;

/// The names of one major version.
#[derive(Clone, Debug)]
pub struct WaitNames {
    major: u32,
    classes: Vec<Class>,
}

#[derive(Clone, Debug)]
struct Class {
    number: u8,
    name: &'static str,
    /// By event number; holes are None.
    events: Vec<Option<&'static str>>,
}

/// Why a table is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Malformed {
    line: usize,
    why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "line {}: {}", self.line, self.why)
    }
}

impl WaitNames {
    /// Those of a major version, if it is one of 13 to 18.
    ///
    /// # Panics
    /// When the version's table is malformed, which the tests of this module exclude.
    #[must_use]
    pub fn of(major: u32) -> Option<Self> {
        let (_, table) = TABLES.iter().find(|(known, _)| *known == major)?;
        Some(Self::parse(major, table).unwrap_or_else(|fault| panic!("postgres_waits/{major}.txt, {fault}")))
    }

    /// Class and event of the number `info`; None for 0, which is no wait, and for what this version does not have.
    ///
    /// Events that an extension has named are called "extension", since their names are in the server's memory only.
    #[must_use]
    pub fn name(&self, info: u32) -> Option<(&'static str, &'static str)> {
        let class = self.classes.iter().find(|class| u32::from(class.number) == info >> CLASS_SHIFT)?;
        // The byte after the class is reserved.
        let event = usize::from(u16::try_from(info & ((1 << CLASS_SHIFT) - 1)).ok()?);
        let known = match class.events.get(event) {
            Some(event) => *event,
            None => self.beyond(class),
        };
        known.map(|event| (class.name, event))
    }

    /// The name of events after the last of the table.
    fn beyond(&self, class: &Class) -> Option<&'static str> {
        match class.name {
            LWLOCK => Some(REGISTERED),
            EXTENSION | INJECTION_POINT if self.major >= REGISTERED_SINCE => Some(REGISTERED),
            // Before, the server gave every number of these classes the one name.
            EXTENSION | BUFFER_PIN if self.major < REGISTERED_SINCE => class.events.first().copied().flatten(),
            _ => None,
        }
    }

    /// Every event of the table: number, class and event, in the order of the numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &'static str, &'static str)> + '_ {
        self.classes.iter().flat_map(|class| {
            let first = u32::from(class.number) << CLASS_SHIFT;
            let numbered = (first..).zip(&class.events);
            numbered.filter_map(|(info, event)| event.map(|event| (info, class.name, event)))
        })
    }

    fn parse(major: u32, table: &'static str) -> Result<Self, Malformed> {
        let mut classes: Vec<Class> = Vec::new();
        for (at, line) in table.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let class = Class::parse(line).map_err(|why| Malformed { line: at + 1, why })?;
            if classes.last().is_some_and(|before| before.number >= class.number) {
                let why = format!("{} twice or out of its order", class.name);
                return Err(Malformed { line: at + 1, why });
            }
            classes.push(class);
        }
        Ok(Self { major, classes })
    }
}

impl Class {
    fn parse(line: &'static str) -> Result<Self, String> {
        let (name, events) = line.split_once(':').ok_or("no class and colon")?;
        let known = CLASSES.iter().find(|(_, known)| *known == name);
        let (number, name) = *known.ok_or_else(|| format!("unknown class {name}"))?;
        let mut class = Self { number, name, events: Vec::new() };
        for event in events.split_ascii_whitespace() {
            let event = (event != HOLE).then_some(event);
            if let Some(event) = event {
                class.check(event)?;
            }
            class.events.push(event);
        }
        match class.events.last() {
            Some(None) => Err(format!("{name} ends in a hole")),
            _ => Ok(class),
        }
    }

    fn check(&self, event: &str) -> Result<(), String> {
        if !event.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("{event} of {} is not a name", self.name));
        }
        match self.events.contains(&Some(event)) {
            true => Err(format!("{event} of {} twice", self.name)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(major: u32) -> WaitNames {
        WaitNames::of(major).unwrap()
    }

    /// Why `table` is refused.
    fn refused(table: &'static str) -> String {
        WaitNames::parse(15, table).unwrap_err().to_string()
    }

    #[test]
    fn every_version_has_its_table_and_no_other_has_one() {
        for major in 13..=18 {
            let classes: Vec<_> = names(major).classes.iter().map(|class| class.name).collect();
            let expected: Vec<_> = CLASSES.iter().map(|(_, name)| *name).collect();
            // Injection points came with 17.
            assert_eq!(classes, expected[..if major < 17 { 9 } else { 10 }], "{major}");
        }
        assert!(WaitNames::of(12).is_none() && WaitNames::of(19).is_none() && WaitNames::of(0).is_none());
    }

    /// From PostgreSQL's headers: the places of WAIT_EVENT_WAL_SYNC, _WAL_WRITE and _DATA_FILE_READ in WaitEventIO, counted
    /// in pgstat.h (13) and wait_event.h (14 to 16), or in the sorted names of wait_event_names.txt (17 and 18).
    #[test]
    fn io_has_the_numbers_of_the_headers() {
        let places = [(13, 65, 67, 13), (14, 67, 69, 15), (15, 70, 72, 17), (16, 71, 73, 17), (17, 74, 76, 17)];
        for (major, sync, write, read) in places.into_iter().chain([(18, 78, 80, 21)]) {
            let (wal_sync, wal_write) = if major < 17 { ("WALSync", "WALWrite") } else { ("WalSync", "WalWrite") };
            assert_eq!(names(major).name(0x0A00_0000 + sync), Some(("IO", wal_sync)), "{major}");
            assert_eq!(names(major).name(0x0A00_0000 + write), Some(("IO", wal_write)), "{major}");
            assert_eq!(names(major).name(0x0A00_0000 + read), Some(("IO", "DataFileRead")), "{major}");
        }
    }

    /// From lwlocknames.txt (lwlocklist.h in 17 and 18), lwlock.h and lock.h: numbers of locks stay, removed ones leave holes,
    /// and the tranches follow the last lock.
    #[test]
    fn locks_have_the_numbers_of_the_headers() {
        for major in 13..=18 {
            let names = names(major);
            assert_eq!(names.name(0x0100_0000), None);
            assert_eq!(names.name(0x0100_0003), Some(("LWLock", "XidGen")));
            assert_eq!(names.name(0x0100_0008), Some(("LWLock", "WALWrite")));
            assert_eq!(names.name(0x0100_000A), (major == 13).then_some(("LWLock", "Checkpoint")), "{major}");
            assert_eq!(names.name(0x0300_0000), Some(("Lock", "relation")));
            assert_eq!(names.name(0x0300_0005), Some(("Lock", "transactionid")));
            assert_eq!(names.name(0x0300_000B), (major > 15).then_some(("Lock", "applytransaction")), "{major}");
            assert_eq!(names.name(0x0400_0000), Some(("BufferPin", "BufferPin")));
            assert_eq!(names.name(0x0600_0000), Some(("Client", "ClientRead")));
        }
        assert_eq!(names(15).name(0x0100_0000 + 48), Some(("LWLock", "XactBuffer")));
        assert_eq!(names(15).name(0x0100_0000 + 55), Some(("LWLock", "WALInsert")));
        assert_eq!(names(18).name(0x0100_0000 + 54), Some(("LWLock", "XactBuffer")));
        assert_eq!(names(18).name(0x0100_0000 + 94), Some(("LWLock", "AioUringCompletion")));
    }

    #[test]
    fn what_extensions_name_is_called_extension() {
        for major in 13..=18 {
            let names = names(major);
            assert_eq!(names.name(0x0100_0000 + 1000), Some(("LWLock", "extension")));
            assert_eq!(names.name(0x0700_0000), Some(("Extension", "Extension")));
            let custom = if major < 17 { "Extension" } else { "extension" };
            assert_eq!(names.name(0x0700_0001), Some(("Extension", custom)), "{major}");
            assert_eq!(names.name(0x0B00_0001), (major > 16).then_some(("InjectionPoint", "extension")), "{major}");
        }
    }

    #[test]
    fn what_the_version_does_not_have_has_no_name() {
        for major in 13..=18 {
            for info in [0, 1, 0x0200_0000, 0x0300_0000 + 12, 0x0A00_0000 + 200, 0x0101_0000, 0x0C00_0000, u32::MAX] {
                assert_eq!(names(major).name(info), None, "{major} {info:#x}");
            }
        }
    }

    #[test]
    fn all_has_each_event_once_with_its_own_number() {
        for major in 13..=18 {
            let names = names(major);
            let all: Vec<_> = names.all().collect();
            assert!(all.len() > 200 && all.is_sorted_by_key(|(info, ..)| *info), "{major}: {}", all.len());
            for (info, class, event) in all {
                assert_eq!(names.name(info), Some((class, event)));
            }
        }
    }

    #[test]
    fn malformed_tables_are_refused() {
        assert_eq!(refused("# of a test\nLock: relation extend\nLocks: page"), "line 3: unknown class Locks");
        assert_eq!(refused("Lock: relation extend relation"), "line 1: relation of Lock twice");
        assert_eq!(refused("Lock: relation\nLock: extend"), "line 2: Lock twice or out of its order");
        assert_eq!(refused("IO: WALSync\nLock: relation"), "line 2: Lock twice or out of its order");
        assert_eq!(refused("Lock relation"), "line 1: no class and colon");
        assert_eq!(refused("LWLock: - XidGen -"), "line 1: LWLock ends in a hole");
        assert_eq!(refused("Lock: ???"), "line 1: ??? of Lock is not a name");
        assert_eq!(refused("Lock: relation\n\nIO: WALSync"), "line 2: no class and colon");
    }
}
