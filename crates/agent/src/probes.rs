//! Probes in the kernel: what a request asks for.

use serde::Deserialize;
use std::path::PathBuf;

/// `probes` of `load` and `watch`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbesRequest {
    #[serde(default)]
    pub(crate) page_cache: Option<PageCacheRequest>,
    #[serde(default)]
    pub(crate) buffer_heads: Option<FileSystemRequest>,
    #[serde(default)]
    pub(crate) throttle: Option<FileSystemRequest>,
}

/// A folder and the class of the files in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeRequest {
    pub(crate) path: PathBuf,
    pub(crate) class: String,
}

/// `page_cache`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageCacheRequest {
    #[serde(default)]
    pub(crate) data_directory: Option<PathBuf>,
    #[serde(default)]
    pub(crate) trees: Vec<TreeRequest>,
    pub(crate) scratch: PathBuf,
    #[serde(default = "auto")]
    pub(crate) requests: String,
    #[serde(default = "auto")]
    pub(crate) programs: String,
}

fn auto() -> String {
    "auto".to_owned()
}

/// `buffer_heads`, `throttle`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSystemRequest {
    pub(crate) path: PathBuf,
}
