//! Passes and phases over files by the agent: what they leave, what is found when it was damaged, and how they end.

#![allow(clippy::unwrap_used)]

mod laid;
mod support;

use laid::{Laid, RECORD, RECORDS, over, total};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Agent, agent, failed_checks, must};
use tempfile::TempDir;

/// The codes of its failures, with how many there were.
fn errors(summary: &Value) -> Vec<(&str, u64)> {
    let of = |error: &'_ Value| -> u64 { error["count"].as_u64().unwrap() };
    let errors = summary["errors"].as_array().unwrap();
    errors.iter().map(|error| (error["sqlstate"].as_str().unwrap(), of(error))).collect()
}

#[test]
fn bonnie_s_phases_follow_each_other_and_every_byte_is_accounted_for() {
    let mut laid = Laid::of_phases(300);
    let bytes = 300 * 8_192;
    for (phase, read, written) in [
        ("putc", 0, bytes),
        ("rewrite", bytes, bytes),
        ("write", 0, bytes),
        ("getc", bytes, 0),
        ("read", bytes, 0),
        ("seeks", 500 * 8_192, 50 * 8_192),
        ("seeks", 500 * 8_192, 50 * 8_192),
        ("rewrite", bytes, bytes),
    ] {
        let summary = laid.pass(json!({"phase": phase, "seeks": 500, "fsync": phase == "write"}));
        assert_eq!((total(&summary, "bytes_read"), total(&summary, "bytes_written")), (read, written), "{phase}");
        let operations = if phase == "seeks" { 500 } else { 300 };
        assert_eq!(summary["by_kind"][phase]["done"], operations, "{summary}");
        let checked = if read > 0 { operations } else { 0 };
        assert_eq!(summary["verification"], json!({"checked": checked, "wrong": 0, "examples": []}), "{phase}");
        assert_eq!(failed_checks(&laid.check()), [""; 0], "after {phase}");
    }
}

#[test]
fn iozone_s_passes_follow_each_other_by_both_engines() {
    let mut laid = Laid::of_passes(2);
    let passes =
        ["write", "rewrite", "read", "reread", "random_read", "random_write", "read", "mixed", "backward_read"];
    for pass in passes.into_iter().chain(["stride_read", "pwrite", "pread"]) {
        for engine in [
            json!({"engine": "sync", "include_fsync": true, "include_close": true, "advice": "random"}),
            json!({"engine": "io_uring", "depth": 4, "include_fsync": true, "fixed_files": true, "fixed_buffers": true}),
            json!({"engine": "io_uring", "depth": 3, "o_sync": true}),
        ] {
            let mut more = engine.clone();
            over(&mut more, &json!({"pass": pass, "stop": "all"}));
            let summary = laid.pass(more);
            let records = |pass: &str| summary["by_kind"][pass]["done"].as_u64().unwrap_or(0);
            let of_pass = if pass == "mixed" { records("read") + records("write") } else { records(pass) };
            assert_eq!(of_pass, 2 * RECORDS, "{pass} {engine}: {summary}");
            let (written, closed) = (total(&summary, "bytes_written"), engine["include_close"] == true);
            let synced = if engine["include_fsync"] == true { written / (RECORDS * RECORD) } else { 0 };
            assert_eq!((records("fsync"), records("close")), (synced, if closed { 2 } else { 0 }), "{pass} {engine}");
            assert_eq!(summary["facts"]["records_planned"], 2 * RECORDS);
            assert_eq!(total(&summary, "bytes_read") + total(&summary, "bytes_written"), 2 * RECORDS * RECORD);
            assert_eq!(total(&summary, "min_transfer_bytes"), RECORDS * RECORD);
            assert_eq!(
                summary["health"]["thread_cpus"],
                json!([]),
                "{engine}: the kernel places threads, of either engine"
            );
            let counts_calls = engine["engine"] == "sync";
            assert_eq!(summary["totals"].get("system_calls").is_some(), counts_calls, "entries of a ring are none");
            let reads = if pass == "mixed" { RECORDS } else { 2 * RECORDS };
            let checked = if total(&summary, "bytes_read") > 0 { reads } else { 0 };
            assert_eq!(summary["verification"]["checked"], checked, "{pass} {engine}");
            assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass} {engine}");
        }
    }
}

