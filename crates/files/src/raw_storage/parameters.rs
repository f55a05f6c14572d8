//! What a phase is asked to be, and what of it is refused, each by the name of its field.

use crate::passes::{Closing, Shape};
use crate::stamp::{SECTOR, VERSION_MAX};
use serde::{Deserialize, Serialize};

const CHUNK_BYTES_MAX: u64 = 1 << 20;
const SEEKERS_MAX: u32 = 1_024;
/// Each that is written back has a version of its own, and there is to be room for many phases.
const SEEKS_MAX: u64 = VERSION_MAX / 64;

/// What is done to the file, in the original's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Putc,
    Rewrite,
    Write,
    Getc,
    Read,
    Seeks,
}

/// The part of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(rename = "name")]
    _name: String,
    pub(super) seed: u64,
    pub(super) phase: Phase,
    #[serde(default = "file_bytes")]
    file_bytes: u64,
    #[serde(default = "chunk_bytes")]
    chunk_bytes: u64,
    #[serde(default = "seeks")]
    pub(super) seeks: u64,
    #[serde(default = "seekers")]
    pub(super) seekers: u32,
    #[serde(default = "update_every")]
    pub(super) update_every: u64,
    #[serde(default)]
    pub(super) fsync: bool,
    /// Whether what is read is compared with what was written.
    #[serde(default = "yes")]
    pub(super) verify: bool,
}

fn yes() -> bool {
    true
}

fn file_bytes() -> u64 {
    100 << 20
}

fn chunk_bytes() -> u64 {
    16_384
}

fn seeks() -> u64 {
    4_000
}

fn seekers() -> u32 {
    3
}

fn update_every() -> u64 {
    10
}

impl Parameters {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(super) fn validate(&self) -> Result<(), String> {
        let refuse = |field: &str, why: String| Err(format!("workload.{field}: {why}"));
        let (sector, chunk) = (SECTOR as u64, self.chunk_bytes);
        if chunk == 0 || !chunk.is_multiple_of(sector) || chunk > CHUNK_BYTES_MAX {
            return refuse("chunk_bytes", format!("{chunk} is not a multiple of {sector} up to {CHUNK_BYTES_MAX}"));
        }
        if !(chunk..=1 << 50).contains(&self.file_bytes) {
            return refuse("file_bytes", format!("{} is not a chunk or more, up to 2^50", self.file_bytes));
        }
        if !(1..=SEEKS_MAX).contains(&self.seeks) {
            return refuse("seeks", format!("{} is not between 1 and {SEEKS_MAX}", self.seeks));
        }
        if !(1..=SEEKERS_MAX).contains(&self.seekers) {
            return refuse("seekers", format!("{} is not between 1 and {SEEKERS_MAX}", self.seekers));
        }
        if self.update_every == 0 {
            return refuse("update_every", "must be above 0 (1: each is written back)".to_owned());
        }
        Ok(())
    }

    /// The one file, in whole chunks.
    pub(super) fn shape(&self) -> Shape {
        let (seed, record_bytes) = (self.seed, self.chunk_bytes);
        Shape { seed, files: 1, file_bytes: self.file_bytes - self.file_bytes % record_bytes, record_bytes }
    }

    /// How many sessions it has.
    pub(super) fn sessions(&self) -> u32 {
        if self.phase == Phase::Seeks { self.seekers } else { 1 }
    }

    /// What of the file's end belongs to the phase, an operation of its own each. Its time ends with close, as the
    /// original's; of the seeks with the last one.
    pub(super) fn closings(&self) -> &'static [Closing] {
        let writes = self.phase == Phase::Seeks || self.phase.moves().1;
        Closing::of(self.fsync && writes, self.phase != Phase::Seeks)
    }

    /// How many operations it has beside them.
    pub(super) fn operations(&self) -> u64 {
        if self.phase == Phase::Seeks { self.seeks } else { self.shape().records() }
    }
}

impl Phase {
    /// As requests call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Putc => "putc",
            Self::Rewrite => "rewrite",
            Self::Write => "write",
            Self::Getc => "getc",
            Self::Read => "read",
            Self::Seeks => "seeks",
        }
    }

    /// Whether it begins with a file that has nothing in it.
    pub(super) fn is_fresh(self) -> bool {
        matches!(self, Self::Putc | Self::Write)
    }

    /// Whether it reads, and whether it writes, every chunk.
    pub(super) fn moves(self) -> (bool, bool) {
        let writes = self.is_fresh() || self == Self::Rewrite;
        (!self.is_fresh(), writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parameters(more: Value) -> Result<Parameters, String> {
        let mut value = json!({"name": "raw_storage", "seed": 1, "phase": "write"});
        more.as_object().unwrap().iter().for_each(|(key, field)| value[key] = field.clone());
        let parameters: Parameters = serde_json::from_value(value).map_err(|error| error.to_string())?;
        parameters.validate().map(|()| parameters)
    }

    #[test]
    fn defaults_are_the_original_s_constants() {
        let Parameters { file_bytes, seeks, seekers, update_every, fsync, .. } = parameters(json!({})).unwrap();
        assert_eq!((file_bytes, seeks, seekers, update_every, fsync), (104_857_600, 4_000, 3, 10, false));
    }

    #[test]
    fn sizes_are_rounded_to_whole_chunks() {
        let rounded = parameters(json!({"file_bytes": 100_000, "chunk_bytes": 8_192})).unwrap();
        assert_eq!((rounded.shape().file_bytes, rounded.operations()), (98_304, 12));
    }

    #[test]
    fn wrong_fields_are_named() {
        for (more, field) in [
            (json!({"chunk_bytes": 100}), "workload.chunk_bytes: 100"),
            (json!({"file_bytes": 100}), "workload.file_bytes: 100"),
            (json!({"seeks": 0}), "workload.seeks"),
            (json!({"seekers": 0}), "workload.seekers"),
            (json!({"update_every": 0}), "workload.update_every"),
            (json!({"phase": "delete"}), "delete"),
            (json!({"chunks": 1}), "chunks"),
        ] {
            let error = parameters(more.clone()).map(drop).unwrap_err();
            assert!(error.contains(field), "{more}: {error}");
        }
    }
}
