//! Bytes of the four workloads on files, counted four times: as the load says, as the kernel performs the calls (strace), as the
//! files have grown, and as the check reads them. And blocks of raw_storage's that are torn, stale or short.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Agent, agent, failed_checks, must};
use tempfile::TempDir;

/// A folder that a workload has laid out its files in.
struct Laid {
    place: TempDir,
    workload: Value,
    segments: Vec<PathBuf>,
}

impl Laid {
    fn new(workload: Value) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("tree")).unwrap();
        let laid = Self { place, workload, segments: Vec::new() };
        must("populate", &laid.request());
        laid
    }

    fn request(&self) -> Value {
        let target = json!({"kind": "files", "folder": self.place.path().join("tree")});
        json!({"target": target, "workload": self.workload})
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("tree/data")
    }

    /// The request of a segment: `of_workload` and `of_load` are laid over it.
    fn load_request(&mut self, of_workload: &Value, of_load: &Value) -> Value {
        let out = self.place.path().join(format!("out{}", self.segments.len()));
        std::fs::create_dir(&out).unwrap();
        self.segments.push(out.join("summary.json"));
        let mut request = self.request();
        over(&mut request["workload"], of_workload);
        over(&mut request, &json!({"clients": 1, "out": out}));
        over(&mut request, of_load);
        request
    }

    fn load(&mut self, of_workload: Value, of_load: Value) -> Value {
        let said = agent("load", &self.load_request(&of_workload, &of_load));
        assert_eq!(said.code, Some(0), "{said:?}");
        said.result().clone()
    }

    fn failed_checks(&self) -> Vec<String> {
        let mut request = self.request();
        request["segments"] = json!(self.segments);
        failed_checks(&must("check", &request)).into_iter().map(str::to_owned).collect()
    }

    /// Bytes of all files that are loaded.
    fn bytes_in_files(&self) -> u64 {
        bytes_below(&self.data())
    }
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            found if found.is_dir() => bytes_below(&entry.path()),
            found => found.len(),
        })
        .sum()
}

fn over(into: &mut Value, more: &Value) {
    more.as_object().unwrap().iter().for_each(|(key, value)| into[key] = value.clone());
}

/// Bytes that calls on files below `data` have read and written, as strace saw them returned, and the load's summary.
fn traced(request: &Value, data: &Path) -> Option<(u64, u64, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let calls = "trace=read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,pwritev2";
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-y", "-s", "0", "-qq", "-e", calls, "-o"]).arg(folder.path().join("calls"));
    strace.arg(env!("CARGO_BIN_EXE_plimsoll-agent"));
    let Some(traced) = Agent::start_by(strace, "load", request) else {
        eprintln!("skipped: there is no strace here (setup/packages-test.txt)");
        return None;
    };
    let said = traced.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let (mut read, mut written) = (0, 0);
    let below = format!("<{}/", data.display());
    for thread in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(thread.unwrap().path()).unwrap();
        for call in text.lines().filter(|call| call.contains(&below)) {
            let (name, returned) = (call.split('(').next().unwrap(), call.rsplit("= ").next().unwrap());
            let bytes: u64 = returned.trim().parse().unwrap_or_else(|_| panic!("{call}"));
            *(if name.contains("read") { &mut read } else { &mut written }) += bytes;
        }
    }
    Some((read, written, said.result().clone()))
}

/// Performs a segment, in which all is done, and compares the counts; gives the bytes written.
fn counted(laid: &mut Laid, of_workload: Value, of_load: Value) -> Option<u64> {
    let request = laid.load_request(&of_workload, &of_load);
    let (read, written, summary) = traced(&request, &laid.data())?;
    let of = |name: &str| summary["totals"][name].as_u64().unwrap();
    assert_eq!((of("bytes_read"), of("bytes_written")), (read, written), "{of_workload}: {summary}");
    assert_eq!(summary["identity"]["failed"], 0, "{summary}");
    assert_eq!(laid.failed_checks(), [""; 0], "after {of_workload}");
    Some(written)
}

#[test]
fn what_raw_storage_has_written_is_in_its_file() {
    let bytes = 30 * 8_192;
    let phase = json!({"name": "raw_storage", "seed": 5, "phase": "putc", "file_bytes": bytes, "chunk_bytes": 8_192});
    let mut laid = Laid::new(phase);
    // Rewrite and the seeks write where something is already.
    for (phase, expected) in [("putc", bytes), ("rewrite", bytes), ("write", bytes), ("seeks", 10 * 8_192)] {
        let clients = if phase == "seeks" { 3 } else { 1 };
        let more = json!({"phase": phase, "seeks": 100});
        let Some(written) = counted(&mut laid, more, json!({"clients": clients})) else { return };
        assert_eq!((written, laid.bytes_in_files()), (expected, bytes), "{phase}");
    }
}

