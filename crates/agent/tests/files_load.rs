//! The workload `files` from layout to check: every byte accounted for, and every planted fault found.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Agent, Said, agent, failed_checks, must};

/// A folder with files, and where segments leave their records.
struct Site {
    folder: PathBuf,
    _temporary: tempfile::TempDir,
    out: tempfile::TempDir,
    segments: Vec<PathBuf>,
    workload: Value,
}

impl Site {
    /// `more`: of the workload, beside its name and seed.
    fn new(more: Value) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut site = Self::at(temporary, more);
        site.populate();
        site
    }

    /// One that is not laid out yet.
    fn at(temporary: tempfile::TempDir, more: Value) -> Self {
        let mut workload = json!({"name": "files", "seed": 5});
        more.as_object().unwrap().iter().for_each(|(key, value)| workload[key] = value.clone());
        let folder = temporary.path().join("tree");
        std::fs::create_dir(&folder).unwrap();
        let (out, segments) = (tempfile::tempdir().unwrap(), Vec::new());
        Self { folder, _temporary: temporary, out, segments, workload }
    }

    fn populate(&mut self) -> Value {
        must("populate", &self.request(json!({})))
    }

    fn request(&self, more: Value) -> Value {
        let target = json!({"kind": "files", "folder": self.folder});
        let mut request = json!({"target": target, "workload": self.workload});
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        request
    }

    /// The request of the next segment.
    fn next(&mut self, more: Value) -> Value {
        let out = self.out.path().join(self.segments.len().to_string());
        std::fs::create_dir(&out).unwrap();
        self.segments.push(out.clone());
        let mut request = self.request(json!({"clients": 2, "out": out}));
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        request
    }

    fn load(&mut self, more: Value) -> Value {
        let request = self.next(more);
        must("load", &request)
    }

    fn check_request(&self) -> Value {
        let summaries: Vec<PathBuf> = self.segments.iter().map(|out| out.join("summary.json")).collect();
        self.request(json!({"segments": summaries}))
    }

    fn check(&self) -> Value {
        must("check", &self.check_request())
    }

    /// A file as it was laid out.
    fn file(&self, place: u32) -> PathBuf {
        self.folder.join(format!("data/d000000/f{place:09}.0"))
    }

    fn column(&self, name: &str) -> Vec<i128> {
        Table::read(&self.segments.last().unwrap().join("transactions.npy")).unwrap().column(name).unwrap()
    }
}

fn all_operations() -> Value {
    json!([
        {"operation": "read", "weight": 30, "bytes": 4096},
        {"operation": "read", "weight": 10, "bytes": 16384},
        {"operation": "write", "weight": 20, "bytes": 4096},
        {"operation": "write", "weight": 5, "bytes": 8192, "sync": "fdatasync"},
        {"operation": "write", "weight": 2, "bytes": 4096, "sync": "o_dsync"},
        {"operation": "append", "weight": 10, "bytes": [1, 5000]},
        {"operation": "append", "weight": 1, "bytes": 512, "sync": "fsync"},
        {"operation": "fsync", "weight": 1},
        {"operation": "create", "weight": 6, "bytes": 32768},
        {"operation": "unlink", "weight": 5},
        {"operation": "rename", "weight": 6},
        {"operation": "stat", "weight": 10},
        {"operation": "readdir", "weight": 2}
    ])
}

fn one_block(operation: &str, engine: &str) -> Value {
    let mix = json!([{"operation": operation, "weight": 1, "bytes": 4096}]);
    json!({"count": 1, "file_bytes": 4096, "engine": engine, "mix": mix})
}

fn total(summary: &Value, name: &str) -> i64 {
    summary["totals"][name].as_i64().unwrap()
}

