//! The ground of every probe in the kernel: an object is loaded with its settings, attached, and its cost is read.
//!
//! The fact that constrains it: what the kernel refuses is a refusal of the probe with the kernel's own words, never a
//! failure of the load.

mod clock;
mod cost;
mod counter;
mod cpus;
mod file_systems;
pub(crate) mod functions;
mod kernel;
mod switch;
mod tracefs;

pub(crate) use clock::{now_ns, slew_ns};
pub(crate) use cost::CostMeter;
pub(crate) use counter::Counter;
pub(crate) use cpus::online as online_cpus;
pub(crate) use file_systems::{Found, WatchedFileSystem, file_system_of};
pub(crate) use functions::Functions;
pub(crate) use kernel::Kernel;
pub(crate) use switch::Switch;
pub(crate) use tracefs::{offset, with_tracefs};

use crate::Refusal;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, ProgramType, set_print};
use rustix::process::geteuid;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// What libbpf and the verifier said last.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const SAID_LINES_MAX: usize = 200;

fn note(_level: PrintLevel, text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.extend(text.lines().map(str::to_owned));
    let surplus = said.len().saturating_sub(SAID_LINES_MAX);
    said.drain(..surplus);
}

/// The lines that tell most of what went wrong, on one line.
fn said() -> String {
    let lines = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    let telling =
        |line: &&String| !line.trim().is_empty() && !line.contains("BEGIN PROG") && !line.contains("END PROG");
    let mut last: Vec<&str> = lines.iter().rev().filter(telling).take(4).map(|line| line.trim()).collect();
    last.reverse();
    last.join(" | ")
}

/// A program to load: its function's name, and for a classic tracepoint the category and name it is attached to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) function: &'static str,
    pub(crate) tracepoint: Option<(&'static str, &'static str)>,
}

/// Programs at work in the kernel; they are gone when this is.
pub(crate) struct Programs {
    // Links before the object: what is attached goes first.
    links: Vec<(&'static str, Link)>,
    object: Object,
}

/// So many threads detach at once.
const DETACHERS: usize = 8;

impl Drop for Programs {
    /// At each classic tracepoint the kernel waits until nobody is in the program any more, for tens of milliseconds.
    fn drop(&mut self) {
        let each = self.links.len().div_ceil(DETACHERS).max(1);
        std::thread::scope(|scope| {
            while !self.links.is_empty() {
                let links = self.links.split_off(self.links.len().saturating_sub(each));
                scope.spawn(move || drop(links));
            }
        });
    }
}

impl Programs {
    /// Loads those of the object's programs that are wanted, with `settings` as their constants. `fill` is called between
    /// loading and attaching, to fill maps.
    pub(crate) fn start(
        object: &[u8],
        settings: &[u8],
        wanted: &[Wanted],
        fill: impl FnOnce(&Self) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        Self::start_without(&[], object, settings, wanted, fill)
    }

    /// The same without maps that the settings leave no program to use.
    pub(crate) fn start_without(
        unused: &[&str],
        object: &[u8],
        settings: &[u8],
        wanted: &[Wanted],
        fill: impl FnOnce(&Self) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        if !geteuid().is_root() {
            let remedy = "run as root, or give the agent CAP_BPF and CAP_PERFMON";
            return Err(Refusal::with_remedy("loading programs into the kernel needs root", remedy));
        }
        set_print(Some((PrintLevel::Warn, note)));
        let failed = |what: &str, error: libbpf_rs::Error| Refusal::from(format!("{what}: {error}; {}", said()));
        let mut open =
            ObjectBuilder::default().open_memory(object).map_err(|e| failed("the object cannot be read", e))?;
        for mut map in open.maps_mut().filter(|map| map.name().to_string_lossy().ends_with(".rodata.settings")) {
            map.set_initial_value(settings).map_err(|e| failed("the settings do not fit the program's", e))?;
        }
        for mut map in open.maps_mut().filter(|map| unused.iter().any(|name| map.name() == *name)) {
            map.set_autocreate(false).map_err(|e| failed("a map cannot be left out", e))?;
        }
        for mut program in open.progs_mut() {
            let is_wanted = wanted.iter().any(|one| program.name() == one.function);
            program.set_autoload(is_wanted);
        }
        let object = open.load().map_err(|e| failed("the kernel refused a program", e))?;
        let mut programs = Self { links: Vec::new(), object };
        fill(&programs)?;
        for one in wanted {
            if !programs.is_of_event(one.function) {
                programs.links.push((one.function, programs.attach(*one)?));
            }
        }
        Ok(programs)
    }

