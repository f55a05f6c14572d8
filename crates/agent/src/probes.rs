//! Probes in the kernel: what a request asks for, opened or refused.

use crate::failure::Failure;
use plimsoll_probe::{Probe, Refusal};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    #[serde(default)]
    pub(crate) breakdown: Option<BreakdownRequest>,
    #[serde(default)]
    pub(crate) syscalls: Option<SystemCallsRequest>,
    #[serde(default)]
    pub(crate) sync: Option<ServerRequest>,
    #[serde(default)]
    pub(crate) block: Option<ServerRequest>,
    pub(crate) profile: Option<ProfileRequest>,
}

/// A folder and the class of the files in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct TreeRequest {
    pub(crate) path: PathBuf,
    pub(crate) class: String,
}

/// `page_cache`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
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
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct FileSystemRequest {
    pub(crate) path: PathBuf,
}

/// `sync`, `block`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct ServerRequest {
    pub(crate) data_directory: PathBuf,
}

/// `breakdown`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct BreakdownRequest {
    pub(crate) data_directory: PathBuf,
    #[serde(default)]
    pub(crate) rows: BreakdownRows,
    /// What the programs may take of the machine's CPU time; without it every transaction is recorded.
    pub(crate) budget: Option<f64>,
    /// What goes on is told line by line, and what is under way at the end has a row.
    #[serde(default)]
    pub(crate) live: bool,
    /// Waits are told by system call and file, as for a server that does not tell its wait events.
    #[serde(default)]
    pub(crate) by_system_call: bool,
}

/// What a row of the breakdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BreakdownRows {
    /// A block, or a request outside of one.
    #[default]
    Transactions,
    /// A request.
    Requests,
}

/// `syscalls`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct SystemCallsRequest {
    pub(crate) data_directory: PathBuf,
    #[serde(default)]
    pub(crate) counted: CountedCalls,
}

/// Which calls are counted one by one, and not in slices of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CountedCalls {
    #[default]
    Slices,
    Files,
    All,
}

/// `profile`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "read by the probes that this build is without"))]
pub(crate) struct ProfileRequest {
    pub(crate) data_directory: PathBuf,
    /// Samples a second on each CPU; a rate that keeps no step with what happens so many times a second.
    #[serde(default = "ninety_nine")]
    pub(crate) hz: u32,
    /// Waits for the kernel's own locks, too.
    #[serde(default)]
    pub(crate) locks: bool,
}

fn ninety_nine() -> u32 {
    99
}