#[test]
fn the_first_process_that_is_through_stops_the_others_and_what_is_left_is_written() {
    for engine in [json!({"engine": "sync"}), json!({"engine": "io_uring", "depth": 4})] {
        let mut laid = Laid::of_passes(3);
        // Random writes are the harder case: what they came to is scattered over the file.
        for pass in ["write", "random_write", "random_write", "read"] {
            let mut more = engine.clone();
            over(&mut more, &json!({"pass": pass}));
            let summary = laid.pass(more);
            let (done, least) = (&summary["identity"]["done"], total(&summary, "min_transfer_bytes"));
            let moved = total(&summary, "bytes_read") + total(&summary, "bytes_written");
            assert_eq!(Some(moved), done.as_u64().map(|done| done * RECORD), "{summary}");
            assert!(least <= RECORDS * RECORD && moved >= RECORDS * RECORD + 2 * least, "{pass}: {summary}");
            assert_eq!(summary["ended_by"], "told");
            assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass} by {engine}");
        }
    }
}

#[test]
fn every_file_that_was_written_is_synced_in_the_time_whoever_stopped_its_process() {
    for engine in [json!({"engine": "sync"}), json!({"engine": "io_uring", "depth": 4})] {
        let mut laid = Laid::of_passes(3);
        for pass in ["write", "random_write"] {
            let mut more = engine.clone();
            over(&mut more, &json!({"pass": pass, "include_fsync": true}));
            let summary = laid.pass(more);
            assert_eq!(summary["by_kind"]["fsync"]["done"], 3, "{pass} by {engine}: {summary}");
            assert_eq!(summary["facts"]["closings"], json!(["fsync"]));
            let done = summary["by_kind"][pass]["done"].as_u64().unwrap();
            assert_eq!(done * RECORD, total(&summary, "bytes_written"), "a sync moves nothing");
            assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass} by {engine}");
        }
    }
}

#[test]
fn passes_by_mapping_leave_and_find_what_those_by_calls_do() {
    let mut laid = Laid::of_passes(2);
    for pass in ["write", "rewrite", "read", "random_write", "random_read", "mixed", "backward_read", "stride_read"] {
        for engine in ["mmap", "sync"] {
            let more = json!({"pass": pass, "engine": engine, "stop": "all", "include_fsync": true,
                "include_close": true, "advice": "sequential"});
            let summary = laid.pass(more);
            let moved = total(&summary, "bytes_read") + total(&summary, "bytes_written");
            assert_eq!(moved, 2 * RECORDS * RECORD, "{pass} by {engine}: {summary}");
            let (calls, ends) =
                (total(&summary, "system_calls"), total(&summary, "bytes_written") / (RECORDS * RECORD) + 2);
            assert!(
                if engine == "mmap" { calls == ends } else { calls >= 2 * RECORDS + ends },
                "{pass} by {engine}: {calls}"
            );
            assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass} by {engine}");
        }
    }
    // The first that is through stops the other, and what is left is written.
    for pass in ["write", "random_write"] {
        laid.pass(json!({"pass": pass, "engine": "mmap"}));
        assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass}");
    }
    let mut damaged = laid.record(1, 9);
    damaged[700] ^= 1;
    laid.file(1).write_all_at(&damaged, 9 * RECORD).unwrap();
    let summary = laid.load(json!({"pass": "read", "engine": "mmap", "stop": "all"}));
    assert_eq!(summary.result()["verification"]["wrong"], 1, "{summary:?}");
}

