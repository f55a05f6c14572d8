//! The kernel's log: every record of a segment is read from /dev/kmsg, and those that are no good news are kept, with their time.
//!
//! The fact that constrains it: the log is a ring that the kernel overwrites, and a reader who comes late is told once that it did.
//! Records are numbered, so what was overwritten is counted from the gap and never guessed. Where it begins is a number, too: with
//! the last number of an earlier segment, what was written between the two is read as well.
//!
//! A record that may still go on (the kernel has not ended its line) is told with the next one, so that of the last of a segment may
//! be the next segment's.
//!
//! Cost: a system call a record, and one a sample. Nothing is written to the log.

mod class;
mod record;

use crate::{Probe, Refusal};
use class::{CLASSES, class_of};
use plimsoll_record::{KernelEvent, KernelLogReport, ProbeReport, ProbeStatus};
use record::parsed;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const LOG: &str = "/dev/kmsg";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The kernel refuses a reader whose buffer is smaller than a record can be (CONSOLE_EXT_LOG_MAX, 8192).
const RECORD_BYTES: usize = 16 * 1024;
/// Kept of a segment: an error that repeats is counted to its end.
const EVENTS_MAX: usize = 1000;
/// Read in one sample: a log that grows as fast as it is read keeps nobody here.
const READS_MAX: usize = 50_000;
const COLUMNS: [&str; 15] = [
    "records",
    "lost",
    "panic",
    "oops",
    "lockup",
    "hung_task",
    "rcu_stall",
    "bug",
    "warning",
    "oom",
    "allocation",
    "io",
    "file_system",
    "machine_check",
    "thermal",
];

/// What one read gives.
#[derive(Debug)]
enum Read1 {
    Record(String),
    /// The record that would have been next is gone.
    Overwritten,
    End,
    Failed,
}

/// Where records come from.
trait Source: Send {
    fn next(&mut self) -> Read1;
}

struct Device {
    file: File,
    buffer: Vec<u8>,
}

impl Source for Device {
    fn next(&mut self) -> Read1 {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(0) => return Read1::End,
                Ok(bytes) => return Read1::Record(String::from_utf8_lossy(&self.buffer[..bytes]).into_owned()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Read1::End,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Read1::Overwritten,
                Err(_) => return Read1::Failed,
            }
        }
    }
}

/// The probe.
pub struct KernelLog {
    source: Box<dyn Source>,
    boot_id: String,
    /// Up to here it was there before.
    before: Option<u64>,
    last: Option<u64>,
    records: u64,
    counts: [u64; CLASSES.len()],
    events: Vec<KernelEvent>,
    overwritten: u64,
    unreadable: u64,
    not_kept: u64,
}

impl KernelLog {
    /// Reads what is written from now on, or after the record `after` of this boot.
    ///
    /// # Errors
    /// The reason why the log cannot be read.
    pub fn start(after: Option<u64>) -> Result<Self, Refusal> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(LOG);
        let file = opened.map_err(|error| {
            Refusal::with_remedy(
                format!("{LOG}: {error}"),
                "run as root, or with CAP_SYSLOG; without, set the sysctl kernel.dmesg_restrict to 0",
            )
        })?;
        let boot_id = std::fs::read_to_string(Path::new(BOOT)).unwrap_or_default().trim().to_owned();
        Ok(Self::of(Box::new(Device { file, buffer: vec![0; RECORD_BYTES] }), boot_id, after))
    }

    fn of(source: Box<dyn Source>, boot_id: String, after: Option<u64>) -> Self {
        let mut log = Self {
            source,
            boot_id,
            before: after,
            last: after,
            records: 0,
            counts: [0; CLASSES.len()],
            events: Vec::new(),
            overwritten: 0,
            unreadable: 0,
            not_kept: 0,
        };
        if after.is_none() {
            log.pass_over();
        }
        log
    }

    /// Reads what is there, so that it is known what the last record of before is.
    fn pass_over(&mut self) {
        for _ in 0..READS_MAX {
            match self.source.next() {
                Read1::Record(raw) => self.last = parsed(&raw).map(|record| record.sequence).or(self.last),
                Read1::Overwritten => {}
                Read1::End | Read1::Failed => break,
            }
        }
        self.before = self.last;
    }

    fn read(&mut self) {
        for _ in 0..READS_MAX {
            match self.source.next() {
                Read1::Record(raw) => self.take(&raw),
                Read1::Overwritten => {} // the next number tells how many
                Read1::End => return,
                Read1::Failed => {
                    self.unreadable += 1;
                    return;
                }
            }
        }
    }

    fn take(&mut self, raw: &str) {
        let Some(record) = parsed(raw) else {
            self.unreadable += 1;
            return;
        };
        if self.last.is_some_and(|last| record.sequence <= last) {
            return; // before what was asked for
        }
        self.overwritten += self.last.map_or(0, |last| record.sequence - last - 1);
        self.last = Some(record.sequence);
        self.records += 1;
        let Some(class) = class_of(&record.text) else { return };
        if let Some(place) = CLASSES.iter().position(|known| *known == class) {
            self.counts[place] += 1;
        }
        if self.events.len() == EVENTS_MAX {
            self.not_kept += 1;
            return;
        }
        self.events.push(KernelEvent {
            class: class.name().to_owned(),
            t_ns: record.t_ns,
            sequence: record.sequence,
            level: record.level,
            by: if record.facility == 0 { "kernel" } else { "program" }.to_owned(),
            text: record.text,
        });
    }
}