#[test]
fn every_operation_and_every_byte_is_accounted_for_over_segments() {
    let mix = all_operations();
    let mut site = Site::new(json!({"count": 40, "file_bytes": [16384, 65536], "fanout": 10, "mix": mix}));
    assert_eq!(failed_checks(&site.check()), [""; 0], "as laid out");
    let mut first_index = 0;
    for clients in [1, 4] {
        let more = json!({"clients": clients, "first_index": first_index, "stop": {"transactions": 6_000}});
        let summary = site.load(more);
        first_index = summary["next_index"].as_u64().unwrap();
        let identity = &summary["identity"];
        assert_eq!((&identity["planned"], &identity["failed"]), (&json!(6_000), &json!(0)), "{summary}");
        assert!(identity["done"].as_u64().unwrap() > 5_900, "{summary}");
        assert_eq!(summary["verification"]["wrong"], 0);
        assert!(summary["verification"]["checked"].as_u64().unwrap() > 2_000);
        let moved: i128 = site.column("bytes").iter().sum();
        assert_eq!(moved, i128::from(total(&summary, "bytes_read") + total(&summary, "bytes_written")));
        assert_eq!(summary["requests_sent"].as_i64().unwrap(), total(&summary, "system_calls"));
        let of_rows: i128 = site.column("requests").iter().sum();
        assert!(of_rows <= i128::from(total(&summary, "system_calls")), "files are opened beside");
        for kind in ["read", "read 16384", "create", "unlink", "rename", "readdir", "append", "fsync", "stat"] {
            assert!(summary["by_kind"][kind]["done"].as_u64().unwrap() > 0, "{kind}: {summary}");
        }
        let checked = site.check();
        assert_eq!(failed_checks(&checked), [""; 0], "{checked}");
    }
    let names: Vec<String> =
        site.check()["checks"].as_array().unwrap().iter().map(|one| one["name"].to_string()).collect();
    assert_eq!(names, ["\"names\"", "\"lengths\"", "\"blocks\"", "\"bytes\""]);
    assert_eq!(must("drop", &site.request(json!({})))["existed"], true);
    assert_eq!(std::fs::read_dir(&site.folder).unwrap().count(), 0);
}

#[test]
fn an_io_uring_moves_the_same_bytes() {
    let mix = json!([
        {"operation": "read", "weight": 4, "bytes": 4096},
        {"operation": "write", "weight": 4, "bytes": 8192, "sync": "fdatasync"},
        {"operation": "write", "weight": 4, "bytes": 4096},
        {"operation": "append", "weight": 2, "bytes": [1, 3000]},
        {"operation": "fsync", "weight": 1}
    ]);
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for engine in ["sync", "io_uring"] {
        let more = json!({"count": 4, "file_bytes": 65536, "engine": engine, "keys": {"zipf": 0.9}, "mix": mix});
        let mut site = Site::new(more);
        let summary = site.load(json!({"clients": 16, "stop": {"transactions": 5_000}}));
        assert_eq!(summary["identity"]["done"], 5_000, "{summary}");
        assert_eq!(summary["verification"]["wrong"], 0, "{summary}");
        written.push(total(&summary, "bytes_written"));
        read.push(total(&summary, "bytes_read"));
        let checked = site.check();
        assert_eq!(failed_checks(&checked), [""; 0], "{engine}: {checked}");
    }
    assert!(written[0] == written[1] && read[0] == read[1], "what operation i moves is a function of seed and i");
}

#[test]
fn past_the_page_cache_reads_and_writes_are_the_same() {
    let mix = json!([
        {"operation": "read", "weight": 1, "bytes": 4096},
        {"operation": "write", "weight": 1, "bytes": 4096},
        {"operation": "append", "weight": 1, "bytes": [4096, 16384]}
    ]);
    for engine in ["sync", "io_uring"] {
        let more = json!({"count": 4, "file_bytes": 65536, "engine": engine, "direct": true, "mix": mix});
        let mut site = Site::new(more);
        let summary = site.load(json!({"clients": 4, "stop": {"transactions": 600}}));
        assert_eq!(summary["identity"]["done"], 600, "{summary}");
        assert_eq!(failed_checks(&site.check()), [""; 0]);
    }
}

