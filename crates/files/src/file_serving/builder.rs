//! Makes a script of lines: handles become slots, paths become names, and every read learns what it will find.

use super::script::{CLIENT, Expected, Generation, HANDLES_MAX, How, Script, Step, UNKNOWN};
use super::world::{Node, World};
use std::collections::HashMap;

/// A slot that is none: of an open that fails.
pub(super) const NO_SLOT: u8 = u8::MAX;

/// What a line asks for, with paths and handles as the line has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked<'a> {
    Open { path: &'a str, how: How, handle: i64 },
    Close { handle: i64 },
    Read { handle: i64, offset: u64, size: u32, returned: u32 },
    Write { handle: i64, offset: u64, size: u32 },
    QueryPath { path: &'a str },
    QueryFile { handle: i64 },
    QueryFileSystem,
    SetFile { handle: i64 },
    Find { path: &'a str, entries_max: u32 },
    Unlink { path: &'a str },
    Rename { from: &'a str, to: &'a str },
    Flush { handle: i64 },
    Lock { handle: i64, offset: u64, size: u32 },
    Unlock { handle: i64, offset: u64, size: u32 },
    MakeDirectory { path: &'a str },
    RemoveDirectory { path: &'a str },
    RemoveTree { path: &'a str },
}

/// An open handle.
struct Open {
    slot: u8,
    name: u32,
}

/// A script that is being made.
pub(super) struct Builder {
    script: Script,
    world: World,
    names: HashMap<String, u32>,
    open: HashMap<i64, Open>,
    /// Slots that are free, the next one last.
    free: Vec<u8>,
}

impl Builder {
    pub(super) fn new(generation: Generation) -> Self {
        let script = Script {
            generation,
            steps: Vec::new(),
            expected: Vec::new(),
            names: Vec::new(),
            home: None,
            segments: Vec::new(),
            contents: Vec::new(),
            bytes_max: 0,
            leaves_files: false,
        };
        let free = (0..HANDLES_MAX as u8).rev().collect();
        Self { script, world: World::new(), names: HashMap::new(), open: HashMap::new(), free }
    }

    /// Adds a line; `is_ok` is what it says of how it ends, if anything.
    ///
    /// # Errors
    /// When it cannot be performed after those before it: why, in words.
    pub(super) fn add(&mut self, asked: Asked<'_>, is_ok: Option<bool>) -> Result<(), String> {
        let line = u32::try_from(self.script.steps.len()).map_err(|_| "there are too many lines")?;
        let step = self.step(asked, is_ok)?;
        let expected = self.expected(&step, is_ok);
        self.world.apply(line, &step, expected, &self.script.names);
        self.script.steps.push(step);
        self.script.expected.push(expected);
        Ok(())
    }

    /// Whether there is no line yet.
    pub(super) fn is_empty(&self) -> bool {
        self.script.steps.is_empty()
    }

    /// The script of all lines that were added.
    pub(super) fn build(mut self) -> Script {
        self.script.contents.push(self.script.segments.len() as u32);
        let names = &self.script.names;
        self.script.leaves_files = self.world.nodes().any(|(name, _)| is_own(&names[name as usize]));
        self.script.steps.shrink_to_fit();
        self.script.expected.shrink_to_fit();
        self.script
    }

    fn step(&mut self, asked: Asked<'_>, is_ok: Option<bool>) -> Result<Step, String> {
        Ok(match asked {
            Asked::Open { path, how, handle } => self.opened(path, how, handle, is_ok)?,
            Asked::Close { handle } => {
                let Open { slot, .. } = self.open.remove(&handle).ok_or_else(|| not_open(handle))?;
                self.free.push(slot);
                Step::Close { slot }
            }
            Asked::Read { handle, offset, size, returned } => self.read(handle, offset, size, returned)?,
            Asked::Write { handle, offset, size } => {
                self.moves(offset, size)?;
                Step::Write { slot: self.slot(handle)?, offset, size }
            }
            Asked::QueryPath { path } => Step::QueryPath { name: self.name(path)? },
            Asked::QueryFile { handle } => Step::QueryFile { slot: self.slot(handle)? },
            Asked::QueryFileSystem => Step::QueryFileSystem,
            Asked::SetFile { handle } => {
                let open = self.open.get(&handle).ok_or_else(|| not_open(handle))?;
                Step::SetFile { slot: open.slot, name: open.name }
            }
            Asked::Find { path, entries_max } => {
                let is_pattern = path.contains(['*', '?', '<', '>', '"']);
                Step::Find { name: self.name(path)?, entries_max, is_pattern }
            }
            Asked::Unlink { path } => Step::Unlink { name: self.own(path)? },
            Asked::Rename { from, to } => {
                let (from, to) = (self.own(from)?, self.own(to)?);
                if self.world.node(from) == Some(Node::Directory) {
                    return Err("it renames a directory, which is not known here".to_owned());
                }
                Step::Rename { from, to }
            }
            Asked::Flush { handle } => Step::Flush { slot: self.slot(handle)? },
            Asked::Lock { handle, offset, size } => Step::Lock { slot: self.slot(handle)?, offset, size },
            Asked::Unlock { handle, offset, size } => Step::Unlock { slot: self.slot(handle)?, offset, size },
            Asked::MakeDirectory { path } => Step::MakeDirectory { name: self.name(path)? },
            Asked::RemoveDirectory { path } => Step::RemoveDirectory { name: self.own(path)? },
            Asked::RemoveTree { path } => Step::RemoveTree { name: self.own(path)? },
        })
    }

    fn opened(&mut self, path: &str, how: How, handle: i64, is_ok: Option<bool>) -> Result<Step, String> {
        let name = if how == How::Directory { self.name(path)? } else { self.own(path)? };
        if is_ok == Some(false) || handle == -1 {
            return Ok(Step::Open { name, slot: NO_SLOT, how });
        }
        if self.open.contains_key(&handle) {
            return Err(format!("handle {handle} is open already"));
        }
        let slot = self.free.pop().ok_or_else(|| format!("more than {HANDLES_MAX} handles are open"))?;
        self.open.insert(handle, Open { slot, name });
        Ok(Step::Open { name, slot, how })
    }

    fn read(&mut self, handle: i64, offset: u64, size: u32, returned: u32) -> Result<Step, String> {
        self.moves(offset, size)?;
        let slot = self.slot(handle)?;
        if returned > size {
            return Err(format!("it is to return {returned} bytes of {size}"));
        }
        let end = offset + u64::from(returned);
        let content = match self.world.open_file(slot) {
            Some(file) if end <= file.size => {
                self.script.contents.push(self.script.segments.len() as u32);
                file.segments(offset, end, &mut self.script.segments);
                self.script.contents.len() as u32 - 1
            }
            // It will be short, and fails for that.
            _ => UNKNOWN,
        };
        Ok(Step::Read { slot, offset, size, returned, content })
    }

    /// A line moves bytes.
    fn moves(&mut self, offset: u64, size: u32) -> Result<(), String> {
        const BYTES_MAX: u32 = 1 << 26;
        if size > BYTES_MAX || i64::try_from(offset).is_err() {
            return Err(format!("it moves {size} bytes at {offset}: more than {BYTES_MAX} at once is not known here"));
        }
        self.script.bytes_max = self.script.bytes_max.max(size);
        Ok(())
    }

    fn slot(&self, handle: i64) -> Result<u8, String> {
        self.open.get(&handle).map(|open| open.slot).ok_or_else(|| not_open(handle))
    }

    /// How the line will end.
    fn expected(&self, step: &Step, is_ok: Option<bool>) -> Expected {
        let says = match (self.script.generation, *step) {
            // Nothing is compared with the pattern, so nothing is found out.
            (_, Step::Find { is_pattern: true, .. }) => None,
            (Generation::Two, Step::Open { slot, .. }) => Some(slot != NO_SLOT),
            (Generation::Two, _) => None,
            (Generation::Four, _) => is_ok,
        };
        let is_there = |name| self.world.node(name).is_some();
        let foretold = match *step {
            Step::QueryPath { name } | Step::Unlink { name } | Step::Rename { from: name, .. } => is_there(name),
            Step::RemoveDirectory { name } => is_there(name),
            _ => true,
        };
        Expected { is_ok: says.unwrap_or(foretold), is_checked: says.is_some() }
    }

    /// The name of a path of the client's own.
    fn own(&mut self, path: &str) -> Result<u32, String> {
        let name = self.name(path)?;
        match is_own(&self.script.names[name as usize]) {
            true => Ok(name),
            false => Err(format!("{path:?} is in no folder {CLIENT}: the clients would share it")),
        }
    }

    /// The name of any path.
    fn name(&mut self, path: &str) -> Result<u32, String> {
        if let Some(name) = self.names.get(path) {
            return Ok(*name);
        }
        let parts: Vec<&str> = path.split(['\\', '/']).filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") || path.contains('\0') {
            return Err(format!("{path:?} leads out of the work directory"));
        }
        if parts.is_empty() {
            return Err(format!("{path:?} is the work directory itself"));
        }
        if let Some(depth) = parts.iter().position(|part| *part == CLIENT) {
            let home = parts[..=depth].join("/");
            match &self.script.home {
                Some(other) if *other != home => return Err(format!("{path:?} is in another folder than {other}")),
                _ => self.script.home = Some(home),
            }
        }
        let whole = parts.join("/");
        let next = self.script.names.len() as u32;
        let name = *self.names.entry(whole).or_insert_with_key(|whole| {
            self.script.names.push(whole.clone());
            next
        });
        self.names.insert(path.to_owned(), name);
        Ok(name)
    }
}

fn is_own(path: &str) -> bool {
    path.split('/').any(|part| part == CLIENT)
}

fn not_open(handle: i64) -> String {
    format!("handle {handle} is not open")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(handle: i64) -> Asked<'static> {
        Asked::Open { path: "\\clients\\client1\\a", how: How::Create, handle }
    }

    #[test]
    fn at_most_200_handles_are_open() {
        let mut builder = Builder::new(Generation::Four);
        (0..200).for_each(|handle| builder.add(created(handle), Some(true)).unwrap());
        assert_eq!(builder.add(created(200), Some(true)).unwrap_err(), "more than 200 handles are open");
        builder.add(created(201), Some(false)).unwrap();
        builder.add(Asked::Close { handle: 7 }, Some(true)).unwrap();
        builder.add(created(200), Some(true)).unwrap();
        assert_eq!(builder.add(created(200), Some(true)).unwrap_err(), "handle 200 is open already");
        assert_eq!(builder.add(Asked::Flush { handle: 7 }, Some(true)).unwrap_err(), "handle 7 is not open");
    }

    #[test]
    fn files_are_the_clients_own_and_below_the_work_directory() {
        let mut builder = Builder::new(Generation::Four);
        let mut refused = |path| builder.add(Asked::Unlink { path }, Some(true)).unwrap_err();
        assert!(refused("\\clients\\shared").contains("the clients would share it"));
        assert!(refused("\\clients\\client1\\..\\client2").contains("leads out"));
        assert!(refused("\\").contains("work directory itself"));
        builder.add(Asked::Unlink { path: "\\clients\\client1\\a" }, Some(true)).unwrap();
        let other = builder.add(Asked::Unlink { path: "\\client1\\a" }, Some(true)).unwrap_err();
        assert!(other.contains("another folder than clients/client1"), "{other}");
    }

    #[test]
    fn what_a_read_finds_is_known_beforehand() {
        let mut builder = Builder::new(Generation::Four);
        builder.add(created(1), Some(true)).unwrap();
        builder.add(Asked::Write { handle: 1, offset: 10, size: 10 }, Some(true)).unwrap();
        builder.add(Asked::Write { handle: 1, offset: 15, size: 10 }, Some(true)).unwrap();
        builder.add(Asked::Read { handle: 1, offset: 5, size: 20, returned: 20 }, Some(true)).unwrap();
        builder.add(Asked::Read { handle: 1, offset: 5, size: 30, returned: 30 }, Some(true)).unwrap();
        let script = builder.build();
        let found: Vec<_> = script.content(0).iter().map(|segment| (segment.at, segment.writer)).collect();
        assert_eq!(found, [(0, u32::MAX), (5, 1), (10, 2)]);
        assert!(matches!(script.steps[4], Step::Read { content: UNKNOWN, .. }), "beyond the end of the file");
        assert!(script.leaves_files);
    }
}
