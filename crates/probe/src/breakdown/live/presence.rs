//! What every process of the server is doing at a moment, those too that no program has seen since they were attached.
//!
//! The fact that constrains it: the programs see switches. A process that has slept, or run, since before they were there has
//! no storage: PostgreSQL's own memory and /proc tell what it does, and that has not changed, or it would have been seen.

use super::present::{Present, State};
use crate::breakdown::buckets::{Buckets, CLIENT, UNATTRIBUTED};
use crate::breakdown::processes::{children_listed, parent_of, stored, title, what};
use crate::breakdown::records::SYSTEM_CALL;
use crate::breakdown::system_calls;
use crate::breakdown::target::Server;
use libbpf_rs::MapHandle;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

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
    server: &Server,
    buckets: &Buckets,
    now_ns: i64,
) -> BTreeMap<u32, Present> {
    pids.filter_map(|pid| Some((pid, doing(pid, server, buckets, now_ns)?))).collect()
}

fn doing(pid: u32, server: &Server, buckets: &Buckets, now_ns: i64) -> Option<Present> {
    if state_of(pid)? == 'R' {
        return Some(Present::running(now_ns));
    }
    let (event, bucket) = match server.wait_place {
        Some(place) => match place.event_of(pid)? {
            0 => (SYSTEM_CALL | (call_of(pid)? & 0xff_ffff), UNATTRIBUTED),
            event => (event, buckets.of_event(event)),
        },
        None => system_calls::doing(pid, what(pid).is_none(), &server.trees)?,
    };
    Some(Present::blocked(now_ns, event, bucket, bucket == CLIENT && is_in_block(&title(pid))))
}

/// Whether a backend that waits for its client has a block open, by its title.
fn is_in_block(title: &str) -> bool {
    let title = title.trim_end_matches(['\0', ' ']);
    title.ends_with(" idle in transaction") || title.ends_with(" idle in transaction (aborted)")
}

/// The letter of its state.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The number of the system call in which it is blocked; all bits set: in none.
fn call_of(pid: u32) -> Option<u32> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    call.split_ascii_whitespace().next()?.parse::<i64>().ok().map(|number| number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_tells_of_an_open_block() {
        let of = |activity| is_in_block(&format!("postgres: somebody bench [local] {activity}\0"));
        assert_eq!((of("idle"), of("SELECT"), of("SELECT waiting")), (false, false, false));
        assert!(of("idle in transaction") && of("idle in transaction (aborted)"));
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
