//! `page_cache`: what of a server's files the page cache has, brings and gives up.

use super::aim::Aim;
use super::request::{ProbeRequest, Site, Started};
use crate::failure::Failure;
#[cfg(feature = "bpf")]
use plimsoll_probe::folders::{CLASSES, Class, Tree};
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

/// `page_cache`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(super) struct PageCacheRequest {
    #[serde(default)]
    data_directory: Aim,
    #[serde(default)]
    trees: Vec<TreeRequest>,
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
        let mut trees = Vec::new();
        for tree in &self.trees {
            let classes: Vec<(&str, Option<Class>)> = CLASSES.iter().map(|name| (*name, Class::named(name))).collect();
            if let Some(class) = one_of("trees.class", &tree.class, &classes)? {
                trees.push(Tree { path: tree.path.clone(), class });
            }
        }
        let mut options = PageCacheOptions {
            trees,
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
