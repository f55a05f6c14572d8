//! The workload `web`: a set of files and the mix of requests for it.

use crate::file_set::FileSet;
use crate::mix::{KINDS, Mix, Parameters};
use std::collections::BTreeMap;

/// The workload.
#[derive(Debug)]
pub struct Web {
    parameters: Parameters,
    set: FileSet,
    mix: Mix,
}

impl Web {
    /// What requests and records call it.
    pub const NAME: &'static str = "web";

    /// The workload with these parameters.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub fn new(parameters: Parameters) -> Result<Self, String> {
        let set = FileSet::new(parameters.directories, parameters.ad_every_bytes)?;
        let mix = Mix::new(&parameters, set.directories())?;
        Ok(Self { parameters, set, mix })
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Its files.
    pub fn files(&self) -> &FileSet {
        &self.set
    }

    /// Its requests.
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// Names of the kinds of request.
    pub fn kinds() -> Vec<String> {
        KINDS.iter().map(|(_, name)| (*name).to_owned()).collect()
    }

    /// What belongs to its results beside the request, by name.
    pub fn facts(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([("directories", self.set.directories().into()), ("file_set_bytes", self.set.bytes())])
    }
}
