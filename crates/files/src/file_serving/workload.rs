//! The workload: its part of a request, its layout, its sessions, its check.

use super::check;
use super::client::{Opener, Shared};
use super::load_file;
use super::operation::Operation;
use super::options::{Lookup, Options};
use super::pattern::Pattern;
use super::profile::profile;
use super::script::{Generation, HANDLES_MAX, Script};
use super::state::{Position, State};
use super::synthetic;
use crate::finish::Finish;
use crate::tree::Tree;
use crate::workload::{FileWorkload, FilesError, Sessions};
use plimsoll_record::{Check, Summary};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

/// A segment has this many passes to itself, so that no pass of another one writes what one of its own does.
const PASSES_OF_A_SEGMENT: u64 = 1 << 32;

/// Bytes of a load file that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Where the lines come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// Our own, from the seed.
    Synthetic(Synthetic),
    /// A file of the user's.
    Loadfile(PathBuf),
}

/// There is nothing to choose.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Synthetic {}

/// Whose the tables of descriptors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DescriptorTables {
    /// One of all clients, as threads of a process have it.
    #[default]
    Shared,
    /// One of each client, as processes have it.
    Own,
}

/// The workload's part of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(rename = "name")]
    _name: String,
    seed: u64,
    script: Source,
    #[serde(default = "newest")]
    generation: Generation,
    #[serde(default = "yes")]
    resolve: bool,
    #[serde(default)]
    o_sync: bool,
    #[serde(default)]
    sync_directories: bool,
    #[serde(default)]
    sync_writes: bool,
    #[serde(default)]
    passes: u64,
    #[serde(default)]
    descriptor_tables: DescriptorTables,
}

fn newest() -> Generation {
    Generation::Four
}

fn yes() -> bool {
    true
}

/// dbench's operations, by a script.
pub struct FileServing {
    parameters: Parameters,
    script: Arc<Script>,
    segment: Mutex<Option<Segment>>,
}

/// One that was begun.
struct Segment {
    state: State,
    positions: Arc<Mutex<Vec<Position>>>,
}

impl FileServing {
    /// What requests and records call it.
    pub const NAME: &'static str = "file_serving";

    /// The workload that `parameters` describe; a load file is read here.
    ///
    /// # Errors
    /// A sentence that names the field, and the line of the load file.
    pub fn new(parameters: &Parameters) -> Result<Self, String> {
        let script = match &parameters.script {
            Source::Synthetic(Synthetic {}) if parameters.generation == Generation::Two => {
                return Err("workload.generation: the synthetic script is one of \"4.0\"".to_owned());
            }
            Source::Synthetic(Synthetic {}) => synthetic::script(parameters.seed)?,
            Source::Loadfile(path) => {
                let refused = |why: String| format!("workload.script.loadfile: {}: {why}", path.display());
                if !path.is_absolute() {
                    return Err(refused("give its absolute path".to_owned()));
                }
                let file = File::open(path).map_err(|error| refused(error.to_string()))?;
                let text = BufReader::with_capacity(READ_BYTES, file);
                load_file::parse(text, parameters.generation).map_err(|error| refused(error.to_string()))?
            }
        };
        Ok(Self { parameters: parameters.clone(), script: Arc::new(script), segment: Mutex::new(None) })
    }

    fn options(&self) -> Options {
        let Parameters { resolve, o_sync, sync_directories, sync_writes, passes, .. } = self.parameters;
        let lookup = match (self.parameters.generation, resolve) {
            (Generation::Two, _) => Lookup::None,
            (Generation::Four, false) => Lookup::Stat,
            (Generation::Four, true) => Lookup::Scan,
        };
        Options { lookup, o_sync, sync_directories, sync_writes, passes }
    }
}

impl FileWorkload for FileServing {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn kinds(&self) -> Vec<String> {
        Operation::ALL.iter().map(|operation| operation.name().to_owned()).collect()
    }

    fn facts(&self) -> BTreeMap<String, Value> {
        let source = match &self.parameters.script {
            Source::Synthetic(_) => "synthetic: of dbench's profile, and none of its lines".to_owned(),
            Source::Loadfile(path) => path.display().to_string(),
        };
        let mut facts = profile(&self.script);
        facts.insert("script".to_owned(), source.into());
        facts.insert("generation".to_owned(), json!(self.parameters.generation));
        facts.insert("emptied_between_passes".to_owned(), self.script.leaves_files.into());
        let whose = match self.parameters.descriptor_tables {
            DescriptorTables::Shared => "one of all clients",
            DescriptorTables::Own => "one of each client",
        };
        facts.insert("descriptor_table".to_owned(), whose.into());
        facts
    }

    fn estimated_bytes(&self) -> u64 {
        0
    }

    fn descriptors(&self) -> u32 {
        // Besides its handles: the work directory, and one that is looked through.
        HANDLES_MAX as u32 + 4
    }

    fn own_descriptors(&self) -> bool {
        self.parameters.descriptor_tables == DescriptorTables::Own
    }

    /// The script makes its files itself.
    fn lay_out(&self, _: &Tree, _: &mut dyn FnMut(u64)) -> Result<(), FilesError> {
        Ok(())
    }

    fn sessions(self: Arc<Self>, tree: &Arc<Tree>, clients: u32, finish: Finish) -> Result<Sessions, FilesError> {
        let before = State::read(tree)?.unwrap_or_default();
        let first_pass = before.next_pass;
        let fingerprint = self.script.fingerprint();
        let next_pass = first_pass + PASSES_OF_A_SEGMENT;
        let state = State { fingerprint, clients, first_pass, next_pass, positions: Vec::new() };
        state.begin(tree)?;
        // Those of a segment with more clients would be found by the check, and nobody's.
        for client in clients..before.clients {
            check::remove(&self.script, tree, client)?;
        }
        let positions = Arc::new(Mutex::new(Vec::new()));
        let segment = Segment { state, positions: Arc::clone(&positions) };
        *self.segment.lock().unwrap_or_else(PoisonError::into_inner) = Some(segment);
        let shared = Shared {
            script: Arc::clone(&self.script),
            moved: self.script.moved(),
            pattern: Arc::new(Pattern::new(self.parameters.seed, self.script.bytes_max as usize)),
            seed: self.parameters.seed,
            options: self.options(),
            first_pass,
            busy: AtomicU32::new(clients),
            finish,
            positions,
        };
        Ok(Sessions::Blocking(Arc::new(Opener { shared: Arc::new(shared), tree: Arc::clone(tree) })))
    }

    fn conclude(&self, tree: &Tree) -> Result<(), FilesError> {
        let segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Segment { mut state, positions }) = segment else { return Ok(()) };
        state.positions.clone_from(&positions.lock().unwrap_or_else(PoisonError::into_inner));
        state.positions.sort_by_key(|position| position.client);
        state.conclude(tree)
    }

    fn check(&self, tree: &Tree, segments: &[Summary]) -> Result<Vec<Check>, FilesError> {
        check::check(&self.script, self.parameters.seed, tree, segments)
    }
}
