//! Clients of file_serving on a folder, line by line: what lines do, what they find, and what they leave.

#![allow(clippy::unwrap_used)]

use plimsoll_files::{FileServing, FileWorkload, Finish, Sessions, Tree};
use plimsoll_record::{Check, Outcome};
use plimsoll_session::{BlockingSession, Ending, SessionReport};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Two folders, a file with a hole, a temporary file that is renamed.
const SCRIPT: &str = r#"Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1" 0x1 0x2 1 NT_STATUS_OK
Close 1 NT_STATUS_OK
NTCreateX "\clients\client1\Letter.Doc" 0x40 0x2 2 NT_STATUS_OK
WriteX 2 0 4096 4096 NT_STATUS_OK
WriteX 2 2000 100 100 NT_STATUS_OK
WriteX 2 10000 1 1 NT_STATUS_OK
ReadX 2 0 10001 10001 NT_STATUS_OK
Close 2 NT_STATUS_OK
NTCreateX "\clients\client1\none" 0x40 0x1 3 NT_STATUS_OBJECT_NAME_NOT_FOUND
QUERY_PATH_INFORMATION "\clients\client1\LETTER.DOC" 1004 NT_STATUS_OK
NTCreateX "\clients\client1\temporary" 0x40 0x2 4 NT_STATUS_OK
WriteX 4 0 500 500 NT_STATUS_OK
LockX 4 0 10 NT_STATUS_OK
UnlockX 4 0 10 NT_STATUS_OK
SET_FILE_INFORMATION 4 1 NT_STATUS_OK
Flush 4 NT_STATUS_OK
Close 4 NT_STATUS_OK
Rename "\clients\client1\temporary" "\clients\client1\kept" NT_STATUS_OK
FIND_FIRST "\clients\client1\*.*" 260 1366 2 NT_STATUS_OK
QUERY_FS_INFORMATION 1 NT_STATUS_OK
"#;
const LINES: usize = 22;

/// A folder with the workload laid out in it.
struct Served {
    folder: TempDir,
    workload: Arc<FileServing>,
    tree: Arc<Tree>,
    finished: Arc<AtomicU32>,
}

impl Served {
    fn new(script: &str, more: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.txt");
        std::fs::write(&file, script).unwrap();
        Self::with(folder, json!({"loadfile": file}), more)
    }

    fn with(folder: TempDir, script: Value, more: Value) -> Self {
        let mut request = json!({"name": "file_serving", "seed": 5, "script": script});
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        let workload = Arc::new(FileServing::new(&serde_json::from_value(request).unwrap()).unwrap());
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        let tree = Arc::new(Tree::create(&folder.path().join("tree"), workload.name()).unwrap());
        workload.lay_out(&tree, &mut |_| {}).unwrap();
        Self { folder, workload, tree, finished: Arc::default() }
    }

    fn clients(&self, count: u32) -> Vec<Box<dyn BlockingSession>> {
        let finished = Arc::clone(&self.finished);
        let finish = Finish::new(move || {
            finished.fetch_add(1, Ordering::Relaxed);
        });
        match Arc::clone(&self.workload).sessions(&self.tree, count, finish).unwrap() {
            Sessions::Blocking(opener) => (0..count).map(|number| opener.open(number).unwrap()).collect(),
            Sessions::Completion(_) => panic!("its calls block"),
        }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join("tree/data/clients").join(below)
    }

    fn checks(&self) -> Vec<Check> {
        self.workload.check(&self.tree, &[]).unwrap()
    }

    fn wrong(&self) -> Vec<String> {
        let wrong = self.checks().into_iter().filter(|check| !check.ok);
        wrong.map(|check| format!("{}: {}", check.name, check.found)).collect()
    }

    fn close(&self, clients: Vec<Box<dyn BlockingSession>>) -> Vec<SessionReport> {
        let reports = clients.into_iter().map(|client| client.close()).collect();
        self.workload.conclude(&self.tree).unwrap();
        reports
    }
}

fn lines(client: &mut dyn BlockingSession, count: usize) -> Vec<Ending> {
    (0..count as u64)
        .map(|index| {
            assert!(!client.begin(index).skipped);
            client.perform()
        })
        .collect()
}

