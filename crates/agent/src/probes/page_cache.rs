//! `page_cache`: what of a server's files the page cache has, brings and gives up.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::folders::{CLASSES, Class, OwnClass, Tree, check_own};
#[cfg(feature = "bpf")]
use plimsoll_probe::page_cache::{Attachment, Fault, PageCache, PageCacheOptions, Requests};
use serde::Deserialize;
use std::path::PathBuf;

/// A folder and the class of the files in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeRequest {
    pub(super) path: PathBuf,
    pub(super) class: String,
}

/// A class of the workload's own: of the files of class `within`, those whose names begin so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
struct OwnRequest {
    class: String,
    begins: String,
    within: String,
}

/// `page_cache`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct PageCacheRequest {
    #[serde(default)]
    data_directory: Aim,
    #[serde(default)]
    trees: Vec<TreeRequest>,
    #[serde(default)]
    own: Vec<OwnRequest>,
    scratch: PathBuf,
    #[serde(default = "auto")]
    requests: String,
    #[serde(default = "auto")]
    programs: String,
}

fn auto() -> String {
    "auto".to_owned()
}

#[cfg(feature = "bpf")]
fn one_of<T: Copy>(field: &str, value: &str, allowed: &[(&str, T)]) -> Result<T, Failure> {
    let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
    let found = allowed.iter().find_map(|(name, what)| (*name == value).then_some(*what));
    let refused = || format!("probes.page_cache.{field}: \"{value}\" is not allowed; allowed: {}", names.join(", "));
    found.ok_or_else(|| Failure::Request(refused()))
}

/// What a test wants broken, so that the refusal can be seen from end to end.
#[cfg(feature = "bpf")]
fn fault() -> Option<Fault> {
    match std::env::var("PLIMSOLL_PROBE_FAULT").as_deref() {
        Ok("attach") => Some(Fault::Attach),
        Ok("folder map") => Some(Fault::FolderMap),
        _ => None,
    }
}

impl ProbeRequest for PageCacheRequest {
    #[cfg(feature = "bpf")]
    fn open(&self, site: &Site<'_>) -> Result<Started, Failure> {
        let requests =
            [("auto", Requests::Auto), ("get_pages", Requests::GetPages), ("system_calls", Requests::SystemCalls)];
        let attachments =
            [("auto", Attachment::Auto), ("tp_btf", Attachment::Btf), ("tracepoint", Attachment::Tracepoint)];
        let classes: Vec<(&str, Class)> =
            CLASSES.iter().filter_map(|name| Some((*name, Class::named(name)?))).collect();
        let mut trees = Vec::new();
        for tree in &self.trees {
            trees.push(Tree { path: tree.path.clone(), class: one_of("trees.class", &tree.class, &classes)? });
        }
        let mut own = Vec::new();
        for one in &self.own {
            let within = one_of("own.within", &one.within, &classes)?;
            own.push(OwnClass { name: one.class.clone(), begins: one.begins.clone(), within });
        }
        check_own(&own).map_err(|why| Failure::Request(format!("probes.page_cache.own: {why}")))?;
        let mut options = PageCacheOptions {
            trees,
            own,
            scratch: self.scratch.clone(),
            requests: one_of("requests", &self.requests, &requests)?,
            attachment: one_of("programs", &self.programs, &attachments)?,
            fault: fault(),
        };
        let mut start = || {
            // Folders that are named are enough.
            if options.trees.is_empty() || self.data_directory.is_named() {
                options.trees.extend_from_slice(self.data_directory.files(site)?.trees());
            }
            PageCache::start(&options).map(super::request::boxed)
        };
        Ok(start())
    }

    #[cfg(not(feature = "bpf"))]
    fn open(&self, _: &Site<'_>) -> Result<Started, Failure> {
        Ok(super::request::without_bpf())
    }
}
