//! The language: what a request says of a mix, and what is refused, each by the name of its field.

use super::plan::{Engine, Plan, Sync, Task};
use super::versions::BLOCK;
use crate::stamp::SECTOR;
use plimsoll_keys::Choice;
use serde::Deserialize;

const SECTOR_BYTES: u64 = SECTOR as u64;
/// A place's number has 32 bits, and half of the places are room for files that are created.
const COUNT_MAX: u64 = 100_000_000;
const FILE_BYTES_MAX: u64 = 1 << 44;
/// What one system call moves at most, in whole blocks.
const CALL_BYTES_MAX: u64 = 1 << 30;
const STEPS_MAX: usize = 255;
const STREAMS_MAX: u64 = 65_536;

/// The `workload` object of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(rename = "name")]
    _name: String,
    seed: u64,
    #[serde(default)]
    engine: Engine,
    count: u64,
    file_bytes: Size,
    #[serde(default = "a_hundred")]
    fanout: u64,
    #[serde(default)]
    direct: bool,
    #[serde(default = "yes")]
    verify: bool,
    #[serde(default)]
    keys: Keys,
    mix: Vec<Step>,
}

fn a_hundred() -> u64 {
    100
}

fn yes() -> bool {
    true
}

/// Which file, and which block of it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Keys {
    #[default]
    Uniform,
    Zipf(f64),
    /// From the first byte to the last, in so many streams.
    Sequential(u32),
}

/// A number of bytes, or a range of it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or [least, most]")]
enum Size {
    Exactly(u64),
    Between([u64; 2]),
}

impl Size {
    fn ends(self) -> (u64, u64) {
        match self {
            Self::Exactly(bytes) => (bytes, bytes),
            Self::Between([least, most]) => (least, most),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Read,
    Write,
    Append,
    Fsync,
    Create,
    Stat,
    Rename,
    Unlink,
    Readdir,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Append => "append",
            Self::Fsync => "fsync",
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Readdir => "readdir",
        }
    }
}

/// One kind of operation with its share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    operation: Operation,
    weight: u32,
    #[serde(default)]
    bytes: Option<Size>,
    #[serde(default)]
    sync: Option<Sync>,
}

