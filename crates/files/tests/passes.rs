//! Sessions of phases and passes, operation by operation: what of a file's end belongs to the time, and what is known of files
//! after a kill.

#![allow(clippy::unwrap_used)]

use plimsoll_files::{FileWorkload, Finish, RawStorage, SequentialIo, Sessions, Tree};
use plimsoll_record::{Check, Outcome};
use plimsoll_session::BlockingSession;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

const RECORDS: u64 = 4;
const BYTES: u64 = RECORDS * 4_096;

/// A folder that a workload has for itself.
struct Laid {
    folder: TempDir,
    name: &'static str,
}

impl Laid {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Tree::create(folder.path(), name).unwrap();
        Self { folder, name }
    }

    fn workload(&self, more: Value) -> Arc<dyn FileWorkload> {
        let mut request = json!({"name": self.name, "seed": 5, "file_bytes": BYTES});
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        if self.name == RawStorage::NAME {
            request["chunk_bytes"] = json!(4_096);
            return Arc::new(RawStorage::new(&serde_json::from_value(request).unwrap()).unwrap());
        }
        request["record_bytes"] = json!(4_096);
        request["processes"] = json!(1);
        Arc::new(SequentialIo::new(&serde_json::from_value(request).unwrap()).unwrap())
    }

    fn tree(&self) -> Arc<Tree> {
        Arc::new(Tree::open(self.folder.path(), self.name).unwrap())
    }

    /// The system calls of each operation of a pass by one session, which is through with its file then; and which kind
    /// each was.
    fn calls(&self, more: Value) -> Vec<(u32, String)> {
        let (workload, tree) = (self.workload(more), self.tree());
        let (mut session, kinds) = (session(&workload, &tree), workload.kinds());
        let mut calls = Vec::new();
        for index in 0.. {
            let begun = session.begin(index);
            if begun.skipped {
                break;
            }
            let ending = session.perform();
            assert_eq!(ending.outcome, Outcome::Done, "{ending:?}");
            calls.push((ending.requests, kinds[usize::from(begun.kind)].clone()));
        }
        session.close();
        workload.conclude(&tree).unwrap();
        calls
    }

    /// Those of the records, which are all of one kind, and then of the file's end.
    fn of_both(&self, more: Value) -> (Vec<u32>, Vec<(u32, String)>) {
        let mut calls = self.calls(more);
        let ends = calls.split_off(RECORDS as usize);
        assert!(calls.iter().all(|(_, kind)| *kind == calls[0].1), "{calls:?}");
        (calls.into_iter().map(|(calls, _)| calls).collect(), ends)
    }

    fn wrong(&self) -> Vec<String> {
        let checks: Vec<Check> = self.workload(first(self.name)).check(&self.tree(), &[]).unwrap();
        checks.into_iter().filter(|check| !check.ok).map(|check| format!("{}: {}", check.name, check.found)).collect()
    }
}

/// What makes the files.
fn first(name: &str) -> Value {
    if name == RawStorage::NAME { json!({"phase": "write"}) } else { json!({"pass": "write"}) }
}

fn session(workload: &Arc<dyn FileWorkload>, tree: &Arc<Tree>) -> Box<dyn BlockingSession> {
    match Arc::clone(workload).sessions(tree, 1, Finish::new(|| {})).unwrap() {
        Sessions::Blocking(opener) => opener.open(0).unwrap(),
        Sessions::Completion(_) => panic!("its calls block"),
    }
}

fn operation(session: &mut dyn BlockingSession, index: u64) -> u32 {
    assert!(!session.begin(index).skipped);
    let ending = session.perform();
    assert_eq!(ending.outcome, Outcome::Done, "{ending:?}");
    ending.requests
}

fn ends(each: &[(u32, &str)]) -> Vec<(u32, String)> {
    each.iter().map(|&(calls, kind)| (calls, kind.to_owned())).collect()
}

#[test]
fn what_is_asked_for_of_the_closing_is_an_operation_of_its_own() {
    let raw = Laid::new(RawStorage::NAME);
    let close = ends(&[(1, "close")]);
    assert_eq!(raw.of_both(json!({"phase": "write"})), (vec![1; 4], close.clone()), "as the original's time has it");
    let both = ends(&[(1, "fsync"), (1, "close")]);
    assert_eq!(raw.of_both(json!({"phase": "write", "fsync": true})), (vec![1; 4], both.clone()));
    // A read, a seek back and a write; after the last one the read past the end.
    assert_eq!(raw.of_both(json!({"phase": "rewrite", "fsync": true})), (vec![3, 3, 3, 4], both));
    // What is put lies in a buffer of a chunk until the next one comes; what is there at the end is written before the sync.
    let put = ends(&[(2, "fsync"), (1, "close")]);
    assert_eq!(raw.of_both(json!({"phase": "putc", "fsync": true})), (vec![0, 1, 1, 1], put));
    assert_eq!(raw.of_both(json!({"phase": "read", "fsync": true})), (vec![1, 1, 1, 2], close), "nothing was written");
    let passes = Laid::new(SequentialIo::NAME);
    for pass in ["write", "rewrite", "pwrite"] {
        let ended = |more: Value| {
            let mut asked = json!({"pass": pass});
            more.as_object().unwrap().iter().for_each(|(key, value)| asked[key] = value.clone());
            let (records, ends) = passes.of_both(asked);
            assert_eq!(records, [1; 4], "no part of the closing is in the last record's time");
            ends
        };
        assert_eq!(ended(json!({})), []);
        assert_eq!(ended(json!({"include_fsync": true})), ends(&[(1, "fsync")]));
        assert_eq!(ended(json!({"include_close": true})), ends(&[(1, "close")]));
        assert_eq!(ended(json!({"include_fsync": true, "include_close": true})), ends(&[(1, "fsync"), (1, "close")]));
    }
    assert_eq!(passes.of_both(json!({"pass": "read", "include_fsync": true})), (vec![1; 4], ends(&[])));
}