fn failure(ending: &Ending) -> (&str, &str) {
    let failure = ending.failure.as_ref().unwrap();
    assert_eq!(ending.outcome, Outcome::Failed);
    (&failure.code, &failure.message)
}

fn total(report: &SessionReport, name: &str) -> i64 {
    report.totals.iter().find(|(of, _)| *of == name).unwrap().1
}

#[test]
fn lines_do_what_they_say_and_leave_what_they_wrote() {
    let served = Served::new(SCRIPT, json!({}));
    let mut clients = served.clients(2);
    for client in &mut clients {
        let endings = lines(client.as_mut(), LINES);
        assert!(endings.iter().all(|ending| ending.outcome == Outcome::Done), "{endings:?}");
        let bytes: Vec<u64> = endings.iter().map(|ending| ending.bytes).filter(|bytes| *bytes > 0).collect();
        assert_eq!(bytes, [4_096, 100, 1, 10_001, 500]);
        // A name that is not there: stat, open of its directory, its entries twice, close; the open itself.
        assert_eq!((endings[10].requests, endings[11].requests), (6, 4), "a match ends the reading of the directory");
        // Of a pattern its directory is read, and then once more.
        assert_eq!((endings[20].requests, endings[21].requests), (9, 1));
    }
    let sizes = ["client1/Letter.Doc", "client1/kept", "client2/Letter.Doc", "client2/kept"]
        .map(|name| std::fs::metadata(served.path(name)).unwrap().len());
    assert_eq!(sizes, [10_001, 500, 10_001, 500]);
    let letters = [1, 2].map(|client| std::fs::read(served.path(&format!("client{client}/Letter.Doc"))).unwrap());
    assert!(letters[0] != letters[1], "each client writes bytes of its own");
    let reports = served.close(clients);
    for report in &reports {
        let totals = ["bytes_read", "bytes_written", "passes_begun"].map(|name| total(report, name));
        assert_eq!(totals, [10_001, 4_697, 1]);
        assert_eq!((report.verification.checked, report.verification.wrong), (1, 0));
    }
    let checks = served.checks();
    assert!(checks.iter().all(|check| check.ok), "{checks:?}");
    assert_eq!((checks[1].found.as_str(), checks[2].found.as_str()), ("6", "21002"), "{checks:?}");
}

#[test]
fn without_resolving_case_matters() {
    let served = Served::new(SCRIPT, json!({"resolve": false}));
    let mut clients = served.clients(1);
    let endings = lines(clients[0].as_mut(), LINES);
    let (code, message) = failure(&endings[11]);
    assert!(code == "ENOENT" && message.contains("client 1, pass 1, line 12 (QUERY_PATH_INFORMATION)"), "{message}");
    assert_eq!((endings[10].requests, endings[11].requests), (2, 1));
    served.close(clients);
}

#[test]
fn syncs_are_made_where_they_are_asked_for() {
    let more = json!({"sync_directories": true, "sync_writes": true, "resolve": false});
    let served = Served::new(SCRIPT, more);
    let mut clients = served.clients(1);
    let endings = lines(clients[0].as_mut(), LINES);
    assert_eq!(endings[5].requests, 2, "a write and its fsync");
    assert_eq!(endings[19].requests, 6, "two looks, the rename, and its directory opened, synced and closed");
    served.close(clients);
}