#[test]
fn what_sequential_io_has_written_is_in_its_files() {
    let bytes = 64 * 4_096;
    let mut laid = Laid::new(json!({"name": "sequential_io", "seed": 5, "pass": "write", "processes": 2,
        "file_bytes": bytes, "record_bytes": 4_096, "stop": "all"}));
    for pass in ["write", "rewrite", "random_write", "pwrite", "read"] {
        let Some(written) = counted(&mut laid, json!({"pass": pass}), json!({"clients": 2})) else { return };
        let expected = if pass == "read" { 0 } else { 2 * bytes };
        assert_eq!((written, laid.bytes_in_files()), (expected, 2 * bytes), "{pass}");
    }
}

#[test]
fn what_file_serving_has_written_is_in_its_files() {
    let script = "Mkdir \"\\clients\" NT_STATUS_OK\nNTCreateX \"\\clients\\client1\" 0x1 0x2 1 NT_STATUS_OK\n\
        Close 1 NT_STATUS_OK\nNTCreateX \"\\clients\\client1\\a\" 0x40 0x2 2 NT_STATUS_OK\n\
        WriteX 2 0 65536 65536 NT_STATUS_OK\nWriteX 2 65536 1000 1000 NT_STATUS_OK\n\
        ReadX 2 100 61440 61440 NT_STATUS_OK\nClose 2 NT_STATUS_OK\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("client.txt");
    std::fs::write(&file, script).unwrap();
    let of = json!({"name": "file_serving", "seed": 3, "script": {"loadfile": file}, "passes": 1});
    let mut laid = Laid::new(of);
    let Some(written) = counted(&mut laid, json!({}), json!({"clients": 3, "stop": {"seconds": 30}})) else { return };
    assert_eq!((written, laid.bytes_in_files()), (3 * 66_536, 3 * 66_536));
}

#[test]
fn what_files_has_written_is_in_its_files() {
    let mix = json!([{"operation": "append", "weight": 3, "bytes": [1, 5_000]}, {"operation": "create", "weight": 1, "bytes": 8_192},
        {"operation": "append", "weight": 1, "bytes": 100, "sync": "fdatasync"}, {"operation": "read", "weight": 2, "bytes": 4_096}]);
    let laid_out = 10 * 16_384;
    let of = |engine: &str, mix: &Value| json!({"name": "files", "seed": 5, "count": 10, "file_bytes": 16_384, "engine": engine, "mix": mix});
    let mut laid = Laid::new(of("sync", &mix));
    assert_eq!(laid.bytes_in_files(), laid_out);
    let load = json!({"clients": 2, "stop": {"transactions": 600}});
    let Some(written) = counted(&mut laid, json!({}), load.clone()) else { return };
    assert_eq!(laid.bytes_in_files(), laid_out + written, "nothing is written over, and nothing is removed");
    // What an io_uring writes strace does not see.
    let mix = json!([{"operation": "append", "weight": 1, "bytes": [1, 5_000]}]);
    let mut laid = Laid::new(of("io_uring", &mix));
    let summary = laid.load(json!({}), load);
    let written = summary["totals"]["bytes_written"].as_u64().unwrap();
    assert_eq!(laid.bytes_in_files(), laid_out + written, "{summary}");
    assert_eq!(laid.failed_checks(), [""; 0]);
}

#[test]
fn chunks_that_are_torn_stale_or_short_are_found_by_every_phase_that_reads() {
    const CHUNK: u64 = 8_192;
    let of =
        json!({"name": "raw_storage", "seed": 5, "phase": "write", "file_bytes": 40 * CHUNK, "chunk_bytes": CHUNK});
    let mut laid = Laid::new(of);
    laid.load(json!({}), json!({}));
    let file = File::options().read(true).write(true).open(laid.data().join("file.0000")).unwrap();
    let mut stale = vec![0; CHUNK as usize];
    file.read_exact_at(&mut stale, 7 * CHUNK).unwrap();
    for _ in 0..2 {
        laid.load(json!({"phase": "rewrite"}), json!({}));
    }
    assert_eq!(laid.failed_checks(), [""; 0]);
    // Half a chunk of two versions ago, a whole one of then, and the end cut off in the middle of a chunk.
    file.write_all_at(&stale, 7 * CHUNK).unwrap();
    let mut torn = vec![0; CHUNK as usize / 2];
    file.read_exact_at(&mut torn, 20 * CHUNK + CHUNK / 2).unwrap();
    file.write_all_at(&torn, 9 * CHUNK + CHUNK / 2).unwrap();
    file.set_len(39 * CHUNK + 100).unwrap();
    for phase in ["read", "getc"] {
        let summary = laid.load(json!({"phase": phase}), json!({}));
        assert_eq!(summary["verification"]["wrong"], 3, "{phase}: {summary}");
        assert_eq!(summary["identity"]["failed"], 3, "{phase}: {summary}");
        let found = summary["verification"]["examples"].to_string();
        for what in ["byte 57344: version 1, and", "byte 77824", "of 8192"] {
            assert!(found.contains(what), "{phase}, {what}: {found}");
        }
    }
    let failed = laid.failed_checks();
    assert_eq!(failed, ["files of their length", "records as the passes left them"]);
}