/// Reads the one block of a site; each read has to find that it is wrong.
fn finds(site: &mut Site, words: &str) {
    let summary = site.load(json!({"stop": {"transactions": 7}}));
    assert_eq!((&summary["identity"]["failed"], &summary["verification"]["wrong"]), (&json!(7), &json!(7)));
    assert_eq!((&summary["errors"][0]["sqlstate"], &summary["errors"][0]["count"]), (&json!("XXVER"), &json!(7)));
    let example = summary["verification"]["examples"][0]["message"].as_str().unwrap();
    assert!(example.starts_with("d000000/f000000000.0: ") && example.contains(words), "{example}");
    assert!(failed_checks(&site.check()).contains(&"blocks"), "{}", site.check());
}

#[test]
fn a_torn_block_is_found_each_time() {
    for engine in ["sync", "io_uring"] {
        let mut site = Site::new(one_block("read", engine));
        let file = File::options().write(true).open(site.file(0)).unwrap();
        file.write_all_at(&[0; 512], 1024).unwrap();
        finds(&mut site, "torn at byte 1024");
    }
}

#[test]
fn a_stale_block_is_found_each_time() {
    for engine in ["sync", "io_uring"] {
        let mut site = Site::new(one_block("write", engine));
        let old = std::fs::read(site.file(0)).unwrap();
        site.load(json!({"clients": 1, "stop": {"transactions": 3}}));
        assert_eq!(failed_checks(&site.check()), [""; 0]);
        File::options().write(true).open(site.file(0)).unwrap().write_all_at(&old, 0).unwrap();
        site.workload = Site::at(tempfile::tempdir().unwrap(), one_block("read", engine)).workload;
        finds(&mut site, "byte 0: stale: version 1, where 4 to 4 were written");
    }
}

#[test]
fn a_block_of_another_file_and_a_short_read_are_found_each_time() {
    let mut site = Site::new(one_block("read", "sync"));
    let other =
        Site::new(json!({"seed": 6, "count": 1, "file_bytes": 4096, "mix": [{"operation": "stat", "weight": 1}]}));
    std::fs::write(site.file(0), std::fs::read(other.file(0)).unwrap()).unwrap();
    finds(&mut site, "byte 0 holds nothing that was written there");
    for engine in ["sync", "io_uring"] {
        let mut site = Site::new(one_block("read", engine));
        File::options().write(true).open(site.file(0)).unwrap().set_len(1_000).unwrap();
        finds(&mut site, "short read: 1000 of 4096 bytes");
        assert_eq!(failed_checks(&site.check()), ["lengths", "blocks"]);
    }
}

#[test]
fn files_that_are_missing_or_not_ours_are_found() {
    let mix = json!([{"operation": "append", "weight": 1, "bytes": 100}]);
    let mut site = Site::new(json!({"count": 3, "file_bytes": 4096, "mix": mix}));
    site.load(json!({"stop": {"transactions": 300}}));
    std::fs::write(site.folder.join("data/d000000/thesis"), "mine").unwrap();
    assert_eq!(failed_checks(&site.check()), ["names"]);
    std::fs::remove_file(site.folder.join("data/d000000/thesis")).unwrap();
    File::options().write(true).open(site.file(1)).unwrap().write_all_at(b"x", 5_000).unwrap();
    assert_eq!(failed_checks(&site.check()), ["blocks"], "a byte that was appended");
    std::fs::remove_file(site.file(1)).unwrap();
    assert_eq!(failed_checks(&site.check()), ["names", "lengths", "blocks"]);
    let said = site.load(json!({"stop": {"transactions": 30}}));
    assert_eq!(said["errors"][0]["sqlstate"], "ENOENT");
    assert!(said["errors"][0]["message"].as_str().unwrap().starts_with("open d000000/f000000001.0: "), "{said}");
    assert!(said["identity"]["done"].as_u64().unwrap() > 0, "the session lives on");
}