#[test]
fn what_the_check_finds() {
    let served = Served::new(SCRIPT, json!({}));
    let mut clients = served.clients(1);
    lines(clients[0].as_mut(), LINES);
    served.close(clients);
    assert_eq!(served.wrong(), [""; 0]);
    let letter = served.path("client1/Letter.Doc");
    let whole = std::fs::read(&letter).unwrap();
    let mut damaged = whole.clone();
    damaged[5_000] = 1;
    std::fs::write(&letter, &damaged).unwrap();
    assert!(
        served.wrong()[0].contains("Letter.Doc: from byte 4096 on not the zeros of a hole"),
        "{:?}",
        served.wrong()
    );
    damaged = whole.clone();
    damaged[2_050] ^= 1;
    std::fs::write(&letter, &damaged).unwrap();
    assert!(
        served.wrong()[0].contains("from byte 2000 on not what line 7 of the script wrote"),
        "{:?}",
        served.wrong()
    );
    std::fs::write(&letter, &whole[..10_000]).unwrap();
    assert!(served.wrong()[0].contains("has 10000 bytes, not 10001"), "{:?}", served.wrong());
    std::fs::write(&letter, &whole).unwrap();
    assert_eq!(served.wrong(), [""; 0]);
    std::fs::write(served.path("client1/other"), "").unwrap();
    std::fs::remove_file(served.path("client1/kept")).unwrap();
    let wrong = &served.wrong()[0];
    assert!(wrong.contains("client1/kept is missing; clients/client1/other should not be there"), "{wrong}");
}

#[test]
fn wrong_bytes_old_ones_and_too_few_are_found() {
    let read = |plant: &dyn Fn(&Served, &[u8])| {
        let served = Served::new(SCRIPT, json!({"passes": 2}));
        let mut clients = served.clients(1);
        lines(clients[0].as_mut(), LINES);
        let before = std::fs::read(served.path("client1/Letter.Doc")).unwrap();
        lines(clients[0].as_mut(), 8);
        plant(&served, &before);
        let ending = lines(clients[0].as_mut(), 1).remove(0);
        let rest = lines(clients[0].as_mut(), LINES - 9);
        assert!(rest.iter().all(|ending| ending.outcome == Outcome::Done), "{rest:?}");
        let verification = served.close(clients).remove(0).verification;
        assert_eq!((verification.checked, verification.wrong, verification.examples.len()), (2, 1, 1));
        let (code, message) = failure(&ending);
        assert_eq!(code, "XXVER");
        message.to_owned()
    };
    let wrong = read(&|served, _| {
        let path = served.path("client1/Letter.Doc");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4_095] ^= 1;
        std::fs::write(path, bytes).unwrap();
    });
    assert_eq!(wrong, "client 1, pass 2, line 9 (ReadX): bytes 2100 to 4096 are not what line 6 of the script wrote");
    let old = read(&|served, before| std::fs::write(served.path("client1/Letter.Doc"), before).unwrap());
    assert!(old.contains("bytes 0 to 2000 are not what line 6"), "{old}");
    let torn = read(&|served, before| {
        let path = served.path("client1/Letter.Doc");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[3_000..3_512].copy_from_slice(&before[3_000..3_512]);
        std::fs::write(path, bytes).unwrap();
    });
    assert!(torn.contains("bytes 2100 to 4096"), "{torn}");
    let short = read(&|served, _| {
        let file = std::fs::File::options().write(true).open(served.path("client1/Letter.Doc")).unwrap();
        file.set_len(9_000).unwrap();
    });
    assert!(short.contains("9000 bytes were read at 0, where there are 10001"), "{short}");
}

#[test]
fn a_line_that_ends_otherwise_fails_and_what_follows_is_not_called_wrong() {
    let served = Served::new(SCRIPT, json!({}));
    let mut clients = served.clients(1);
    lines(clients[0].as_mut(), 10);
    std::fs::write(served.path("client1/none"), "it is there").unwrap();
    let ending = lines(clients[0].as_mut(), 1).remove(0);
    assert_eq!(failure(&ending).0, "XXVER", "the script says that there is no such file");
    lines(clients[0].as_mut(), LINES - 11);
    // In the second pass the file is gone before it is written.
    lines(clients[0].as_mut(), 3);
    std::fs::remove_dir(served.path("client1")).unwrap();
    let endings = lines(clients[0].as_mut(), 6);
    let codes: Vec<&str> = endings[1..].iter().map(|ending| failure(ending).0).collect();
    assert_eq!(codes, ["ENOENT", "EBADF", "EBADF", "EBADF", "EBADF"]);
    let report = served.close(clients).remove(0);
    assert_eq!((report.verification.checked, report.verification.wrong), (2, 1), "{:?}", report.verification);
    // What failed is counted by its error; it excludes the trial no more in the last pass than in the one before.
    assert_eq!(served.wrong(), [""; 0]);
    let left = served.checks().into_iter().find(|check| check.name == "bytes left in files").unwrap();
    assert_eq!(left.found, "0 (without 1 of 1 clients, of whose last pass a line failed)");
}

