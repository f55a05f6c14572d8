//! Which of the kernel's functions tell what is waited for where they are in a stack: the map of functions.bpf.h.
//!
//! The fact that constrains it: a program reads addresses and no names, and the kernel tells where a function begins alone.

use super::Programs;
use crate::Refusal;
use crate::profile::kernel_names::KernelNames;
use libbpf_rs::{MapCore, MapFlags};
use std::ops::Range;

/// Tells only where no other function of a stack tells anything.
pub(crate) const IF_NOTHING_ELSE: u32 = 0x100;
/// Wherever it is in a stack something else is waited for.
pub(crate) const NOT_OURS: u32 = 0x200;
/// Room of the map.
const FUNCTIONS: usize = 256;
/// Of a function, bytes: behind the last one of a module others' code may lie, which no name tells from it.
const LONGEST: u64 = 64 * 1024;

/// Where they are, in order, and what each tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions(Vec<(Range<u64>, u32)>);

impl Functions {
    /// Those of the running kernel that tell something.
    ///
    /// # Errors
    /// When the kernel does not show where its functions are, or has more of them than the programs have room for.
    pub(crate) fn of_this_kernel(tells: impl Fn(&str) -> Option<u32>) -> Result<Self, Refusal> {
        let names = KernelNames::read();
        if names.is_empty() {
            let remedy = "set the sysctl kernel.kptr_restrict to 0 or 1";
            return Err(Refusal::with_remedy("the kernel does not show what its functions are called", remedy));
        }
        Self::of(&names, tells).where_there_is_room()
    }

    fn where_there_is_room(self) -> Result<Self, Refusal> {
        let many = self.0.len();
        (many <= FUNCTIONS)
            .then_some(self)
            .ok_or_else(|| Refusal::from(format!("{many} functions tell of waits, and {FUNCTIONS} have room")))
    }

    fn of(names: &KernelNames, tells: impl Fn(&str) -> Option<u32>) -> Self {
        let within = |at: Range<u64>| at.start..at.end.min(at.start.saturating_add(LONGEST));
        let telling = names.functions().filter_map(|(at, name)| tells(name).map(|what| (within(at), what)));
        let mut found: Vec<_> = telling.collect();
        found.dedup_by_key(|(at, _)| at.start);
        Self(found)
    }

    /// Tells the programs.
    pub(crate) fn fill(&self, programs: &Programs) -> Result<(), Refusal> {
        let map = programs.map("functions")?;
        let nowhere = (u64::MAX..u64::MAX, 0);
        for place in 0..FUNCTIONS {
            let (at, tells) = self.0.get(place).unwrap_or(&nowhere);
            let mut bytes = [at.start, at.end].map(u64::to_ne_bytes).concat();
            bytes.extend([*tells, 0].map(u32::to_ne_bytes).concat());
            let told = map.update(&(place as u32).to_ne_bytes(), &bytes, MapFlags::ANY);
            told.map_err(|error| Refusal::from(format!("a function cannot be told of: {error}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What the programs make of a stack of functions, innermost first, as functions.bpf.h has it.
    pub(crate) fn told(tells: impl Fn(&str) -> Option<u32>, stack: &[&str]) -> u32 {
        let mut told = 0;
        for here in stack.iter().filter_map(|name| tells(name)) {
            if here & NOT_OURS != 0 {
                return 0;
            }
            if told == 0 || told & IF_NOTHING_ELSE != 0 {
                told = here;
            }
        }
        told & !IF_NOTHING_ELSE
    }

    #[test]
    fn functions_are_told_by_where_they_are() {
        let names =
            KernelNames::parse("30 T two.part.0\n10 t one\n10 t alias\n40 t three\t[module]\n50 t two\t[module]\n");
        let tells =
            |name: &str| ["", "one", "two", "alias"].iter().position(|known| *known == name).map(|at| at as u32);
        let found = Functions::of(&names, tells);
        assert_eq!(found.0, [(0x10..0x30, 3), (0x30..0x40, 2), (0x50..0x50 + LONGEST, 2)]);
        assert_eq!(Functions::of(&names, |_| None), Functions::default());
        let many = |last: usize| (1..=last).map(|at| format!("{at:x} t lock\n")).collect::<String>();
        let found = |last| Functions::of(&KernelNames::parse(&many(last)), |_| Some(NOT_OURS)).where_there_is_room();
        assert!(found(FUNCTIONS).is_ok());
        assert!(found(FUNCTIONS + 1).unwrap_err().reason.contains("257 functions"));
    }

    #[test]
    fn the_innermost_tells_unless_it_is_weak_or_another_wait() {
        let tells = |name: &str| match name {
            "read" => Some(3),
            "write" => Some(4),
            "call" => Some(7 | IF_NOTHING_ELSE),
            "lock" => Some(NOT_OURS),
            _ => None,
        };
        let of = |stack: &str| told(tells, &stack.split(' ').collect::<Vec<_>>());
        assert_eq!([of("x read write"), of("call x write"), of("call x"), of("x")], [3, 4, 7, 0]);
        assert_eq!([of("lock read"), of("read lock")], [0, 0]);
    }
}
