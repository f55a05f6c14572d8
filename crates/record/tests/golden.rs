//! Golden records, read by this language too: the same folders that the Python tests analyse, some of them written by agents
//! that knew less; and `segment`, which `examples/golden.rs` wrote.
//!
//! The fact that constrains it: the record is the waist between the two languages, so what one writes the other must
//! read, in every version.

use plimsoll_record::{Identity, KIND_NOT_DRAWN, Rows, Summary, Table};
use std::path::{Path, PathBuf};

fn folders(place: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// The measured segments of every golden record.
fn segments() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut segments = runs(&here.join("../../tests/golden"));
    assert!(!segments.is_empty(), "there is no golden record");
    segments.push(here.join("tests/segment"));
    segments
}

fn runs(golden: &Path) -> Vec<PathBuf> {
    let trials = folders(golden).flat_map(|run| folders(&run.join("trials")));
    trials.map(|trial| trial.join("measure")).filter(|path| path.is_dir()).collect()
}

fn summary_of(segment: &Path) -> Summary {
    let text = std::fs::read_to_string(segment.join("summary.json")).expect("every segment has a summary");
    serde_json::from_str(&text).expect("a summary")
}

#[test]
fn summaries_hold_and_agree_with_the_tables() {
    for segment in segments() {
        let summary = summary_of(&segment);
        assert!(summary.identity.holds(), "{}", segment.display());
        let table = Table::read(&segment.join("transactions.npy")).unwrap();
        assert_eq!(table.len() as u64, summary.rows.map_or(summary.identity.planned, |rows| rows.recorded));
        if summary.rows.is_some_and(|rows| rows.sample_one_in > 1) {
            continue;
        }
        let outcomes = table.column("outcome").unwrap();
        let counted = |outcome: i128| outcomes.iter().filter(|&&found| found == outcome).count() as u64;
        let identity = summary.identity;
        assert_eq!(
            [counted(0), counted(1), counted(2), counted(3)],
            [identity.done, identity.failed, identity.skipped, identity.lost]
        );
        let (planned, ended) = (table.column("planned_ns").unwrap(), table.column("end_ns").unwrap());
        assert!(planned.iter().zip(&ended).all(|(planned, ended)| planned <= ended), "{}", segment.display());
    }
}

#[test]
fn what_later_agents_added_is_read() {
    let segment = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/segment");
    let summary = summary_of(&segment);
    assert_eq!(summary.rows, Some(Rows { recorded: 20, all_below_index: 20, sample_one_in: 1 }));
    assert_eq!((summary.planned_rate, summary.retries, summary.describe), (Some(1_000.0), Some(4), Some(false)));
    assert_eq!(summary.schedule.unwrap()["kind"], "constant");
    let table = |name: &str| Table::read(&segment.join(name)).unwrap();
    let sum = |name: &str, column: &str| table(name).column(column).unwrap().iter().sum::<i128>();
    assert_eq!(sum("transactions.npy", "retries"), 4);
    assert_eq!(sum("latency_seconds.npy", "count"), 17, "the done ones");
    assert_eq!(sum("lag_seconds.npy", "count"), 19, "those that were started");
    let kinds = table("transactions.npy").column("kind").unwrap();
    assert_eq!(kinds.iter().filter(|&&kind| kind == i128::from(KIND_NOT_DRAWN)).count(), 1);
}

#[test]
fn series_are_in_the_order_of_their_clock() {
    for segment in segments() {
        for name in ["host", "group", "server"] {
            let Ok(table) = Table::read(&segment.join(format!("{name}.npy"))) else { continue };
            let times = table.column("t_ns").unwrap();
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{}: {name}", segment.display());
        }
    }
}

#[test]
fn a_summary_with_unknown_fields_is_read() {
    let identity: Identity =
        serde_json::from_str(r#"{"planned": 3, "done": 2, "failed": 0, "skipped": 1, "lost": 0, "dreamt": 4}"#)
            .unwrap();
    assert!(identity.holds());
    assert!(serde_json::from_str::<Summary>("{}").unwrap_err().to_string().contains("format"));
}