#[test]
fn planted_records_are_found_each_time() {
    let mut laid = Laid::of_passes(2);
    laid.pass(json!({"pass": "write"}));
    let stale = laid.record(0, 7);
    laid.pass(json!({"pass": "rewrite", "stop": "all"}));
    let mut torn = laid.record(1, 9);
    torn[2_048..].copy_from_slice(&laid.record(1, 10)[2_048..]);
    laid.file(0).write_all_at(&stale, 7 * RECORD).unwrap();
    laid.file(1).write_all_at(&torn, 9 * RECORD).unwrap();
    // The last two records of the other file are gone, and half of the one before.
    laid.file(1).set_len((RECORDS - 2) * RECORD - RECORD / 2).unwrap();
    for (pass, engine) in [("read", "sync"), ("random_read", "sync"), ("backward_read", "io_uring"), ("pread", "sync")]
    {
        let summary = laid.load(json!({"pass": pass, "engine": engine, "stop": "all"}));
        assert_eq!(summary.code, Some(0), "{summary:?}");
        let summary = summary.result();
        assert_eq!(
            (&summary["identity"]["failed"], &summary["verification"]["wrong"]),
            (&json!(5), &json!(5)),
            "{pass}"
        );
        assert_eq!(summary["identity"]["planned"], 2 * RECORDS);
        assert!(errors(summary).iter().all(|(code, _)| *code == "XXVER"), "{summary}");
        let found = summary["verification"]["examples"].to_string();
        for what in
            ["file.0000, byte 28672: version 1, and 2", "byte 38912", "2048 bytes read of 4096", "0 bytes read of 4096"]
        {
            assert!(found.contains(what), "{pass}, {what}: {found}");
        }
    }
    let checked = laid.check();
    assert_eq!(failed_checks(&checked), ["files of their length", "records as the passes left them"], "{checked}");
    assert!(checked["checks"].to_string().contains("\"123; file.0000, byte 28672: version 1 and not 2\""), "{checked}");
}

#[test]
fn a_chunk_that_is_damaged_is_found_by_the_phases_that_read() {
    let mut laid = Laid::of_phases(40);
    laid.pass(json!({"phase": "write"}));
    let mut chunk = vec![0; 8_192];
    laid.file(0).read_exact_at(&mut chunk, 3 * 8_192).unwrap();
    laid.file(0).write_all_at(&chunk, 4 * 8_192).unwrap();
    for (phase, seekers) in [("getc", 1), ("read", 1), ("seeks", 2), ("rewrite", 1)] {
        let said = laid.load(json!({"phase": phase, "seeks": 400, "seekers": seekers}));
        let summary = said.result();
        let wrong = summary["verification"]["wrong"].as_u64().unwrap();
        assert!(if phase == "seeks" { wrong > 1 } else { wrong == 1 }, "{phase}: {summary}");
        assert_eq!(errors(summary), [("XXVER", wrong)], "{phase}");
    }
    // What rewrite found wrong it left as it was.
    let checked = laid.check();
    assert_eq!(failed_checks(&checked), ["records as the passes left them"], "{checked}");
    laid.pass(json!({"phase": "write"}));
    assert_eq!(failed_checks(&laid.check()), [""; 0]);
    laid.file(0).set_len(41 * 8_192).unwrap();
    let said = laid.load(json!({"phase": "read"}));
    assert_eq!(said.result()["verification"]["wrong"], 1, "it goes on behind its end: {said:?}");
}

