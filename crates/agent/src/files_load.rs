//! A toy load of files, through target, sampler, engine and summary: what there is of them for a target without a server.

#![allow(clippy::unwrap_used)]

use crate::request::Sample;
use crate::sampler::Sampler;
use crate::segment::Carried;
use crate::summary::{Asked, summary, verdict};
use crate::target::Target;
use plimsoll_load::{Config, Control, CpuNs, Tables, run_blocking};
use plimsoll_record::Outcome;
use plimsoll_schedule::Schedule;
use plimsoll_session::{Begun, BlockingSession, Ending, SessionReport};
use plimsoll_target::postgres::Mode;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const TRANSACTIONS: u64 = 101;

/// Writes its index to where it belongs, and has it reach the device.
struct Writes {
    file: File,
    index: u64,
    requests: u64,
}

impl BlockingSession for Writes {
    fn begin(&mut self, index: u64) -> Begun {
        self.index = index;
        Begun { kind: 0, skipped: false }
    }

    fn perform(&mut self) -> Ending {
        self.requests += 1;
        let number = self.index.to_le_bytes();
        let written = self.file.write_all_at(&number, 8 * self.index).and_then(|()| self.file.sync_data());
        let outcome = if written.is_ok() { Outcome::Done } else { Outcome::Failed };
        Ending { requests: 1, bytes: number.len() as u64, ..Ending::of_nothing(outcome, true) }
    }

    fn close(self: Box<Self>) -> SessionReport {
        SessionReport { requests: self.requests, ..SessionReport::default() }
    }
}

fn sessions(file: &Path, count: usize) -> Vec<Box<dyn BlockingSession>> {
    let open = || File::options().write(true).open(file).unwrap();
    (0..count).map(|_| Box::new(Writes { file: open(), index: 0, requests: 0 }) as Box<dyn BlockingSession>).collect()
}

fn config() -> Config {
    Config {
        first_index: 0,
        transactions: Some(TRANSACTIONS),
        duration_ns: None,
        schedule: Schedule::default(),
        kinds: 1,
        patience_ns: 10_000_000_000,
        reconnect: false,
        rows_max: u64::MAX,
        sample_one_in: 1,
        pin_threads: false,
        own_descriptors: false,
        dealt: Vec::new(),
    }
}

#[test]
fn files_are_loaded_without_a_server_its_series_or_its_commits() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("numbers");
    std::fs::write(&file, []).unwrap();
    let target: Target = serde_json::from_value(json!({"kind": "files", "folder": folder.path()})).unwrap();
    let sample = Sample::default();
    let sampler = Sampler::beside_load(out.path(), &target, &sample, None).unwrap();

    let running = sampler.start().unwrap();
    let (control, tables) = (Control::new(3), Tables::of_rows(out.path()).unwrap());
    let outcomes = run_blocking(sessions(&file, 3), None, &config(), &control, tables).unwrap();
    let carried =
        Carried { outcomes, cpu: CpuNs::default(), sampled: running.finish().unwrap().0, windows: None, cause: None };

    let asked = Asked {
        name: "toy",
        kinds: vec!["write".to_owned()],
        first_index: 0,
        schedule: None,
        mode: Mode::Simple,
        describe: false,
        threads: 3,
        devices: &[],
        commits_beside: target.commits_beside(Mode::Simple, 3),
        facts: BTreeMap::new(),
    };
    let summary = summary(asked, &carried);
    verdict(&summary, carried.outcomes.ended, carried.cause).unwrap();
    assert_eq!((summary.identity.planned, summary.identity.done), (TRANSACTIONS, TRANSACTIONS));
    assert_eq!((summary.server_commits_beside, summary.requests_sent), (None, Some(TRANSACTIONS)));
    let written: Vec<u8> = (0..TRANSACTIONS).flat_map(u64::to_le_bytes).collect();
    assert_eq!(std::fs::read(&file).unwrap(), written);
    let has = |table: &str| out.path().join(table).exists();
    assert!(has("host.npy") && has("transactions.npy") && !has("server.npy"));
}
