//! `nfs_calls`: each call of NFS for a target's files, from the packets on the wire.

use super::aim::Aim;
use super::page_cache::TreeRequest;
use super::request::{ProbeRequest, Site, Started, boxed};
use crate::failure::Failure;
use crate::target::Target;
use plimsoll_probe::folders::{CLASSES, Class, Files, Tree};
use plimsoll_probe::nfs_calls::NfsCalls;
use serde::Deserialize;

/// `nfs_calls`: folders that are named, or else those of a database or of the target.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NfsCallsRequest {
    #[serde(default)]
    data_directory: Aim,
    #[serde(default)]
    trees: Vec<TreeRequest>,
}

impl NfsCallsRequest {
    fn named(&self) -> Result<Vec<Tree>, Failure> {
        let tree = |tree: &TreeRequest| {
            let class = Class::named(&tree.class).ok_or_else(|| {
                let allowed = CLASSES.join(", ");
                Failure::Request(format!(
                    "probes.nfs_calls.trees.class: \"{}\" is not allowed; allowed: {allowed}",
                    tree.class
                ))
            })?;
            Ok(Tree { path: tree.path.clone(), class })
        };
        self.trees.iter().map(tree).collect()
    }
}

impl ProbeRequest for NfsCallsRequest {
    fn validate(&self, target: Option<&Target>) -> Result<(), Failure> {
        if self.named()?.is_empty() { self.data_directory.validate("nfs_calls", target) } else { Ok(()) }
    }

    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let named = self.named()?;
        let files = if named.is_empty() { self.data_directory.files(site) } else { Files::of_trees(named) };
        Ok(files.and_then(|files| NfsCalls::start(&files, site.out)).map(boxed))
    }
}
