//! A folder with what a workload of passes or phases has laid out in it, and its loads.

use crate::support::{Said, agent, must};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const RECORD: u64 = 4_096;
pub(crate) const RECORDS: u64 = 64;

/// A folder with what a workload has laid out in it, and the summaries of its segments.
pub(crate) struct Laid {
    pub(crate) folder: TempDir,
    pub(crate) out: TempDir,
    pub(crate) workload: Value,
    /// Of segments that have a summary.
    pub(crate) segments: Vec<PathBuf>,
    pub(crate) loads: u32,
}

impl Laid {
    pub(crate) fn new(workload: Value) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), workload)
    }

    pub(crate) fn in_folder(folder: TempDir, workload: Value) -> Self {
        let laid = Self { folder, out: tempfile::tempdir().unwrap(), workload, segments: Vec::new(), loads: 0 };
        must("populate", &laid.request(json!({})));
        laid
    }

    /// IOzone's passes over `processes` files.
    pub(crate) fn of_passes(processes: u32) -> Self {
        Self::new(json!({"name": "sequential_io", "seed": 5, "pass": "write", "processes": processes,
            "file_bytes": RECORDS * RECORD, "record_bytes": RECORD}))
    }

    /// Bonnie's phases over a file of so many chunks.
    pub(crate) fn of_phases(chunks: u64) -> Self {
        Self::new(json!({"name": "raw_storage", "seed": 5, "phase": "putc",
            "file_bytes": chunks * 8_192, "chunk_bytes": 8_192}))
    }

    pub(crate) fn request(&self, more: Value) -> Value {
        let target = json!({"kind": "files", "folder": self.folder.path()});
        let mut request = json!({"target": target, "workload": self.workload});
        over(&mut request["workload"], &more);
        request
    }

    /// The request of a load, with a folder of its own for what it records.
    pub(crate) fn load_request(&mut self, more: Value) -> Value {
        let mut request = self.request(more);
        let workload = &request["workload"];
        let number = |key: &str, otherwise: u64| workload[key].as_u64().unwrap_or(otherwise);
        let sessions = if workload["phase"] == "seeks" { number("seekers", 3) } else { 1 };
        let clients = number("processes", sessions) * number("depth", 1);
        let out = self.out.path().join(self.loads.to_string());
        self.loads += 1;
        std::fs::create_dir(&out).unwrap();
        self.segments.push(out.join("summary.json"));
        over(&mut request, &json!({"clients": clients, "out": out}));
        request
    }

    pub(crate) fn load(&mut self, more: Value) -> Said {
        agent("load", &self.load_request(more))
    }

    /// A segment in which everything is done; gives its summary.
    pub(crate) fn pass(&mut self, more: Value) -> Value {
        let said = self.load(more.clone());
        assert_eq!(said.code, Some(0), "{more}: {said:?}");
        let identity = &said.result()["identity"];
        assert_eq!(identity["planned"], identity["done"], "{more}: {}", said.result());
        said.result().clone()
    }

    pub(crate) fn check(&self) -> Value {
        let mut request = self.request(json!({}));
        request["segments"] = json!(self.segments);
        must("check", &request)
    }

    pub(crate) fn file(&self, number: u32) -> File {
        let path = self.folder.path().join(format!("data/file.{number:04}"));
        OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    pub(crate) fn record(&self, file: u32, record: u64) -> Vec<u8> {
        let mut bytes = vec![0; RECORD as usize];
        self.file(file).read_exact_at(&mut bytes, record * RECORD).unwrap();
        bytes
    }
}

pub(crate) fn over(into: &mut Value, more: &Value) {
    more.as_object().unwrap().iter().for_each(|(key, value)| into[key] = value.clone());
}

pub(crate) fn total(summary: &Value, name: &str) -> u64 {
    summary["totals"][name].as_u64().unwrap()
}