impl Parameters {
    /// What is to be done, if all of it can be.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        within("count", self.count, 1, COUNT_MAX)?;
        within("fanout", self.fanout, 1, COUNT_MAX)?;
        let (least, most) = self.file_bytes.ends();
        ordered("file_bytes", (least, most))?;
        for bytes in [least, most] {
            within("file_bytes", bytes, BLOCK, FILE_BYTES_MAX)?;
            multiple("file_bytes", bytes, BLOCK)?;
        }
        let choice = match self.keys {
            // Which of them is drawn has then no meaning.
            Keys::Uniform | Keys::Sequential(_) => Choice::Uniform,
            Keys::Zipf(theta) if theta > 0.0 && theta.is_finite() => Choice::Zipf { theta },
            Keys::Zipf(theta) => return Err(format!("workload.keys.zipf: {theta} is not a number above 0")),
        };
        if self.mix.is_empty() || self.mix.len() > STEPS_MAX {
            return Err(format!("workload.mix: {} operations are not 1 to {STEPS_MAX}", self.mix.len()));
        }
        let tasks = self.mix.iter().enumerate().map(|(place, step)| self.task(place, step));
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        let streams = self.streams(&tasks)?;
        let weights: Vec<u64> = self.mix.iter().map(|step| u64::from(step.weight)).collect();
        if weights.iter().sum::<u64>() == 0 {
            return Err("workload.mix: every weight is 0: there is nothing to do".to_owned());
        }
        Ok(Plan {
            seed: self.seed,
            engine: self.engine,
            count: self.count,
            file_bytes: (least, most),
            fanout: self.fanout,
            direct: self.direct,
            verify: self.verify,
            choice,
            streams,
            kinds: self.kinds(),
            weights,
            tasks,
        })
    }

    /// How many streams go over the files; `None` where operations draw.
    fn streams(&self, tasks: &[Task]) -> Result<Option<u32>, String> {
        let Keys::Sequential(streams) = self.keys else { return Ok(None) };
        within("keys.sequential", streams.into(), 1, STREAMS_MAX)?;
        if let Some(place) = tasks.iter().position(|task| task.is_of_names()) {
            let name = self.mix[place].operation.name();
            return Err(format!("workload.mix[{place}].operation: {name} does not go with keys \"sequential\""));
        }
        Ok(Some(streams))
    }

    /// Names in the order of the mix; of two operations of a name the later one has its bytes, or its place, beside it.
    fn kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        for (place, step) in self.mix.iter().enumerate() {
            let name = step.operation.name();
            let sized = step.bytes.map(|bytes| format!("{name} {}", bytes.ends().1));
            let all = [Some(name.to_owned()), sized, Some(format!("{name} #{place}"))];
            kinds.extend(all.into_iter().flatten().find(|kind| !kinds.contains(kind)));
        }
        kinds
    }

    fn task(&self, place: usize, step: &Step) -> Result<Task, String> {
        let (operation, field) = (step.operation, |name: &str| format!("mix[{place}].{name}"));
        let is_sized = matches!(operation, Operation::Read | Operation::Write | Operation::Append | Operation::Create);
        let sizes = match step.bytes {
            Some(size) if is_sized => size.ends(),
            None if !is_sized => (0, 0),
            Some(_) => return Err(format!("workload.{}: {} has none", field("bytes"), operation.name())),
            None => return Err(format!("workload.{}: {} needs it", field("bytes"), operation.name())),
        };
        let is_written = matches!(operation, Operation::Write | Operation::Append);
        if step.sync.is_some() && !is_written {
            return Err(format!("workload.{}: only write and append have it", field("sync")));
        }
        let is_on_a_ring = is_written || matches!(operation, Operation::Read | Operation::Fsync);
        if self.engine == Engine::IoUring && !is_on_a_ring {
            let name = operation.name();
            let message = format!("{name} needs engine \"sync\": io_uring reads, writes, appends and fsyncs alone");
            return Err(format!("workload.{}: {message}", field("operation")));
        }
        let (sync, bytes) = (step.sync.unwrap_or_default(), field("bytes"));
        match operation {
            Operation::Read => Ok(Task::Read { bytes: self.in_a_file(&bytes, sizes, SECTOR_BYTES)? }),
            Operation::Write => Ok(Task::Write { bytes: self.in_a_file(&bytes, sizes, BLOCK)?, sync }),
            Operation::Append => {
                ordered(&bytes, sizes)?;
                for end in [sizes.0, sizes.1] {
                    within(&bytes, end, 1, CALL_BYTES_MAX)?;
                    if self.direct {
                        multiple(&bytes, end, BLOCK)?;
                    }
                }
                Ok(Task::Append { sizes, unit: if self.direct { BLOCK } else { 1 }, sync })
            }
            Operation::Create => {
                let created = exactly(&bytes, sizes)?;
                within(&bytes, created, 0, FILE_BYTES_MAX)?;
                multiple(&bytes, created, BLOCK)?;
                Ok(Task::Create { bytes: created })
            }
            Operation::Fsync => Ok(Task::Fsync),
            Operation::Stat => Ok(Task::Stat),
            Operation::Rename => Ok(Task::Rename),
            Operation::Unlink => Ok(Task::Unlink),
            Operation::Readdir => Ok(Task::Readdir),
        }
    }

    /// Of a read or a write: it fits into every file.
    fn in_a_file(&self, field: &str, sizes: (u64, u64), unit: u64) -> Result<u64, String> {
        let bytes = exactly(field, sizes)?;
        within(field, bytes, unit, CALL_BYTES_MAX)?;
        multiple(field, bytes, unit)?;
        let least = self.file_bytes.ends().0;
        if bytes > least {
            return Err(format!("workload.{field}: {bytes} is more than the smallest file has ({least})"));
        }
        Ok(bytes)
    }
}

fn exactly(field: &str, (least, most): (u64, u64)) -> Result<u64, String> {
    if least == most { Ok(least) } else { Err(format!("workload.{field}: one number is needed, not a range")) }
}

fn ordered(field: &str, (least, most): (u64, u64)) -> Result<(), String> {
    if least <= most { Ok(()) } else { Err(format!("workload.{field}: {least} is more than {most}")) }
}

fn within(field: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("workload.{field}: {value} is not between {low} and {high}"))
    }
}

fn multiple(field: &str, value: u64, of: u64) -> Result<(), String> {
    if value.is_multiple_of(of) { Ok(()) } else { Err(format!("workload.{field}: {value} is not a multiple of {of}")) }
}