#[test]
fn an_open_loop_keeps_its_plan() {
    let mix = json!([
        {"operation": "read", "weight": 3, "bytes": 4096}, {"operation": "append", "weight": 1, "bytes": 512}
    ]);
    for engine in ["sync", "io_uring"] {
        let mut site = Site::new(json!({"count": 8, "file_bytes": 65536, "engine": engine, "mix": mix}));
        let schedule = json!({"kind": "poisson", "rate": 1_000, "seed": 4});
        let summary = site.load(json!({"clients": 4, "schedule": schedule, "stop": {"seconds": 1.5}}));
        let schedule: plimsoll_schedule::Schedule = serde_json::from_value(schedule).unwrap();
        let planned = schedule.open(0).unwrap().planned_within(1_500_000_000);
        assert_eq!((&summary["identity"]["planned"], &summary["identity"]["done"]), (&json!(planned), &json!(planned)));
        assert_eq!(failed_checks(&site.check()), [""; 0]);
    }
}

#[test]
fn what_is_stopped_in_the_middle_is_whole() {
    for engine in ["sync", "io_uring"] {
        let mix = json!([
            {"operation": "write", "weight": 1, "bytes": 4096}, {"operation": "append", "weight": 1, "bytes": [1, 999]}
        ]);
        let mut site = Site::new(json!({"count": 8, "file_bytes": 65536, "engine": engine, "mix": mix}));
        let request = site.next(json!({"clients": 4, "schedule": {"kind": "constant", "rate": 2_000}}));
        let mut running = Agent::start("load", &request);
        assert_eq!(running.line()["event"], "progress");
        running.tell("stop");
        let said = running.end();
        assert_eq!((said.code, &said.result()["ended_by"]), (Some(0), &json!("told")), "{said:?}");
        assert_eq!(failed_checks(&site.check()), [""; 0]);
    }
}

#[test]
fn windows_open_and_close_on_files() {
    let mut site = Site::new(one_block("read", "sync"));
    let mut running = Agent::start("load", &site.next(json!({"windows": true})));
    assert_eq!(running.line()["event"], "ready");
    for round in 1..=2 {
        running.tell(&format!("window {{\"ms\": 50, \"round\": {round}, \"position\": 1}}"));
        assert_eq!(running.line()["round"], round);
    }
    running.tell("stop");
    let said = running.end();
    assert_eq!(said.result()["windows"]["count"], 2, "{said:?}");
    assert_eq!(failed_checks(&site.check()), [""; 0]);
}