    /// Whether a program belongs to a perf event, which whoever opens it attaches it to.
    fn is_of_event(&self, function: &str) -> bool {
        let mut programs = self.object.progs_mut();
        programs.any(|program| program.name() == function && program.prog_type() == ProgramType::PerfEvent)
    }

    /// Attaches a program to a perf event, which is closed with the link.
    pub(crate) fn attach_to_event(&self, function: &str, event: OwnedFd) -> Result<Link, Refusal> {
        let program = self.object.progs_mut().find(|program| program.name() == function);
        let program = program.ok_or_else(|| Refusal::from(format!("the object has no program {function}")))?;
        match program.attach_perf_event(event.as_raw_fd()) {
            Ok(link) => {
                // The link has taken it over.
                let _ = event.into_raw_fd();
                Ok(link)
            }
            Err(error) => Err(Refusal::from(format!("{function} cannot be attached: {error}; {}", said()))),
        }
    }

    fn attach(&self, one: Wanted) -> Result<Link, Refusal> {
        let missing = || Refusal::from(format!("the object has no program {}", one.function));
        let program = self.object.progs_mut().find(|program| program.name() == one.function).ok_or_else(missing)?;
        let attached = match one.tracepoint {
            None => program.attach_trace(),
            Some((category, name)) => {
                let category = if category == "raw_syscalls" {
                    libbpf_rs::TracepointCategory::RawSyscalls
                } else {
                    libbpf_rs::TracepointCategory::Custom(category.to_owned())
                };
                program.attach_tracepoint(category, name)
            }
        };
        attached.map_err(|error| Refusal::from(format!("{} cannot be attached: {error}; {}", one.function, said())))
    }

    /// Takes those of `functions` that are attached to tracepoints with type information, to be switched off and on.
    pub(crate) fn switch(&mut self, functions: &[&str]) -> Result<Switch, Refusal> {
        let attached: Vec<&str> =
            self.links.iter().map(|(name, _)| *name).filter(|name| functions.contains(name)).collect();
        let is_wanted = |program: &libbpf_rs::ProgramMut<'_>| attached.iter().any(|name| program.name() == *name);
        let descriptors = self.object.progs_mut().filter(is_wanted);
        let copies = descriptors.map(|program| std::os::fd::AsFd::as_fd(&program).try_clone_to_owned());
        let programs = copies.collect::<Result<_, _>>().map_err(|error| Refusal::from(error.to_string()))?;
        self.links.retain(|(name, _)| !functions.contains(name));
        Switch::on_with(programs)
    }

    /// A map that can be kept beside the programs.
    pub(crate) fn map(&self, name: &str) -> Result<MapHandle, Refusal> {
        let map = self.object.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| Refusal::from(format!("the object has no map {name}")))?;
        MapHandle::try_from(&map).map_err(|error| Refusal::from(format!("map {name}: {error}")))
    }

    /// The map of a section of variables.
    pub(crate) fn map_of_section(&self, section: &str) -> Result<MapHandle, Refusal> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(section));
        let map = map.ok_or_else(|| Refusal::from(format!("the object has no section {section}")))?;
        MapHandle::try_from(&map).map_err(|error| Refusal::from(format!("section {section}: {error}")))
    }

    /// The descriptors' names and numbers, to ask what each program took.
    pub(crate) fn cost_meter(&self) -> Result<CostMeter, Refusal> {
        let name = |program: &libbpf_rs::ProgramMut<'_>| program.name().to_string_lossy().into_owned();
        let loaded = self.object.progs_mut().filter(|program| program.autoload());
        CostMeter::start(
            loaded.map(|program| (name(&program), std::os::fd::AsFd::as_fd(&program).try_clone_to_owned())),
        )
    }
}

/// A per-CPU array's row of 64-bit numbers, summed over the CPUs.
pub(crate) fn summed(map: &MapHandle, row: u32, numbers: usize) -> Option<Vec<i64>> {
    let cpus = map.lookup_percpu(&row.to_ne_bytes(), MapFlags::ANY).ok()??;
    let mut sums = vec![0_i64; numbers];
    for cpu in &cpus {
        for (sum, bytes) in sums.iter_mut().zip(cpu.chunks_exact(8)) {
            *sum = sum.wrapping_add(i64::from_ne_bytes(bytes.try_into().ok()?));
        }
    }
    Some(sums)
}