/// The plan of a request, for tests: `more` beside what every request has.
#[cfg(test)]
pub(super) fn plan_of(more: serde_json::Value) -> Plan {
    let mut request = serde_json::json!({"name": "files", "seed": 1});
    more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
    serde_json::from_value::<Parameters>(request).unwrap().plan().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn planned(more: Value) -> Result<Plan, String> {
        let mut request = json!({
            "name": "files", "seed": 1, "count": 10, "file_bytes": 65536, "mix": [{"operation": "stat", "weight": 1}]
        });
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        serde_json::from_value::<Parameters>(request).map_err(|error| error.to_string())?.plan()
    }

    fn refused(more: Value) -> String {
        planned(more).unwrap_err()
    }

    fn refused_step(step: Value) -> String {
        refused(json!({"mix": [{"operation": "stat", "weight": 1}, step]}))
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_its_field() {
        for (more, field) in [
            (json!({"count": 0}), "workload.count: 0"),
            (json!({"fanout": 0}), "workload.fanout: 0"),
            (json!({"file_bytes": 4097}), "workload.file_bytes: 4097 is not a multiple of 4096"),
            (json!({"file_bytes": [8192, 4096]}), "workload.file_bytes: 8192 is more than 4096"),
            (json!({"keys": {"zipf": 0.0}}), "workload.keys.zipf: 0"),
            (json!({"keys": {"sequential": 0}}), "workload.keys.sequential: 0"),
            (
                json!({"keys": {"sequential": 1}, "mix": [{"operation": "rename", "weight": 1}]}),
                "workload.mix[0].operation: rename does not go with keys \"sequential\"",
            ),
            (json!({"mix": []}), "workload.mix: 0 operations"),
            (json!({"mix": [{"operation": "stat", "weight": 0}]}), "workload.mix: every weight is 0"),
            (json!({"engine": "io_uring"}), "workload.mix[0].operation: stat needs engine \"sync\""),
            (json!({"engine": "uring"}), "unknown variant `uring`"),
            (json!({"mixed": 1}), "unknown field `mixed`"),
        ] {
            let said = refused(more.clone());
            assert!(said.contains(field), "{more}: {said}");
        }
    }

    #[test]
    fn steps_are_refused_by_their_place() {
        for (step, field) in [
            (json!({"operation": "read", "weight": 1}), "workload.mix[1].bytes: read needs it"),
            (json!({"operation": "read", "weight": 1, "bytes": 100}), "workload.mix[1].bytes: 100 is not between 512"),
            (json!({"operation": "read", "weight": 1, "bytes": 1000}), "1000 is not a multiple of 512"),
            (json!({"operation": "write", "weight": 1, "bytes": 4608}), "4608 is not a multiple of 4096"),
            (json!({"operation": "write", "weight": 1, "bytes": 131072}), "more than the smallest file has (65536)"),
            (json!({"operation": "write", "weight": 1, "bytes": [4096, 8192]}), "one number is needed"),
            (json!({"operation": "append", "weight": 1, "bytes": 0}), "0 is not between 1"),
            (json!({"operation": "create", "weight": 1, "bytes": 1}), "1 is not a multiple of 4096"),
            (json!({"operation": "unlink", "weight": 1, "bytes": 4096}), "workload.mix[1].bytes: unlink has none"),
            (json!({"operation": "stat", "weight": 1, "sync": "fsync"}), "workload.mix[1].sync: only write and append"),
            (json!({"operation": "sync", "weight": 1}), "unknown variant `sync`"),
            (json!({"operation": "stat", "weight": 1, "size": 1}), "unknown field `size`"),
        ] {
            let said = refused_step(step.clone());
            assert!(said.contains(field), "{step}: {said}");
        }
        let direct = json!({"direct": true, "mix": [{"operation": "append", "weight": 1, "bytes": 512}]});
        assert!(refused(direct).contains("workload.mix[0].bytes: 512 is not a multiple of 4096"));
    }

    #[test]
    fn kinds_have_the_names_of_their_operations() {
        let read = |bytes: u64| json!({"operation": "read", "weight": 1, "bytes": bytes});
        let mix = json!([read(4096), read(65536), read(65536), {"operation": "stat", "weight": 1}]);
        assert_eq!(planned(json!({"mix": mix})).unwrap().kinds, ["read", "read 65536", "read #2", "stat"]);
    }
}