#[test]
fn what_is_not_to_be_compared_is_told_to_be_not_verified() {
    let mut laid = Laid::of_phases(40);
    laid.pass(json!({"phase": "write"}));
    let mut chunk = vec![0; 8_192];
    laid.file(0).read_exact_at(&mut chunk, 3 * 8_192).unwrap();
    laid.file(0).write_all_at(&chunk, 4 * 8_192).unwrap();
    for phase in ["getc", "read", "seeks"] {
        let summary = laid.pass(json!({"phase": phase, "seeks": 400, "seekers": 2, "verify": false}));
        assert_eq!(summary["verification"], json!({"checked": 0, "wrong": 0, "examples": []}), "{phase}");
        assert_eq!(summary["facts"]["verified"], false, "{phase}");
        let found = laid.load(json!({"phase": phase, "seeks": 400, "seekers": 2, "verify": true}));
        let found = found.result();
        assert!(found["verification"]["wrong"].as_u64() > Some(0), "{phase}: {found}");
        assert_eq!(found["facts"]["verified"], true, "{phase}");
    }
    // At the end every record is looked at, whatever the phases did.
    assert_eq!(failed_checks(&laid.check()), ["records as the passes left them"]);
    // What is written is the same: the phase that comes after finds it.
    for phase in ["rewrite", "seeks"] {
        laid.pass(json!({"phase": phase, "seeks": 400, "seekers": 2, "verify": false}));
        assert_eq!(failed_checks(&laid.check()), [""; 0], "{phase}");
    }
    let read = laid.pass(json!({"phase": "read"}));
    assert_eq!(read["verification"], json!({"checked": 40, "wrong": 0, "examples": []}));
    // How much there is costs nothing to see.
    laid.file(0).set_len(39 * 8_192).unwrap();
    let short = laid.load(json!({"phase": "read", "verify": false}));
    assert_eq!(short.result()["verification"]["wrong"], 1, "{short:?}");

    for engine in [json!({"engine": "sync"}), json!({"engine": "io_uring", "depth": 4}), json!({"engine": "mmap"})] {
        let mut laid = Laid::of_passes(2);
        laid.pass(json!({"pass": "write"}));
        let mut damaged = laid.record(1, 9);
        damaged[700] ^= 1;
        laid.file(1).write_all_at(&damaged, 9 * RECORD).unwrap();
        for (verify, wrong) in [(false, 0), (true, 1)] {
            let mut more = engine.clone();
            over(&mut more, &json!({"pass": "read", "stop": "all", "verify": verify}));
            let said = laid.load(more);
            let (summary, compared) = (said.result(), if verify { 2 * RECORDS } else { 0 });
            assert_eq!(summary["verification"]["wrong"], wrong, "{engine}: {summary}");
            assert_eq!(summary["verification"]["checked"], compared, "{engine}: {summary}");
            assert_eq!(summary["facts"]["verified"], verify, "{engine}");
        }
    }
}

#[test]
fn a_pass_that_was_killed_is_told_of_and_the_files_are_made_anew() {
    let mut laid = Laid::of_passes(1);
    laid.pass(json!({"pass": "write"}));
    let mut request = laid.load_request(json!({"pass": "rewrite"}));
    request["schedule"] = json!({"kind": "constant", "rate": 16});
    let mut killed = Agent::start("load", &request);
    assert_eq!(killed.line()["event"], "progress");
    let pid = rustix::process::Pid::from_raw(killed.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(killed.end().code, None);

    let said = agent("load", &{
        let mut request = request.clone();
        over(&mut request["workload"], &json!({"pass": "read"}));
        request
    });
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.errors.contains("the pass rewrite has left") && said.errors.contains("pass write"), "{said:?}");
    laid.segments.remove(1);
    assert!(failed_checks(&laid.check()).contains(&"passes of which is known what they left"));
    laid.pass(json!({"pass": "write"}));
    laid.pass(json!({"pass": "read"}));
    assert_eq!(failed_checks(&laid.check()), [""; 0]);
}

#[test]
fn a_pass_that_is_stopped_in_the_middle_is_known_as_far_as_it_came() {
    let mut laid = Laid::of_passes(1);
    laid.pass(json!({"pass": "write"}));
    for pass in ["random_write", "rewrite"] {
        let mut request = laid.load_request(json!({"pass": pass}));
        request["stop"] = json!({"transactions": 23});
        let summary = must("load", &request);
        assert_eq!((&summary["identity"]["done"], &summary["ended_by"]), (&json!(23), &json!("transactions")));
        assert_eq!(failed_checks(&laid.check()), [""; 0], "after {pass}");
    }
    assert_eq!(laid.pass(json!({"pass": "random_read"}))["verification"]["checked"], RECORDS);
    let mut request = laid.load_request(json!({"pass": "write"}));
    request["stop"] = json!({"transactions": 23});
    must("load", &request);
    assert_eq!(failed_checks(&laid.check()), [""; 0]);
    let said = laid.load(json!({"pass": "read"}));
    assert!(said.code == Some(3) && said.errors.contains("file.0000 is not complete"), "{said:?}");
}

