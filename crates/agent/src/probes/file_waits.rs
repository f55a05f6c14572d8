//! `file_waits`: where the threads of a load on files sleep.

use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
use crate::target::Target;
#[cfg(feature = "bpf")]
use plimsoll_probe::Refusal;
#[cfg(feature = "bpf")]
use plimsoll_probe::file_waits::FileWaits;
use serde::Deserialize;

/// `file_waits`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWaitsRequest {}

impl ProbeRequest for FileWaitsRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        if target.is_some_and(Target::tells_its_files) {
            return Ok(());
        }
        let message = "the request: probes.file_waits: it needs a target of kind \"files\"; of a server take breakdown";
        Err(Failure::Request(message.to_owned()))
    }

    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let nothing = || Err(Refusal::from("no load to watch".to_owned()));
        let subject = site.target.and_then(Target::subject).unwrap_or_else(nothing);
        Ok(subject.and_then(|subject| FileWaits::start(subject.process, site.out).map(super::request::boxed)))
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
