//! Writes a small record segment with known contents: `cargo run -p plimsoll-record --example golden -- DIR`.
//!
//! Every number follows from the loop below, so that a reader in another language can be checked against arithmetic. It is an
//! open loop at 1,000 a second; transaction 7 fails, 11 is lost, 13 is too late to be begun, and every fifth is tried twice.

use hdrhistogram::Histogram;
use plimsoll_record::{
    ABSENT_SAMPLE, ByKind, ErrorEntry, FORMAT, Health, Identity, LagNs, Outcome, Rows, SecondsWriter, SeriesWriter,
    Summary, Transaction, TransactionWriter, Verification, write_latency,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const START_NS: i64 = 1_000_000_000;

fn transactions() -> Vec<Transaction> {
    let row = |index: u64| {
        let planned_ns = START_NS + 1_000_000 * index as i64;
        let outcome = match index {
            7 => Outcome::Failed,
            11 => Outcome::Lost,
            13 => Outcome::Skipped,
            _ => Outcome::Done,
        };
        if outcome == Outcome::Skipped {
            return Transaction::unbegun(index, planned_ns, planned_ns + 2_000_000);
        }
        Transaction {
            index,
            planned_ns,
            start_ns: planned_ns + 1_000,
            end_ns: planned_ns + 500_000 + 1_000 * index as i64,
            bytes: 512 * index,
            connection: (index % 2) as u32,
            backend_pid: 4_000 + (index % 2) as u32,
            statements: if index.is_multiple_of(2) { 5 } else { 1 },
            requests: if index.is_multiple_of(2) { 7 } else { 1 },
            retries: u32::from(index.is_multiple_of(5)),
            error: u16::from(outcome == Outcome::Failed) + 2 * u16::from(outcome == Outcome::Lost),
            kind: (index % 2) as u8,
            outcome,
        }
    };
    (0..20).map(row).collect()
}

fn summary(rows: &[Transaction]) -> Summary {
    let count = |kind: u8, outcome| rows.iter().filter(|r| r.kind == kind && r.outcome == outcome).count() as u64;
    let by_kind = |kind: u8| ByKind {
        done: count(kind, Outcome::Done),
        failed: count(kind, Outcome::Failed),
        skipped: 0,
        lost: count(kind, Outcome::Lost),
        statements: rows.iter().filter(|r| r.kind == kind).map(|r| u64::from(r.statements)).sum(),
        retries: rows.iter().filter(|r| r.kind == kind).map(|r| u64::from(r.retries)).sum(),
    };
    let error = |sqlstate: &str, message: &str| ErrorEntry {
        sqlstate: sqlstate.to_owned(),
        message: message.to_owned(),
        count: 1,
    };
    Summary {
        format: FORMAT,
        workload: "wpi_orders".to_owned(),
        kinds: vec!["new_order".to_owned(), "payment".to_owned()],
        first_index: 0,
        next_index: 20,
        indexes_left_out: 0,
        started_ns: START_NS,
        ended_ns: START_NS + 19_519_000,
        epoch_minus_monotonic_ns: 1_700_000_000_000_000_000,
        ended_by: "transactions".to_owned(),
        identity: Identity { planned: 20, done: 17, failed: 1, skipped: 1, lost: 1 },
        by_kind: BTreeMap::from([("new_order".to_owned(), by_kind(0)), ("payment".to_owned(), by_kind(1))]),
        errors: vec![error("40001", "could not serialize access"), error("08006", "the connection broke")],
        health: Health {
            cpu_user_ns: 1_000_000,
            cpu_system_ns: 2_000_000,
            load_cpu_user_ns: Some(700_000),
            load_cpu_system_ns: Some(1_500_000),
            threads: 1,
            lag_ns: LagNs { p50: 1_000, p99: 1_000, max: 1_000 },
            samples: 3,
            cpus_allowed: vec![0, 1],
            ..Health::default()
        },
        verification: Verification { checked: 10, wrong: 0, examples: Vec::new() },
        totals: BTreeMap::from([("new_order_done".to_owned(), 10), ("payment_done".to_owned(), 7)]),
        backend_pids: vec![4_000, 4_001],
        server_commits_beside: Some(6),
        devices: vec!["vda".to_owned()],
        rows: Some(Rows { recorded: 20, all_below_index: 20, sample_one_in: 1 }),
        windows: None,
        schedule: Some(serde_json::json!({"kind": "constant", "rate": 1_000.0, "seed": 1, "late_limit_ms": 1.5})),
        planned_rate: Some(1_000.0),
        mode: Some("prepared".to_owned()),
        describe: Some(false),
        retries: Some(rows.iter().map(|r| u64::from(r.retries)).sum()),
        reconnects: Some(0),
        requests_sent: None,
        facts: BTreeMap::new(),
        probes: BTreeMap::new(),
    }
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let rows = transactions();
    let mut table = TransactionWriter::create(&folder.join("transactions.npy"))?;
    table.append(&rows)?;
    table.close()?;
    let mut latency = [(); 2].map(|()| Histogram::<u64>::new(3).expect("three digits are allowed"));
    for row in rows.iter().filter(|r| r.outcome == Outcome::Done) {
        latency[usize::from(row.kind)] += (row.end_ns - row.planned_ns) as u64;
    }
    write_latency(&folder.join("latency.npy"), &latency)?;
    let mut latency_seconds = SecondsWriter::latency(&folder.join("latency_seconds.npy"))?;
    for (kind, histogram) in (0..).zip(&latency) {
        latency_seconds.second(0, kind, histogram)?;
    }
    latency_seconds.close()?;
    let mut lag = Histogram::<u64>::new(2).expect("two digits are allowed");
    for row in rows.iter().filter(|r| r.outcome != Outcome::Skipped) {
        lag += (row.start_ns - row.planned_ns) as u64;
    }
    let mut lag_seconds = SecondsWriter::lag(&folder.join("lag_seconds.npy"))?;
    lag_seconds.second(0, 0, &lag)?;
    lag_seconds.close()?;
    let mut host = SeriesWriter::create(&folder.join("host.npy"), &["ctxt", "pswpin"])?;
    let mut device = SeriesWriter::create(&folder.join("device.npy"), &["device", "reads"])?;
    for second in 0..3 {
        let t_ns = START_NS + 1_000_000_000 * second;
        host.sample(t_ns, &[100 * second, if second == 1 { ABSENT_SAMPLE } else { 7 }])?;
        device.sample(t_ns, &[0, 10 * second])?;
    }
    host.close()?;
    device.close()?;
    let json = serde_json::to_vec_pretty(&summary(&rows))?;
    std::fs::write(folder.join("summary.json"), json)
}

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: golden DIR"))?;
    write(Path::new(&folder))
}