#[test]
fn an_open_loop_passes_over_the_files_once_and_skips_what_is_left_of_its_plan() {
    let mut laid = Laid::of_passes(2);
    laid.pass(json!({"pass": "write"}));
    let mut request = laid.load_request(json!({"pass": "read", "stop": "all"}));
    over(&mut request, &json!({"schedule": {"kind": "constant", "rate": 1_000}, "stop": {"seconds": 1}}));
    let summary = must("load", &request);
    let of = |name: &str| summary["identity"][name].as_u64().unwrap();
    assert_eq!((of("done"), of("failed"), of("lost")), (2 * RECORDS, 0, 0), "{summary}");
    assert_eq!(of("planned"), of("done") + of("skipped"));
}

#[test]
fn what_the_kernel_refuses_ends_the_pass_by_its_name() {
    let Some(full) = Mounted::tmpfs("size=1m") else { return };
    let mut laid = Laid::of_passes(2);
    laid.workload["file_bytes"] = json!(1 << 20);
    let mut laid = Laid { folder: full.folder(), ..Laid::new(laid.workload.take()) };
    must("populate", &laid.request(json!({})));
    for engine in [json!({"engine": "sync"}), json!({"engine": "io_uring", "depth": 2})] {
        let mut more = engine.clone();
        over(&mut more, &json!({"stop": "all"}));
        let said = laid.load(more);
        let summary = said.result();
        assert!(errors(summary).iter().all(|(code, _)| *code == "ENOSPC"), "{engine}: {said:?} {summary}");
        let failed = summary["identity"]["failed"].as_u64().unwrap();
        assert!((1..=4).contains(&failed), "it does not go on: {summary}");
        let message = summary["errors"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("file.000") && message.contains("write: No space left"), "{message}");
        let said = laid.load(json!({"pass": "read"}));
        assert!(said.code == Some(3) && said.errors.contains("the pass write has left"), "{said:?}");
    }
    full.remount("ro");
    let said = laid.load(json!({}));
    assert!(said.code == Some(3) && said.errors.contains("Read-only file system"), "{said:?}");
}