#[test]
fn what_follows_from_a_failure_is_no_wrong_answer() {
    let script = "NTCreateX \"\\client1\" 1 2 1 NT_STATUS_OK\nNTCreateX \"\\client1\\a\" 0 1 2 0xC0000034\n\
        NTCreateX \"\\client1\\b\" 0 2 3 NT_STATUS_OK\nWriteX 3 0 100 100 NT_STATUS_OK\nReadX 3 0 100 100 NT_STATUS_OK\n";
    let served = Served::new(script, json!({}));
    let mut clients = served.clients(1);
    let folder = served.folder.path().join("tree/data/client1");
    lines(clients[0].as_mut(), 1);
    std::fs::write(folder.join("a"), "planted").unwrap();
    lines(clients[0].as_mut(), 3);
    std::fs::write(folder.join("b"), "short").unwrap();
    let ending = lines(clients[0].as_mut(), 1).remove(0);
    assert!(failure(&ending).1.ends_with("5 bytes were read at 0, where there are 100, after a line that failed"));
    let report = served.close(clients).remove(0);
    assert_eq!((report.verification.checked, report.verification.wrong), (1, 1), "the file that should not be there");
    assert_eq!(total(&report, "lines_after_a_failure"), 3);
}

#[test]
fn clients_perform_their_passes_and_wait_for_each_other() {
    let served = Served::new(SCRIPT, json!({"passes": 2}));
    let mut clients = served.clients(2);
    lines(clients[0].as_mut(), 2 * LINES);
    assert_eq!(served.finished.load(Ordering::Relaxed), 0, "the other one is not through");
    assert!(clients[0].pause(0).ns == i64::MAX && clients[0].begin(99).skipped);
    assert_eq!(clients[1].pause(0).ns, 0);
    lines(clients[1].as_mut(), 2 * LINES);
    assert_eq!(served.finished.load(Ordering::Relaxed), 1);
    served.close(clients);
    assert_eq!(served.wrong(), [""; 0]);
    // The next segment begins anew, with fewer clients.
    let mut clients = served.clients(1);
    lines(clients[0].as_mut(), 8);
    served.close(clients);
    assert_eq!(served.wrong(), [""; 0]);
    assert!(!served.path("client2").exists());
    // Its clients never ended.
    drop(served.clients(1));
    assert!(served.wrong()[0].starts_with("clients whose end is known: 0"), "{:?}", served.wrong());
}

#[test]
fn a_client_that_ends_before_its_passes_keeps_nobody_waiting() {
    let served = Served::new(SCRIPT, json!({"passes": 1}));
    let mut clients = served.clients(2);
    lines(clients[0].as_mut(), LINES);
    assert_eq!(served.finished.load(Ordering::Relaxed), 0);
    lines(clients[1].as_mut(), 3);
    clients.pop().unwrap().close();
    assert_eq!(served.finished.load(Ordering::Relaxed), 1, "the other one is through");
}

#[test]
fn a_read_has_moved_what_it_returned() {
    let script = "NTCreateX \"\\client1\" 1 2 1 NT_STATUS_OK\nNTCreateX \"\\client1\\a\" 0 2 2 NT_STATUS_OK\n\
        WriteX 2 0 100 100 NT_STATUS_OK\nReadX 2 40 4096 60 NT_STATUS_OK\n";
    let served = Served::new(script, json!({}));
    let mut clients = served.clients(1);
    let endings = lines(clients[0].as_mut(), 4);
    assert_eq!((endings[2].bytes, endings[3].bytes), (100, 60), "not the 4096 that it asked for");
    let report = served.close(clients).remove(0);
    assert_eq!((total(&report, "bytes_read"), total(&report, "bytes_written")), (60, 100));
}

