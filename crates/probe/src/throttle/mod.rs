//! How long tasks were made to pause because they dirtied pages faster than the device takes them.

use crate::bpf::{Counter, Programs, Wanted, file_system_of, offset, with_tracefs};
use crate::{Probe, Refusal};
use plimsoll_record::{FileSystem, ProbeReport};
use std::fs;
use std::path::Path;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/throttle.bpf.o"));
const COLUMNS: [&str; 2] = ["pauses", "paused_ns"];
const NAME_BYTES: usize = 32;
const EVENT: (&str, &str) = ("writeback", "balance_dirty_pages");

/// The probe.
pub struct Throttle(Counter);

/// The name of the backing device, which for a partition is its disk's.
fn backing_device(file_system: &FileSystem) -> Result<String, Refusal> {
    let block = Path::new("/sys/dev/block").join(&file_system.device);
    if let Ok(own) = fs::canonicalize(&block) {
        for folder in own.ancestors().take(2) {
            let name = fs::read_link(folder.join("bdi")).ok();
            if let Some(name) = name.as_deref().and_then(Path::file_name) {
                return Ok(name.to_string_lossy().into_owned());
            }
        }
    }
    // File systems without a block device of their own register one under their own number or name.
    let own = Path::new("/sys/class/bdi").join(&file_system.device);
    match own.exists() {
        true => Ok(file_system.device.clone()),
        false => Err(Refusal::from(format!(
            "the backing device of {} {} is not known",
            file_system.kind, file_system.device
        ))),
    }
}

fn settings(events: &Path, name: &str) -> Result<Vec<u8>, Refusal> {
    let path = events.join(EVENT.0).join(EVENT.1).join("format");
    let failed = |error: &dyn std::fmt::Display| Refusal::from(format!("{}: {error}", path.display()));
    let format = fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    for field in ["bdi", "pause"] {
        let at = offset(&format, field).ok_or_else(|| failed(&format!("no field {field}")))?;
        bytes.extend(at.to_ne_bytes());
    }
    bytes.extend(name.bytes().take(NAME_BYTES - 1));
    bytes.resize(2 * 4 + NAME_BYTES, 0);
    Ok(bytes)
}

impl Throttle {
    /// Watches the backing device of the file system of `path`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had.
    pub fn start(path: &Path) -> Result<Self, Refusal> {
        let file_system = file_system_of(path)?.file_system;
        let name = backing_device(&file_system.shown)?;
        let wanted = [Wanted { function: "on_throttle", tracepoint: Some(EVENT) }];
        let programs = with_tracefs(|events| Programs::start(OBJECT, &settings(events, &name)?, &wanted, |_| Ok(())))?;
        Ok(Self(Counter::new(programs, "tracepoint", name, vec![file_system.shown], &COLUMNS)?))
    }
}

impl Probe for Throttle {
    fn columns(&self) -> Vec<&'static str> {
        self.0.columns()
    }

    fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.0.sample(row);
    }

    fn report(&mut self) -> Option<ProbeReport> {
        Some(self.0.report())
    }
}