#[test]
fn after_a_kill_the_next_segment_says_so() {
    let mut site = Site::new(one_block("write", "sync"));
    let mut running = Agent::start("load", &site.next(json!({})));
    assert_eq!(running.line()["event"], "progress");
    let pid = rustix::process::Pid::from_raw(running.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(running.end().code, None);
    site.segments.pop();
    std::fs::remove_dir_all(site.out.path().join("0")).unwrap();
    for said in [agent("load", &site.next(json!({}))), agent("check", &site.request(json!({"segments": []})))] {
        assert_eq!(said.code, Some(3), "{said:?}");
        assert!(said.errors.contains("ended before its state was saved"), "{said:?}");
    }
    must("drop", &site.request(json!({})));
    site.populate();
    assert_eq!(must("check", &site.request(json!({"segments": []})))["checks"][0]["ok"], true);
}

#[test]
fn wrong_requests_start_nothing() {
    let site = Site::at(tempfile::tempdir().unwrap(), one_block("read", "sync"));
    let said = agent("load", &site.request(json!({"clients": 1, "out": site.out.path()})));
    assert_eq!((said.code, said.errors.contains("target.folder: ")), (Some(2), true), "not laid out: {said:?}");
    let mut request = site.request(json!({}));
    request["workload"]["mix"][0]["bytes"] = json!(1);
    let said = agent("describe", &json!({"workload": request["workload"]}));
    assert_eq!((said.code, said.errors.contains("workload.mix[0].bytes: 1 is not")), (Some(2), true), "{said:?}");
    std::fs::write(site.folder.join("thesis"), "mine").unwrap();
    let said = agent("populate", &site.request(json!({})));
    assert_eq!((said.code, said.errors.contains("it holds thesis")), (Some(2), true), "{said:?}");
    assert_eq!(std::fs::read_dir(&site.folder).unwrap().count(), 1);
}

/// A mount namespace of its own, with a file system on `folder` that nobody else sees; gone with its first process.
struct Apart(Child);

impl Apart {
    /// `None`, with the reason, where mounts are not allowed.
    fn new(mount: &[&str], folder: &Path) -> Option<Self> {
        let script = "mount \"$@\" && echo mounted && exec sleep 600";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).args(mount).arg(folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut said = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut said).unwrap();
        let apart = Self(child);
        if said.trim() != "mounted" {
            eprintln!("skipped: no file system may be mounted here (needs root)");
            return None;
        }
        Some(apart)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.0.id().to_string(), program]).args(arguments);
        command
    }

    fn agent(&self, verb: &str, request: &Value) -> Said {
        let mut command = self.run(env!("CARGO_BIN_EXE_plimsoll-agent"), &[verb]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Open until it has ended: a load ends when its input does.
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{request}").unwrap();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Said { code: output.status.code(), lines, errors: String::from_utf8_lossy(&output.stderr).into_owned() }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_full_disk_and_a_read_only_one_fail_operations_and_nothing_else() {
    let mix = json!([
        {"operation": "append", "weight": 4, "bytes": [1, 20000]},
        {"operation": "create", "weight": 2, "bytes": 65536},
        {"operation": "write", "weight": 1, "bytes": 4096},
        {"operation": "read", "weight": 1, "bytes": 4096}
    ]);
    let mut site = Site::at(tempfile::tempdir().unwrap(), json!({"count": 8, "file_bytes": 65536, "mix": mix}));
    let Some(apart) = Apart::new(&["-t", "tmpfs", "-o", "size=3m", "none"], &site.folder) else { return };
    let must = |verb: &str, request: &Value| {
        let said = apart.agent(verb, request);
        assert_eq!(said.code, Some(0), "{verb}: {said:?}");
        said.result().clone()
    };
    must("populate", &site.request(json!({})));
    let request = site.next(json!({"clients": 4, "stop": {"transactions": 2_000}}));
    let summary = must("load", &request);
    let errors = summary["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["sqlstate"]), (1, &json!("ENOSPC")), "{summary}");
    assert!(errors[0]["message"].as_str().unwrap().contains("d000000/f"), "{summary}");
    let identity = &summary["identity"];
    assert_eq!(identity["planned"], 2_000);
    assert!(identity["failed"].as_u64().unwrap() > 100 && identity["done"].as_u64().unwrap() > 300, "{identity}");
    assert_eq!(summary["verification"]["wrong"], 0, "{summary}");
    let checked = must("check", &site.check_request());
    assert_eq!(failed_checks(&checked), [""; 0], "{checked}");

    // What is loaded becomes read-only, what is kept from segment to segment does not.
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    let mut command = apart.run("sh", &["-c", script, "sh"]);
    assert!(command.arg(site.folder.join("data")).status().unwrap().success());
    let request = site.next(json!({"clients": 2, "first_index": 2_000, "stop": {"transactions": 800}}));
    let summary = must("load", &request);
    assert_eq!(summary["errors"].as_array().unwrap().len(), 1, "{summary}");
    assert_eq!((&summary["errors"][0]["sqlstate"], &summary["identity"]["planned"]), (&json!("EROFS"), &json!(800)));
    assert_eq!(summary["by_kind"]["read"]["failed"], 0, "files can be read all the same: {summary}");
    assert!(summary["by_kind"]["read"]["done"].as_u64().unwrap() > 50, "{summary}");
    let checked = must("check", &site.check_request());
    assert_eq!(failed_checks(&checked), [""; 0], "{checked}");
}
