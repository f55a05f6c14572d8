//! What the kernel's functions are called: /proc/kallsyms, which shows addresses to root only, or to nobody.

use std::fs;
use std::ops::Range;

const KALLSYMS: &str = "/proc/kallsyms";

/// Functions by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelNames(Vec<(u64, String)>);

/// Where the code of locks begins and ends.
const OF_LOCKS: [(&str, &str); 2] =
    [("__sched_text_start", "__sched_text_end"), ("__lock_text_start", "__lock_text_end")];

impl KernelNames {
    /// Of the running kernel; none of them if it does not show their addresses.
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string(KALLSYMS).unwrap_or_default())
    }

    pub(crate) fn parse(text: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok()?;
            (address > 0 && matches!(kind, "t" | "T" | "w" | "W")).then(|| (address, name.to_owned()))
        };
        let mut functions: Vec<_> = text.lines().filter_map(function).collect();
        functions.sort();
        Self(functions)
    }

    /// Where a function begins.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(_, known)| known == name).map(|(address, _)| *address)
    }

    /// Where locks and the tracepoints in them are: ranges of addresses.
    pub(crate) fn of_locks(&self) -> Vec<Range<u64>> {
        let between = |(from, to): &(&str, &str)| Some(self.address(from)?..self.address(to)?);
        OF_LOCKS.iter().filter_map(between).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each function with where it is: up to where the next begins. A part that the compiler has moved elsewhere has its function's name.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (Range<u64>, &str)> {
        self.0.iter().enumerate().map(|(at, (begin, name))| {
            let next = self.0[at..].iter().map(|(address, _)| *address).find(|address| address > begin);
            (*begin..next.unwrap_or(u64::MAX), name.split('.').next().unwrap_or(name))
        })
    }

    /// The function that an address is in; the kernel tells where each begins, and not where it ends.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(from, _)| *from <= address);
        self.0[..after].last().map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_function_before_an_address_holds_it() {
        let names = KernelNames::parse("30 T two\n10 t one\n20 d data\n0000 T hidden\n40 t three\t[module]\n");
        let of = [5, 0x10, 0x2f, 0x30, 0x99].map(|address| names.name(address));
        assert_eq!(of, [None, Some("one"), Some("one"), Some("two"), Some("three")]);
        let all: Vec<_> = names.functions().map(|(at, name)| (at.start, at.end, name)).collect();
        assert_eq!(all, [(0x10, 0x30, "one"), (0x30, 0x40, "two"), (0x40, u64::MAX, "three")]);
        let locks = KernelNames::parse("10 T __lock_text_start\n20 T down\n30 T __lock_text_end\n").of_locks();
        assert!(locks.len() == 1 && locks[0] == (0x10..0x30), "{locks:?}");
        assert!(KernelNames::parse("0000000000000000 T hidden\n").is_empty());
    }
}
