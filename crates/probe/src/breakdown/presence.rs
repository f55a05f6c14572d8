//! What every process of the server is doing at a moment, those too that no program has seen since they were attached.
//!
//! The fact that constrains it: the programs see switches. A process that has slept, or run, since before they were there has
//! no storage: PostgreSQL's own memory and /proc tell what it does, and that has not changed, or it would have been seen.

use super::buckets::{Buckets, CLIENT, UNATTRIBUTED};
use super::present::{Present, State};
use super::processes::{children_listed, parent_of, stored, title};
use super::records::SYSTEM_CALL;
use libbpf_rs::MapHandle;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// One process, as it was found.
pub(crate) struct Found {
    pub(crate) pid: u32,
    /// None if it is not known, or not followed.
    pub(crate) present: Option<Present>,
    /// As it is stored.
    pub(crate) stored: Option<Vec<u8>>,
}

impl Found {
    pub(crate) fn read(backends: &MapHandle, pid: u32) -> Self {
        let stored = stored(backends, pid);
        let mut present = stored.as_deref().and_then(Present::decode);
        if let Some(present) = present.as_mut().filter(|present| present.state == State::Blocked) {
            // Between its waking up and its arrival on a CPU the programs see nothing.
            if state_of(pid) == Some('R') {
                present.state = State::Woken;
            }
        }
        Self { pid, present, stored }
    }
}

/// The children of `parent`; `known` ones are looked for where the list leaves them out.
pub(crate) fn pids(parent: u32, known: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut pids: BTreeSet<u32> = children_listed(parent).into_iter().collect();
    let left_out: Vec<u32> = known.filter(|pid| !pids.contains(pid) && parent_of(*pid) == Some(parent)).collect();
    pids.extend(left_out);
    pids.into_iter().collect()
}

/// What those do, since `now_ns` at the latest, that no program has seen.
pub(crate) fn unseen(
    pids: impl Iterator<Item = u32>,
    wait_pointer: Option<u64>,
    buckets: &Buckets,
    now_ns: i64,
) -> BTreeMap<u32, Present> {
    pids.filter_map(|pid| Some((pid, doing(pid, wait_pointer, buckets, now_ns)?))).collect()
}

fn doing(pid: u32, wait_pointer: Option<u64>, buckets: &Buckets, now_ns: i64) -> Option<Present> {
    if state_of(pid)? == 'R' {
        return Some(Present::running(now_ns));
    }
    let title = title(pid);
    let (is_idle, in_block) = idleness(&title);
    // Where the program does not tell its wait events the title tells of waiting for the client.
    let guessed = if is_idle { buckets.client_read } else { 0 };
    let (event, bucket) = match wait_pointer.map_or(Some(guessed), |pointer| event_of(pid, pointer))? {
        0 => (SYSTEM_CALL | (call_of(pid)? & 0xff_ffff), UNATTRIBUTED),
        event => (event, buckets.of_event(event)),
    };
    Some(Present::blocked(now_ns, event, bucket, in_block && bucket == CLIENT))
}

/// Whether a backend waits for its client by its title, and whether a block is open meanwhile.
fn idleness(title: &str) -> (bool, bool) {
    let title = title.trim_end_matches(['\0', ' ']);
    let in_block = title.ends_with(" idle in transaction") || title.ends_with(" idle in transaction (aborted)");
    (in_block || title.ends_with(" idle"), in_block)
}

/// The letter of its state.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// PostgreSQL's wait event, in its own memory.
fn event_of(pid: u32, wait_pointer: u64) -> Option<u32> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let (mut pointer, mut event) = ([0; 8], [0; 4]);
    memory.read_exact_at(&mut pointer, wait_pointer).ok()?;
    memory.read_exact_at(&mut event, u64::from_ne_bytes(pointer)).ok()?;
    Some(u32::from_ne_bytes(event))
}

/// The number of the system call in which it is blocked; all bits set: in none.
fn call_of(pid: u32) -> Option<u32> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    call.split_ascii_whitespace().next()?.parse::<i64>().ok().map(|number| number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres_waits::WaitNames;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    static EVENT: AtomicU32 = AtomicU32::new(0);
    static POINTER: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn a_process_that_was_never_seen_tells_what_it_waits_for() {
        let names = WaitNames::of(15).unwrap();
        let (lock, ..) = names.all().find(|(_, class, event)| (*class, *event) == ("Lock", "relation")).unwrap();
        EVENT.store(lock, Ordering::Relaxed);
        POINTER.store(std::ptr::from_ref(&EVENT) as usize, Ordering::Relaxed);
        let pointer = std::ptr::from_ref(&POINTER) as usize as u64;
        assert_eq!(event_of(std::process::id(), pointer), Some(lock));
        assert_eq!(event_of(std::process::id(), 0), None, "nothing is mapped there");
        assert_eq!(Buckets::of(&names).of_event(lock), 3);
    }

    #[test]
    fn a_title_tells_of_waiting_for_the_client() {
        let of = |activity| idleness(&format!("postgres: somebody bench [local] {activity}\0"));
        assert_eq!((of("idle"), of("SELECT"), of("SELECT waiting")), ((true, false), (false, false), (false, false)));
        assert_eq!(of("idle in transaction"), (true, true));
        assert_eq!(of("idle in transaction (aborted)"), (true, true));
    }

    #[test]
    fn what_a_sleeping_process_does_is_read_from_proc() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let asleep = || state_of(child.id()) == Some('S') && call_of(child.id()).is_some_and(|call| call > 0);
        assert!((0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            asleep()
        }));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(state_of(child.id()), None);
    }
}