#[test]
fn phases_without_verification_move_and_write_the_same() {
    let laid = Laid::new(RawStorage::NAME);
    laid.calls(json!({"phase": "write"}));
    let bare = |phase: &str| json!({"phase": phase, "verify": false, "seeks": 7, "seekers": 1});
    for phase in ["rewrite", "read", "getc", "seeks"] {
        let mut verified = bare(phase);
        verified["verify"] = json!(true);
        let said = [&verified, &bare(phase)].map(|asked| laid.workload(asked.clone()).facts()["verified"].clone());
        assert_eq!(said, [true, false], "{phase}");
        let calls = |asked: Value| -> Vec<u32> { laid.calls(asked).into_iter().map(|(calls, _)| calls).collect() };
        assert_eq!(calls(verified), calls(bare(phase)), "{phase}");
        assert_eq!(laid.wrong(), [""; 0], "{phase}");
    }
}

#[test]
fn what_a_phase_opens_its_own_thread_has_open() {
    let laid = Laid::new(RawStorage::NAME);
    laid.calls(json!({"phase": "write"}));
    let path = laid.folder.path().join("data/file.0000");
    let is_open = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        descriptors.filter_map(|one| std::fs::read_link(one.path()).ok()).filter(|open| *open == path).count()
    };
    for phase in ["read", "seeks"] {
        let workload = laid.workload(json!({"phase": phase, "seekers": 1}));
        assert!(workload.own_descriptors());
        let mut session = session(&workload, &laid.tree());
        assert_eq!(is_open(), 0, "{phase}: opened to see that it can be, and closed");
        session.pause(0);
        assert_eq!(is_open(), 1, "{phase}: by the thread that asks when to begin");
        operation(session.as_mut(), 0);
        assert_eq!(is_open(), 1, "{phase}");
        session.close();
        assert_eq!(is_open(), 0, "{phase}");
    }
}

#[test]
fn a_close_that_belongs_to_no_pass_comes_after_the_session_s_end() {
    let laid = Laid::new(SequentialIo::NAME);
    laid.calls(json!({"pass": "write"}));
    let path = laid.folder.path().join("data/file.0000");
    let is_open = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
        descriptors.filter_map(|one| std::fs::read_link(one.path()).ok()).filter(|open| *open == path).count()
    };
    let (workload, tree) = (laid.workload(json!({"pass": "read"})), laid.tree());
    let mut session = session(&workload, &tree);
    operation(session.as_mut(), 0);
    assert_eq!(is_open(), 1);
    session.close();
    assert_eq!(is_open(), 1, "the engine's clock still runs when it closes its sessions");
    workload.conclude(&tree).unwrap();
    assert_eq!(is_open(), 0);
}

#[test]
fn after_a_kill_of_what_writes_nobody_says_what_the_files_hold() {
    let cases = [
        (RawStorage::NAME, json!({"phase": "rewrite"})),
        (RawStorage::NAME, json!({"phase": "seeks", "seekers": 1})),
        (RawStorage::NAME, json!({"phase": "putc"})),
        (SequentialIo::NAME, json!({"pass": "pwrite"})),
        (SequentialIo::NAME, json!({"pass": "write"})),
    ];
    for (name, killed) in cases {
        let laid = Laid::new(name);
        laid.calls(first(name));
        assert_eq!(laid.wrong(), [""; 0]);
        let (workload, tree) = (laid.workload(killed.clone()), laid.tree());
        let mut session = session(&workload, &tree);
        operation(session.as_mut(), 0);
        // Neither it nor the segment comes to its end.
        drop((session, workload));
        let wrong = laid.wrong();
        assert!(
            wrong.len() == 1 && wrong[0].starts_with("passes of which is known what they left"),
            "{killed}: {wrong:?}"
        );
        laid.calls(first(name));
        assert_eq!(laid.wrong(), [""; 0], "made anew after {killed}");
    }
}
