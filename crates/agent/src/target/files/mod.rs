//! Files in a folder: no server, no connection, no series of counters.

mod data;
mod load;

use crate::failure::Failure;
use plimsoll_files::Tree;
use plimsoll_probe::folders::Class;
use plimsoll_probe::{Refusal, Subject};
use serde::Deserialize;
use std::path::PathBuf;

/// A folder, and whose processes use it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Watched with its children; without it the agent itself, whose load it is then.
    #[serde(default)]
    pid: Option<u32>,
}

impl Files {
    /// The folder with what `workload` has laid out in it.
    fn open(&self, workload: &str) -> Result<Tree, Failure> {
        Ok(Tree::open(&self.folder, workload)?)
    }

    /// What probes watch.
    pub(super) fn subject(&self) -> Result<Subject, Refusal> {
        let mut subject = Subject::of_folder(&self.folder, self.pid.unwrap_or_else(std::process::id))?;
        // What a workload keeps beside its files is of none of them.
        if let Some((data, class)) = Tree::noted_class(&self.folder)
            && let Some(class) = Class::named(&class)
        {
            subject.files = subject.files.with(&data, class)?;
        }
        Ok(subject)
    }
}
