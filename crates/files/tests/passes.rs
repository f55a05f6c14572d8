//! Sessions of phases and passes, operation by operation: what of the closing is a part of the last one, and what is known of
//! files after a kill.

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

    /// The system calls of each operation of a pass by one session, which is through with its file then.
    fn calls(&self, more: Value) -> Vec<u32> {
        let (workload, tree) = (self.workload(more), self.tree());
        let mut session = session(&workload, &tree);
        let calls = (0..RECORDS).map(|index| operation(session.as_mut(), index)).collect();
        assert!(session.begin(RECORDS).skipped, "there is nothing more to do");
        session.close();
        workload.conclude(&tree).unwrap();
        calls
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

#[test]
fn what_is_asked_for_of_the_closing_is_a_part_of_the_last_operation() {
    let raw = Laid::new(RawStorage::NAME);
    assert_eq!(raw.calls(json!({"phase": "write"})), [1, 1, 1, 2], "the close, as in the original");
    assert_eq!(raw.calls(json!({"phase": "write", "fsync": true})), [1, 1, 1, 3]);
    // A read, a seek back and a write; after the last one the read past the end.
    assert_eq!(raw.calls(json!({"phase": "rewrite", "fsync": true})), [3, 3, 3, 6]);
    // What is put lies in a buffer of a chunk until the next one comes.
    assert_eq!(raw.calls(json!({"phase": "putc", "fsync": true})), [0, 1, 1, 4]);
    assert_eq!(raw.calls(json!({"phase": "read", "fsync": true})), [1, 1, 1, 3], "nothing was written");
    let passes = Laid::new(SequentialIo::NAME);
    for pass in ["write", "rewrite", "pwrite"] {
        assert_eq!(passes.calls(json!({"pass": pass})), [1, 1, 1, 1]);
        assert_eq!(passes.calls(json!({"pass": pass, "include_fsync": true})), [1, 1, 1, 2]);
        assert_eq!(passes.calls(json!({"pass": pass, "include_fsync": true, "include_close": true})), [1, 1, 1, 3]);
    }
    assert_eq!(passes.calls(json!({"pass": "read", "include_fsync": true})), [1, 1, 1, 1]);
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
