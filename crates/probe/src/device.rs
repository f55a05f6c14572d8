//! Block devices: /proc/diskstats, raw, in the kernel's order.

use crate::text::Rereadable;
use crate::{Probe, ProbeError};
use plimsoll_record::ABSENT_SAMPLE;
use std::path::Path;

/// Newer kernels give more: 11 counters before 4.18, then 15 with discards, then 17 with flushes (5.5).
const COUNTERS: [&str; 17] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
    "in_flight",
    "io_ms",
    "weighted_io_ms",
    "discards",
    "discards_merged",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
];

/// Watches some devices.
#[derive(Debug)]
pub struct Devices {
    file: Rereadable,
    names: Vec<String>,
    counters: usize,
    row: Vec<i64>,
}

fn counters<'a>(text: &'a str, device: &str) -> Option<impl Iterator<Item = Option<i64>> + 'a> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().nth(2) == Some(device))?;
    Some(line.split_ascii_whitespace().skip(3).map(|word| word.parse().ok()))
}

impl Devices {
    /// Watches the devices called `names`, as `proc`/diskstats calls them.
    ///
    /// # Errors
    /// When diskstats cannot be read or does not know a name.
    pub fn open(proc: &Path, names: &[String]) -> Result<Self, ProbeError> {
        let mut file = Rereadable::open(&proc.join("diskstats"))?;
        let text = file.read().unwrap_or_default();
        let mut fewest = COUNTERS.len();
        for name in names {
            let unknown = || ProbeError::Unknown(format!("sample.devices: no device {name} in /proc/diskstats"));
            fewest = fewest.min(counters(text, name).ok_or_else(unknown)?.count());
        }
        Ok(Self { file, names: names.to_vec(), counters: fewest, row: Vec::new() })
    }
}

impl Probe for Devices {
    fn columns(&self) -> Vec<&'static str> {
        std::iter::once("device").chain(COUNTERS.into_iter().take(self.counters)).collect()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        let text = self.file.read().unwrap_or_default();
        for (place, name) in self.names.iter().enumerate() {
            self.row.clear();
            self.row.push(place as i64);
            if let Some(values) = counters(text, name) {
                self.row.extend(values.take(self.counters).map(|value| value.unwrap_or(ABSENT_SAMPLE)));
            }
            self.row.resize(1 + self.counters, ABSENT_SAMPLE);
            row(&self.row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 254 1 vda1 21 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn devices_are_told_apart_and_the_fewest_columns_win() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("diskstats"), KNOWN).unwrap();
        let sampled = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut devices = Devices::open(folder.path(), &names).unwrap();
            let mut rows = Vec::new();
            devices.sample(&mut |row| rows.push(row.to_vec()));
            (devices.columns(), rows)
        };
        let (columns, rows) = sampled(&["vda"]);
        assert_eq!((columns.len(), columns[17]), (18, "flush_ms"));
        assert_eq!(rows, [(0..=17).collect::<Vec<i64>>()]);
        let (columns, rows) = sampled(&["vda1", "vda"]);
        assert_eq!((columns.len(), rows[0][..2].to_vec(), rows[1][..3].to_vec()), (12, vec![0, 21], vec![1, 1, 2]));
        let error = Devices::open(folder.path(), &["sdz".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("sample.devices") && error.contains("sdz"));
    }
}
