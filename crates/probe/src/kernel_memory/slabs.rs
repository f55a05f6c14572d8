//! The kernel's caches of objects: /proc/slabinfo, a row for each cache that holds more than a little.
//!
//! The fact that constrains it: what a cache holds is told for the whole machine, and the file is root's alone. A cache that was
//! once written is written for good, so that a series of it has no holes.

use super::Seldom;
use crate::text::Rereadable;
use crate::{Probe, ProbeError};
use plimsoll_record::{ProbeReport, ProbeStatus, SlabsReport};
use std::path::Path;
use std::time::{Duration, Instant};

const COLUMNS: [&str; 4] = ["slab", "active_objects", "objects", "bytes"];
/// A cache that has never held so much is in no row.
const BYTES_MIN: i64 = 256 * 1024;

/// Watches the caches.
#[derive(Debug)]
pub struct Slabs {
    file: Rereadable,
    page_bytes: i64,
    names: Vec<String>,
    seldom: Seldom,
}

/// A cache's name, active objects, objects, and bytes.
fn cache(line: &str, page_bytes: i64) -> Option<(&str, [i64; 3])> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    let numbers: Vec<i64> = words.by_ref().take(5).map_while(|word| word.parse().ok()).collect();
    let [active, objects, _, _, pages_of_slab] = numbers[..] else { return None };
    // After the word itself and the slabs in use.
    let mut after = words.skip_while(|word| *word != "slabdata").skip(2);
    let slabs: i64 = after.next()?.parse().ok()?;
    Some((name, [active, objects, slabs * pages_of_slab * page_bytes]))
}

impl Slabs {
    /// Opens `proc`/slabinfo; rows at once, and each `every`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(proc: &Path, every: Duration) -> Result<Self, ProbeError> {
        let file = Rereadable::open(&proc.join("slabinfo"))?;
        let page_bytes = rustix::param::page_size() as i64;
        Ok(Self { file, page_bytes, names: Vec::new(), seldom: Seldom::new(every) })
    }
}

impl Probe for Slabs {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        if !self.seldom.is_due(Instant::now()) {
            return;
        }
        let text = self.file.read().unwrap_or_default();
        for (name, [active, objects, bytes]) in text.lines().filter_map(|line| cache(line, self.page_bytes)) {
            let place = self.names.iter().position(|known| known == name);
            let place = match place {
                Some(place) => place,
                None if bytes >= BYTES_MIN => {
                    self.names.push(name.to_owned());
                    self.names.len() - 1
                }
                None => continue,
            };
            row(&[place as i64, active, objects, bytes]);
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        let status = ProbeStatus::on("/proc/slabinfo");
        Some(ProbeReport::new(SlabsReport { status, slabs: self.names.clone(), bytes_min: BYTES_MIN as u64 }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const HEAD: &str =
        "slabinfo - version: 2.1\n# name  <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n";

    fn line(name: &str, active: i64, objects: i64, slabs: i64) -> String {
        let data = format!(": tunables 0 0 0 : slabdata {slabs} {slabs} 0");
        format!("{name} {active} {objects} 192 21 2 {data}\n")
    }

    fn sampled(slabs: &mut Slabs) -> Vec<Vec<i64>> {
        let mut rows = Vec::new();
        slabs.sample(&mut |row| rows.push(row.to_vec()));
        rows
    }

    #[test]
    fn caches_are_told_with_what_they_take_and_small_ones_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("slabinfo"), format!("{HEAD}{text}")).unwrap();
        write(&(line("dentry", 2000, 2100, 100) + &line("tiny", 1, 21, 1)));
        let mut slabs = Slabs::open(folder.path(), Duration::ZERO).unwrap();
        let page = rustix::param::page_size() as i64;
        assert_eq!(sampled(&mut slabs), [[0, 2000, 2100, 200 * page]]);
        // One that grew is told from now on, and one that shrank still is.
        write(&(line("tiny", 9000, 9100, 400) + &line("dentry", 20, 21, 1)));
        assert_eq!(sampled(&mut slabs), [[1, 9000, 9100, 800 * page], [0, 20, 21, 2 * page]]);
        let report = serde_json::to_value(slabs.report().unwrap()).unwrap();
        assert_eq!(report["slabs"], serde_json::json!(["dentry", "tiny"]));
    }

    #[test]
    fn this_kernels_caches_add_up_to_what_meminfo_says() {
        let Ok(mut slabs) = Slabs::open(Path::new("/proc"), Duration::ZERO) else { return }; // root's alone
        let rows = sampled(&mut slabs);
        let told: i64 = rows.iter().map(|row| row[3]).sum();
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
        let all = crate::text::keyed(&memory, "Slab").unwrap() * 1024;
        assert!(told * 10 > all * 7 && told * 10 < all * 13, "{told} of {all}");
    }

    #[test]
    #[ignore = "prints what a sample costs"]
    fn cost() {
        let mut slabs = Slabs::open(Path::new("/proc"), Duration::ZERO).unwrap();
        let start = Instant::now();
        (0..1000).for_each(|_| slabs.sample(&mut |_| {}));
        println!("a sample of the slab caches takes {:?}", start.elapsed() / 1000);
    }
}