/// A probe's name in the record, and the probe or why there is none.
pub(crate) type Opened = (&'static str, Result<Box<dyn Probe>, Refusal>);

impl ProbesRequest {
    /// Refuses what only `watch` can do.
    pub(crate) fn validate_beside_load(&self) -> Result<(), Failure> {
        match self.breakdown.as_ref().is_some_and(|breakdown| breakdown.live) {
            true => Err(Failure::Request("probes.breakdown.live: only the verb watch has live lines".to_owned())),
            false => Ok(()),
        }
    }

    /// Opens what is asked for. What cannot be had here is refused, not failed; what is wrong in the request fails. Tables of
    /// their own go to `out`; who can tell what goes on does so each `live` interval, if asked to.
    pub(crate) fn open(&self, out: &Path, live: Option<Duration>) -> Result<Vec<Opened>, Failure> {
        let mut opened = Vec::new();
        if let Some(request) = &self.page_cache {
            opened.push(("page_cache", kernel::page_cache(request)?));
        }
        if let Some(request) = &self.buffer_heads {
            opened.push(("buffer_heads", kernel::buffer_heads(request)));
        }
        if let Some(request) = &self.throttle {
            opened.push(("throttle", kernel::throttle(request)));
        }
        if let Some(request) = &self.breakdown {
            opened.push(("breakdown", kernel::breakdown(request, out, live)?));
        }
        if let Some(request) = &self.syscalls {
            opened.push(("syscalls", kernel::syscalls(request)));
        }
        if let Some(request) = &self.sync {
            opened.push(("sync", kernel::sync(request, out)));
        }
        if let Some(request) = &self.block {
            opened.push(("block", kernel::block(request, out)));
        }
        if let Some(request) = &self.profile {
            opened.push(("profile", kernel::profile(request, out)?));
        }
        Ok(opened)
    }
}

#[cfg(feature = "bpf")]
mod kernel {
    use super::{
        BreakdownRequest, BreakdownRows, CountedCalls, FileSystemRequest, PageCacheRequest, ProfileRequest,
        ServerRequest, SystemCallsRequest,
    };
    use crate::failure::Failure;
    use crate::output;
    use plimsoll_probe::block::Requests as BlockRequests;
    use plimsoll_probe::breakdown::{Breakdown, BreakdownOptions, Live};
    use plimsoll_probe::folders::{CLASSES, Class, Tree, of_postgres};
    use plimsoll_probe::page_cache::{Attachment, Fault, PageCache, PageCacheOptions, Requests};
    use plimsoll_probe::profile::{Profile, ProfileOptions};
    use plimsoll_probe::sync::Syncs;
    use plimsoll_probe::syscalls::{Counted, SystemCalls};
    use plimsoll_probe::{BufferHeads, Probe, Refusal, Throttle};
    use plimsoll_record::LiveLine;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    /// Samples a second; beyond this the samples are what is sampled.
    const HZ_MAX: u32 = 9_999;

    type Start = Result<Box<dyn Probe>, Refusal>;

    fn boxed(probe: impl Probe + 'static) -> Box<dyn Probe> {
        Box::new(probe)
    }

    fn one_of<T: Copy>(field: &str, value: &str, allowed: &[(&str, T)]) -> Result<T, Failure> {
        let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
        let found = allowed.iter().find_map(|(name, what)| (*name == value).then_some(*what));
        let refused =
            || format!("probes.page_cache.{field}: \"{value}\" is not allowed; allowed: {}", names.join(", "));
        found.ok_or_else(|| Failure::Request(refused()))
    }

    /// What a test wants broken, so that the refusal can be seen from end to end.
    fn fault() -> Option<Fault> {
        match std::env::var("PLIMSOLL_PROBE_FAULT").as_deref() {
            Ok("attach") => Some(Fault::Attach),
            Ok("folder map") => Some(Fault::FolderMap),
            _ => None,
        }
    }

    pub(super) fn page_cache(request: &PageCacheRequest) -> Result<Start, Failure> {
        let requests =
            [("auto", Requests::Auto), ("get_pages", Requests::GetPages), ("system_calls", Requests::SystemCalls)];
        let attachments =
            [("auto", Attachment::Auto), ("tp_btf", Attachment::Btf), ("tracepoint", Attachment::Tracepoint)];
        let mut trees = Vec::new();
        for tree in &request.trees {
            let classes: Vec<(&str, Option<Class>)> = CLASSES.iter().map(|name| (*name, Class::named(name))).collect();
            if let Some(class) = one_of("trees.class", &tree.class, &classes)? {
                trees.push(Tree { path: tree.path.clone(), class });
            }
        }
        let mut options = PageCacheOptions {
            trees,
            scratch: request.scratch.clone(),
            requests: one_of("requests", &request.requests, &requests)?,
            attachment: one_of("programs", &request.programs, &attachments)?,
            fault: fault(),
        };
        let mut start = || {
            if let Some(folder) = &request.data_directory {
                options.trees.extend(of_postgres(folder)?);
            }
            PageCache::start(&options).map(boxed)
        };
        Ok(start())
    }

    pub(super) fn buffer_heads(request: &FileSystemRequest) -> Start {
        BufferHeads::start(&request.path).map(boxed)
    }

    pub(super) fn throttle(request: &FileSystemRequest) -> Start {
        Throttle::start(&request.path).map(boxed)
    }

    pub(super) fn syscalls(request: &SystemCallsRequest) -> Start {
        let counted = match request.counted {
            CountedCalls::Slices => Counted::Slices,
            CountedCalls::Files => Counted::Files,
            CountedCalls::All => Counted::All,
        };
        SystemCalls::start(&request.data_directory, counted).map(boxed)
    }

    pub(super) fn sync(request: &ServerRequest, out: &Path) -> Start {
        Syncs::start(&request.data_directory, out).map(boxed)
    }

    pub(super) fn block(request: &ServerRequest, out: &Path) -> Start {
        BlockRequests::start(&request.data_directory, out).map(boxed)
    }

    pub(super) fn breakdown(
        request: &BreakdownRequest,
        out: &Path,
        interval: Option<Duration>,
    ) -> Result<Start, Failure> {
        if let Some(share) = request.budget.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            let message = format!("probes.breakdown.budget: {share} is not a share of CPU time above 0, up to 1");
            return Err(Failure::Request(message));
        }
        let live = interval.filter(|_| request.live).map(|interval| Live { interval, tell });
        Ok(start_breakdown(request, out, live))
    }

    /// The program that a probe starts as its known stimulus.
    fn own_program() -> Result<PathBuf, Refusal> {
        std::env::current_exe()
            .map_err(|error| Refusal::from(format!("cannot find the agent's own executable: {error}")))
    }

    fn tell(line: &LiveLine) {
        output::event("breakdown", line);
    }

    fn start_breakdown(request: &BreakdownRequest, out: &Path, live: Option<Live>) -> Start {
        let options = BreakdownOptions {
            data_directory: request.data_directory.clone(),
            by_request: request.rows == BreakdownRows::Requests,
            budget: request.budget,
            by_system_call: request.by_system_call,
            out: out.to_owned(),
            stimulus: own_program()?,
            live,
        };
        Breakdown::start(&options).map(boxed)
    }

    pub(super) fn profile(request: &ProfileRequest, out: &Path) -> Result<Start, Failure> {
        if !(1..=HZ_MAX).contains(&request.hz) {
            let message = format!("probes.profile.hz: {} is not between 1 and {HZ_MAX}", request.hz);
            return Err(Failure::Request(message));
        }
        Ok(start_profile(request, out))
    }

    fn start_profile(request: &ProfileRequest, out: &Path) -> Start {
        let options = ProfileOptions {
            data_directory: request.data_directory.clone(),
            hz: request.hz,
            locks: request.locks,
            out: out.to_owned(),
            stimulus: own_program()?,
        };
        Profile::start(&options).map(boxed)
    }
}

