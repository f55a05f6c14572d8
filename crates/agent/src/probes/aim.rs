//! What a probe watches: the server on the data directory that its request names, or else the target.

use super::request::Site;
use crate::failure::Failure;
use crate::target::Target;
use plimsoll_probe::folders::Files;
use plimsoll_probe::{Refusal, Subject, postgres};
use serde::Deserialize;
use std::path::PathBuf;

/// `data_directory` of a probe.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Aim(Option<PathBuf>);

impl Aim {
    /// Refuses a `probe` that would watch nothing.
    pub(super) fn validate(&self, probe: &str, target: Option<&Target>) -> Result<(), Failure> {
        if self.0.is_some() || target.is_some_and(Target::tells_its_files) {
            return Ok(());
        }
        let needed = "it can only be left out with a target of kind \"files\"";
        Err(Failure::Request(format!("the request: probes.{probe}.data_directory: missing; {needed}")))
    }

    /// Whether the request names a data directory.
    #[cfg(feature = "bpf")]
    pub(super) fn is_named(&self) -> bool {
        self.0.is_some()
    }

    /// The processes and files.
    pub(super) fn subject(&self, site: &Site<'_>) -> Result<Subject, Refusal> {
        match &self.0 {
            Some(folder) => postgres::subject(folder),
            None => site.target.and_then(Target::subject).unwrap_or_else(|| Err(nothing())),
        }
    }

    /// The processes alone, by the first of them.
    #[cfg(feature = "bpf")]
    pub(super) fn process(&self, site: &Site<'_>) -> Result<u32, Refusal> {
        match &self.0 {
            Some(folder) => postgres::first_process(folder),
            None => self.subject(site).map(|subject| subject.process),
        }
    }

    /// The files alone, whether anybody uses them or not.
    pub(super) fn files(&self, site: &Site<'_>) -> Result<Files, Refusal> {
        match &self.0 {
            Some(folder) => postgres::files(folder),
            None => self.subject(site).map(|subject| subject.files),
        }
    }
}

fn nothing() -> Refusal {
    Refusal::from("no folder to watch".to_owned())
}