#[test]
fn no_symbolic_link_leads_a_client_out_of_the_folder() {
    let served = Served::new(SCRIPT, json!({}));
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("client1")).unwrap();
    std::fs::write(outside.path().join("client1/Letter.Doc"), "mine").unwrap();
    std::os::unix::fs::symlink(outside.path(), served.folder.path().join("tree/data/clients")).unwrap();
    let refused = match Arc::clone(&served.workload).sessions(&served.tree, 1, Finish::new(|| {})).unwrap() {
        Sessions::Blocking(opener) => opener.open(0).map(drop).unwrap_err(),
        Sessions::Completion(_) => panic!("its calls block"),
    };
    assert_eq!(refused.code, "ELOOP", "{refused:?}");
    assert_eq!(std::fs::read_to_string(outside.path().join("client1/Letter.Doc")).unwrap(), "mine");
}

#[test]
fn the_older_generation_looks_for_no_names_and_does_nothing_for_flush() {
    let script = "Deltree \"/clients/client1\"\nMkdir \"/clients\"\nNTCreateX \"/clients/client1\" 1 2 1\nClose 1\n\
        NTCreateX \"/clients/client1/a\" 0x40 0x1 -1\nNTCreateX \"/clients/client1/a\" 0x40 0x2 2\nFlush 2\n\
        QUERY_FS_INFORMATION 1\nQUERY_PATH_INFORMATION \"/clients/client1/A\" 1004\nUnlink \"/clients/client1/b\"\n";
    let served = Served::new(script, json!({"generation": "2.1", "passes": 1}));
    let mut clients = served.clients(1);
    let endings = lines(clients[0].as_mut(), 10);
    assert!(endings.iter().all(|ending| ending.outcome == Outcome::Done), "{endings:?}");
    let calls: Vec<u32> = endings.iter().map(|ending| ending.requests).collect();
    assert_eq!(calls, [1, 1, 3, 1, 1, 2, 0, 0, 1, 1]);
    assert_eq!(served.finished.load(Ordering::Relaxed), 1);
    served.close(clients);
    assert_eq!(served.wrong(), [""; 0]);
}

/// One pass; gives lines by kind, and the report.
fn one_pass(served: &Served) -> (Vec<u64>, SessionReport) {
    let mut clients = served.clients(1);
    let mut by_kind = vec![0; served.workload.kinds().len()];
    let facts = served.workload.facts();
    for index in 0..facts["lines"].as_u64().unwrap() {
        let begun = clients[0].begin(index);
        let ending = clients[0].perform();
        assert_eq!(ending.outcome, Outcome::Done, "{ending:?}");
        by_kind[usize::from(begun.kind)] += 1;
    }
    let report = served.close(clients).remove(0);
    assert_eq!((report.verification.wrong, served.wrong().len()), (0, 0));
    assert_eq!(total(&report, "lines_after_a_failure"), 0);
    (by_kind, report)
}

/// Lines of one pass of dbench 4.0's load file in the order of the kinds, counted in Debian's package.
const PASS: [u64; 17] =
    [79_230, 58_200, 124_199, 39_502, 71_814, 12_585, 13_168, 6_454, 27_765, 16_000, 3_355, 5_553, 258, 258, 1, 0, 2];

#[test]
fn one_pass_of_the_installed_load_file_has_its_counts() {
    const INSTALLED: &str = "/usr/share/dbench/client.txt";
    if !PathBuf::from(INSTALLED).exists() {
        eprintln!("skipped: no {INSTALLED}: install the package dbench");
        return;
    }
    let served = Served::with(tempfile::tempdir_in("/dev/shm").unwrap(), json!({"loadfile": INSTALLED}), json!({}));
    let (by_kind, report) = one_pass(&served);
    assert_eq!(by_kind, PASS);
    assert_eq!((total(&report, "bytes_read"), total(&report, "bytes_written")), (1_472_088_767, 1_015_974_170));
    assert_eq!(report.verification.checked, 124_199, "every read was compared");
}

#[test]
fn one_pass_of_the_synthetic_script_finds_what_it_wrote() {
    let served = Served::with(tempfile::tempdir_in("/dev/shm").unwrap(), json!({"synthetic": {}}), json!({}));
    let (by_kind, report) = one_pass(&served);
    assert_eq!(by_kind, PASS);
    assert_eq!(report.verification.checked, 124_199);
}