#[cfg(not(feature = "bpf"))]
mod kernel {
    use super::{
        BreakdownRequest, FileSystemRequest, PageCacheRequest, ProfileRequest, ServerRequest, SystemCallsRequest,
    };
    use crate::failure::Failure;
    use plimsoll_probe::{Probe, Refusal};
    use std::path::Path;
    use std::time::Duration;

    type Start = Result<Box<dyn Probe>, Refusal>;

    fn none() -> Start {
        let remedy = "build it with the feature bpf, which needs clang and libelf";
        Err(Refusal::with_remedy("this agent was built without probes in the kernel", remedy))
    }

    pub(super) fn page_cache(_: &PageCacheRequest) -> Result<Start, Failure> {
        Ok(none())
    }

    pub(super) fn buffer_heads(_: &FileSystemRequest) -> Start {
        none()
    }

    pub(super) fn throttle(_: &FileSystemRequest) -> Start {
        none()
    }

    pub(super) fn syscalls(_: &SystemCallsRequest) -> Start {
        none()
    }

    pub(super) fn sync(_: &ServerRequest, _: &Path) -> Start {
        none()
    }

    pub(super) fn block(_: &ServerRequest, _: &Path) -> Start {
        none()
    }

    pub(super) fn breakdown(_: &BreakdownRequest, _: &Path, _: Option<Duration>) -> Result<Start, Failure> {
        Ok(none())
    }

    pub(super) fn profile(_: &ProfileRequest, _: &Path) -> Result<Start, Failure> {
        Ok(none())
    }
}