/// A file system of its own, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, with the reason on standard error, where nothing can be mounted.
    fn tmpfs(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap().keep();
        let mounted = Self(folder);
        if mounted.mount(&["-t", "tmpfs", "-o", options, "tmpfs"]) {
            return Some(mounted);
        }
        eprintln!("skipped: a file system of a test's own cannot be mounted here (that takes root)");
        None
    }

    fn mount(&self, how: &[&str]) -> bool {
        Command::new("mount").args(how).arg(&self.0).status().is_ok_and(|status| status.success())
    }

    fn remount(&self, how: &str) {
        assert!(self.mount(&["-o", &format!("remount,{how}")]));
    }

    fn folder(&self) -> TempDir {
        tempfile::tempdir_in(&self.0).unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The system calls on the workload's file, of each thread that made any: name, and what stands in parentheses behind the
/// descriptor.
fn traced(request: &Value) -> Option<Vec<Vec<String>>> {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("calls");
    let calls = "trace=lseek,read,write,pread64,pwrite64,preadv,pwritev,preadv2,pwritev2,fsync,close,ftruncate";
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-y", "-s", "0", "-qq", "-e", calls, "-o"]).arg(&prefix);
    strace.arg(env!("CARGO_BIN_EXE_plimsoll-agent"));
    let Some(traced) = Agent::start_by(strace, "load", request) else {
        eprintln!("skipped: there is no strace here (setup/packages-test.txt)");
        return None;
    };
    let said = traced.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let threads = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    // Whoever does nothing but close it has opened it before the segment, to see that it can be.
    let is_of_load = |calls: &Vec<String>| calls.iter().any(|call| !call.starts_with("close"));
    Some(threads.map(|path| calls_on_file(&path)).filter(is_of_load).collect())
}

/// Each as "lseek -8192 SEEK_CUR = 0", without file and contents.
fn calls_on_file(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let call = |line: &str| {
        let (name, rest) = line.split_once('(')?;
        let (file, rest) = rest.split_once('>')?;
        let (arguments, result) = rest.rsplit_once(") ")?;
        let arguments = arguments.replace("\"\"..., ", "").replace("\"\", ", "").replace(',', "");
        let result = result.trim_start_matches(['=', ' ']);
        file.ends_with("file.0000").then(|| format!("{name}{arguments} = {result}"))
    };
    text.lines().filter_map(call).collect()
}

#[test]
fn rewrite_makes_the_original_s_calls() {
    let mut laid = Laid::of_phases(5);
    laid.pass(json!({"phase": "write"}));
    let Some(threads) = traced(&laid.load_request(json!({"phase": "rewrite"}))) else { return };
    let mut expected = Vec::new();
    for chunk in 0..5 {
        expected.push("read 8192 = 8192".to_owned());
        expected.push(format!("lseek -8192 SEEK_CUR = {}", chunk * 8_192));
        expected.push("write 8192 = 8192".to_owned());
    }
    expected.extend(["read 8192 = 0".to_owned(), "close = 0".to_owned()]);
    assert_eq!(threads, [expected]);
}

#[test]
fn seeks_make_the_original_s_calls() {
    let mut laid = Laid::of_phases(50);
    laid.pass(json!({"phase": "write"}));
    let Some(threads) = traced(&laid.load_request(json!({"phase": "seeks", "seeks": 401}))) else { return };
    let (mut reads, mut writes, mut places) = (0, 0, std::collections::BTreeSet::new());
    for calls in &threads {
        let mut calls = calls.iter().filter(|call| !call.starts_with("close")).peekable();
        while let Some(seek) = calls.next() {
            let (to, at) = seek.strip_prefix("lseek ").unwrap().split_once(" SEEK_SET = ").unwrap();
            let offset: u64 = to.parse().unwrap();
            assert!(to == at && offset.is_multiple_of(8_192) && offset < 50 * 8_192, "{seek}");
            places.insert(offset);
            assert_eq!(calls.next().unwrap(), "read 8192 = 8192");
            reads += 1;
            // The same place once more: only then it is written back.
            if calls.peek() == Some(&seek) {
                let mut ahead = calls.clone();
                ahead.next();
                if ahead.peek().is_some_and(|call| call.starts_with("write")) {
                    calls.next();
                    assert_eq!(calls.next().unwrap(), "write 8192 = 8192");
                    writes += 1;
                }
            }
        }
    }
    assert_eq!((reads, writes), (401, 41), "every tenth, from the first on");
    assert!(threads.len() <= 3 && places.len() > 45, "{} of 50 places by {}", places.len(), threads.len());
}

#[test]
fn wrong_requests_name_the_field() {
    let laid = Laid::of_passes(2);
    let refused = |more: Value, clients: u32| {
        let mut request = laid.request(more);
        over(&mut request, &json!({"clients": clients, "out": laid.out.path()}));
        let said = agent("load", &request);
        assert_eq!(said.code, Some(2), "{said:?}");
        said.errors
    };
    assert!(refused(json!({"record_bytes": 1_000}), 2).contains("workload.record_bytes"));
    assert!(refused(json!({"pass": "mmap"}), 2).contains("workload.pass"));
    assert!(refused(json!({"engine": "io_uring", "depth": 4}), 2).contains("clients: 2 is not 8"));
    let early = laid.request(json!({"pass": "read"}));
    let said = agent("load", &{
        let mut early = early;
        over(&mut early, &json!({"clients": 2, "out": laid.out.path()}));
        early
    });
    assert!(
        said.code == Some(3) && said.errors.contains("there are no files yet: begin with the pass write"),
        "{said:?}"
    );
}