impl Probe for KernelLog {
    fn columns(&self) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.read();
        let counts = [self.records, self.overwritten + self.unreadable].into_iter().chain(self.counts);
        row(&counts.map(|count| count as i64).collect::<Vec<_>>());
    }

    fn report(&mut self) -> Option<ProbeReport> {
        let occurred = CLASSES.iter().zip(self.counts).filter(|(_, count)| *count > 0);
        let lost = [("overwritten", self.overwritten), ("unreadable", self.unreadable), ("events", self.not_kept)];
        Some(ProbeReport::new(KernelLogReport {
            status: ProbeStatus::on("/dev/kmsg"),
            boot_id: self.boot_id.clone(),
            before: self.before,
            last: self.last,
            records: self.records,
            counts: occurred.map(|(class, count)| (class.name().to_owned(), count)).collect(),
            events: self.events.clone(),
            lost: BTreeMap::from(lost.map(|(why, count)| (why.to_owned(), count))),
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    type Written = Arc<Mutex<VecDeque<Read1>>>;

    struct Known(Written);

    impl Source for Known {
        fn next(&mut self) -> Read1 {
            self.0.lock().unwrap().pop_front().unwrap_or(Read1::End)
        }
    }

    fn record(sequence: u64, text: &str) -> Read1 {
        Read1::Record(format!("4,{sequence},{},-;{text}\n", sequence * 10))
    }

    fn log(before: Vec<Read1>, after: Option<u64>) -> (KernelLog, Written) {
        let written: Written = Arc::new(Mutex::new(before.into()));
        (KernelLog::of(Box::new(Known(Arc::clone(&written))), "boot".to_owned(), after), written)
    }

    fn row(log: &mut KernelLog) -> BTreeMap<&'static str, i64> {
        let mut found = Vec::new();
        log.sample(&mut |row| found = row.to_vec());
        COLUMNS.into_iter().zip(found).collect()
    }

    #[test]
    fn columns_are_the_classes() {
        assert_eq!(COLUMNS[2..].to_vec(), CLASSES.map(class::Class::name).to_vec());
    }

    #[test]
    fn what_was_there_before_is_not_of_the_segment() {
        let (mut log, written) = log(vec![record(7, "BUG: old"), record(8, "quiet")], None);
        written.lock().unwrap().push_back(record(9, "WARNING: CPU: 1 PID: 3 at fs/buffer.c:1 f+0x1/0x2"));
        let found = row(&mut log);
        assert_eq!((found["records"], found["warning"], found["bug"], found["lost"]), (1, 1, 0, 0));
        assert_eq!((log.before, log.last), (Some(8), Some(9)));
        let event = &log.events[0];
        let told = (event.class.as_str(), event.t_ns, event.sequence, event.by.as_str());
        assert_eq!(told, ("warning", 90_000, 9, "kernel"));
    }

    #[test]
    fn what_was_written_since_an_earlier_segment_is_read() {
        let there = vec![record(7, "BUG: told before"), record(8, "BUG: between the two"), record(9, "quiet")];
        let (mut log, _) = log(there, Some(7));
        let found = row(&mut log);
        assert_eq!((found["records"], found["bug"], found["lost"]), (2, 1, 0));
    }

    #[test]
    fn records_that_were_overwritten_are_counted_by_their_numbers() {
        let (mut log, written) = log(vec![record(7, "quiet")], None);
        let since = [record(8, "quiet"), Read1::Overwritten, record(20, "BUG: after a gap")];
        written.lock().unwrap().extend(since);
        assert_eq!(row(&mut log)["lost"], 11);
        written.lock().unwrap().push_back(Read1::Failed);
        assert_eq!(row(&mut log)["lost"], 12);
    }

    #[test]
    fn an_error_that_repeats_is_counted_to_its_end_and_kept_to_a_bound() {
        let (mut log, written) = log(Vec::new(), Some(0));
        written.lock().unwrap().extend((1..=1500).map(|number| record(number, "I/O error, dev vdb, sector 1")));
        assert_eq!(row(&mut log)["io"], 1500);
        let report = serde_json::to_value(log.report().unwrap()).unwrap();
        assert_eq!(report["events"].as_array().unwrap().len(), EVENTS_MAX);
        assert_eq!((&report["lost"]["events"], &report["counts"]["io"]), (&500.into(), &1500.into()));
    }

    #[test]
    fn this_machines_log_is_read_where_it_may_be() {
        match KernelLog::start(None) {
            Ok(mut log) => {
                assert!(log.before.is_some());
                assert_eq!(row(&mut log)["lost"], 0);
            }
            Err(refusal) => assert!(refusal.remedy.is_some(), "{refusal}"),
        }
    }
}
