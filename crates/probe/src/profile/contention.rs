//! Waits for the kernel's own locks, by the kind of lock and by who wanted it.
//!
//! The kernel tells of a wait only when the first attempts have failed; what a task spins on a lock of the kind rwsem while its
//! owner runs is not told.

use super::kernel_names::KernelNames;
use crate::Refusal;
use crate::bpf::Programs;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::{Contended, Contention};
use std::collections::BTreeMap;

/// Programs that tell of it.
pub(crate) const PROGRAMS: [&str; 2] = ["on_contention_begin", "on_contention_end"];
/// Tracepoints that they need.
pub(crate) const TRACEPOINTS: [&str; 2] = ["contention_begin", "contention_end"];
/// Places in the kernel that the record has one by one, those with the longest waits.
const SITES_SHOWN: usize = 50;
/// "struct site": flags, and callers from here on.
const CALLERS_AT: usize = 8;

/// `LCB_F_*` of the kernel, in their order.
const FLAGS: [&str; 6] = ["spin", "read", "write", "rt", "percpu", "mutex"];

/// What a lock is called by its flags. A mutex that is waited for on a CPU is one, too.
fn kind(flags: u32) -> String {
    match flags {
        0 => "semaphore".to_owned(),
        1 => "spinlock".to_owned(),
        2 => "rwsem read".to_owned(),
        3 => "rwlock read".to_owned(),
        4 => "rwsem write".to_owned(),
        5 => "rwlock write".to_owned(),
        8 => "rt mutex".to_owned(),
        18 => "percpu rwsem read".to_owned(),
        20 => "percpu rwsem write".to_owned(),
        32 | 33 => "mutex".to_owned(),
        other => {
            let named = FLAGS.iter().enumerate().filter(|(bit, _)| other >> bit & 1 == 1).map(|(_, name)| *name);
            named.collect::<Vec<_>>().join(" ")
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waited {
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

impl Waited {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

type Sites = BTreeMap<(u32, Vec<u64>), Waited>;

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?))).collect()
}

fn read(map: &MapHandle) -> Sites {
    let mut sites = Sites::new();
    for key in map.keys() {
        let (Some(flags), Some(callers)) = (key.first_chunk::<4>(), key.get(CALLERS_AT..)) else { continue };
        let Ok(Some(cpus)) = map.lookup_percpu(&key, MapFlags::ANY) else { continue };
        let callers = words(callers).into_iter().filter(|address| *address > 0).collect();
        let site = sites.entry((u32::from_ne_bytes(*flags), callers)).or_default();
        for cpu in cpus {
            if let [count, total_ns, max_ns] = words(&cpu)[..] {
                site.add(Waited { count, total_ns, max_ns });
            }
        }
    }
    sites
}

fn entry(kind: &str, caller: &str, stack: &str, waited: Waited) -> Contended {
    let Waited { count, total_ns, max_ns } = waited;
    Contended { kind: kind.to_owned(), caller: caller.to_owned(), stack: stack.to_owned(), count, total_ns, max_ns }
}

/// Reads what the programs count.
pub(crate) struct Locks {
    sites: MapHandle,
}

impl Locks {
    pub(crate) fn of(programs: &Programs) -> Result<Self, Refusal> {
        Ok(Self { sites: programs.map("sites")? })
    }

    /// Nothing is known any more from here on. (What ends meanwhile may be lost, before the segment.)
    pub(crate) fn forget(&self) {
        for key in self.sites.keys() {
            let _ = self.sites.delete(&key);
        }
    }

    /// Everything since.
    pub(crate) fn report(&self, names: &KernelNames) -> Contention {
        let (mut kinds, mut named) = (BTreeMap::<String, Waited>::new(), BTreeMap::<(String, String), Waited>::new());
        let of_locks = names.of_locks();
        for ((flags, callers), waited) in read(&self.sites) {
            kinds.entry(kind(flags)).or_default().add(waited);
            let frames: Vec<&str> = callers.iter().map(|address| names.name(*address).unwrap_or("[kernel]")).collect();
            let is_of_lock = |address: &u64| of_locks.iter().any(|range| range.contains(address));
            // What is before the lock's own code are the tracepoint's last functions.
            let before = callers.iter().take_while(|address| !is_of_lock(address)).count() % callers.len().max(1);
            let own = callers[before..].iter().take_while(|address| is_of_lock(address)).count();
            // Where all that there was room for is the lock's, its outermost function stands for who wanted it.
            let after = (before + own).min(frames.len().saturating_sub(1));
            let stack: Vec<&str> = frames[after..].iter().rev().copied().collect();
            named.entry((kind(flags), stack.join(";"))).or_default().add(waited);
        }
        let mut sites: Vec<Contended> = named
            .into_iter()
            .map(|((kind, stack), waited)| entry(&kind, stack.rsplit(';').next().unwrap_or_default(), &stack, waited))
            .collect();
        sites.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.stack.cmp(&b.stack)));
        let sites_known = sites.len() as u64;
        sites.truncate(SITES_SHOWN);
        let kinds = kinds.into_iter().map(|(kind, waited)| entry(&kind, "", "", waited)).collect();
        Contention { kinds, sites, sites_known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_called_what_they_are() {
        let of = [0, 1, 2, 4, 32, 33, 5, 18].map(kind);
        let names = [
            "semaphore",
            "spinlock",
            "rwsem read",
            "rwsem write",
            "mutex",
            "mutex",
            "rwlock write",
            "percpu rwsem read",
        ];
        assert_eq!(of, names);
        assert_eq!(kind(8 | 2), "read rt");
    }
}
