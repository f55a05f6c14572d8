//! Golden records, read by this language too: the same folders that the Python tests analyse.
//!
//! The fact that constrains it: the record is the waist between the two languages, so what one writes the other must
//! read, in every version.

use plimsoll_record::{Summary, Table};
use std::path::{Path, PathBuf};

fn folders(place: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// The measured segments of every golden record.
fn segments() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let trials = folders(&golden).flat_map(|run| folders(&run.join("trials")));
    trials.map(|trial| trial.join("measure")).filter(|path| path.is_dir()).collect()
}

#[test]
fn summaries_hold_and_agree_with_the_tables() {
    let segments = segments();
    assert!(!segments.is_empty(), "there is no golden record");
    for segment in segments {
        let text = std::fs::read(segment.join("summary.json")).unwrap();
        let summary: Summary = serde_json::from_slice(&text).unwrap();
        assert!(summary.identity.holds(), "{}", segment.display());
        let table = Table::read(&segment.join("transactions.npy")).unwrap();
        assert_eq!(table.len() as u64, summary.identity.planned, "{}", segment.display());
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
fn series_are_in_the_order_of_their_clock() {
    for segment in segments() {
        for name in ["host", "group", "server"] {
            let Ok(table) = Table::read(&segment.join(format!("{name}.npy"))) else { continue };
            let times = table.column("t_ns").unwrap();
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{}: {name}", segment.display());
        }
    }
}
