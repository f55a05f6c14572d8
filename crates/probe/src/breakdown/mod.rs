//! Where the time of each request goes: on a CPU, waiting for one, and blocked on what; definitions in README.md.

mod buckets;
mod follower;
mod processes;
mod records;
mod self_test;
mod stimulus;
mod target;

pub use stimulus::serve as serve_stimulus;

use crate::bpf::{CostMeter, Kernel, Programs, Wanted, summed};
use crate::postgres_waits::WaitNames;
use crate::{Probe, Refusal};
use buckets::{BUCKETS, Buckets};
use follower::{Followed, Follower, Taken};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use plimsoll_record::{Check, ProbeReport, ProcessTime};
use processes::Processes;
use records::SYSTEM_CALL;
use std::collections::BTreeMap;
use std::path::PathBuf;
use target::Server;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/breakdown.bpf.o"));

/// `enum counter`.
const COUNTERS: [&str; 4] = ["unknown_waits", "wakes_unseen", "arrivals_unseen", "wrong_guesses"];
/// `enum lost`.
const LOST: [&str; 2] = ["no_room", "no_storage"];

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct BreakdownOptions {
    /// The cluster whose server is watched.
    pub data_directory: PathBuf,
    /// Where the tables go.
    pub out: PathBuf,
    /// The program that becomes the known stimulus when it is started with the word
    /// "stimulus" and a version of PostgreSQL ([`serve_stimulus`]).
    pub stimulus: PathBuf,
}

/// The probe.
pub struct Breakdown {
    // Declared first: programs are detached before their maps go.
    _programs: Programs,
    counters: MapHandle,
    losses: MapHandle,
    requests: MapHandle,
    backends: MapHandle,
    cost: CostMeter,
    server: Server,
    names: WaitNames,
    by_sockets: bool,
    out: PathBuf,
    checks: Vec<Check>,
    following: Following,
    before: Vec<i64>,
}

enum Following {
    NotYet,
    Now(Follower),
    Done(Taken, Vec<ProcessTime>, u64),
    Failed(String),
}

fn settings(buckets: &Buckets) -> Vec<u8> {
    let [send, wait, other_wait] = system_calls();
    let numbers = [send, wait, other_wait, buckets.client_read, buckets.client_write, buckets.wal_write_lock];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    bytes.extend(buckets.class);
    bytes.extend(buckets.io);
    bytes
}

/// With which PostgreSQL answers clients, and in which it waits for them.
fn system_calls() -> [u32; 3] {
    // Some machines have no epoll_wait.
    #[cfg(target_arch = "x86_64")]
    let wait = libc::SYS_epoll_wait;
    #[cfg(not(target_arch = "x86_64"))]
    let wait = libc::SYS_epoll_pwait;
    [libc::SYS_sendto, wait, libc::SYS_epoll_pwait].map(|call| call as u32)
}

fn wanted(kernel: &Kernel, by_sockets: bool) -> Vec<Wanted> {
    let all = [
        (true, "on_switch", "sched_switch"),
        (true, "on_waking", "sched_waking"),
        (by_sockets, "on_send", "sock_send_length"),
        (!by_sockets, "on_sys_exit", "sys_exit"),
        (true, "on_throttle", "balance_dirty_pages"),
        (true, "on_reclaim_begin", "mm_vmscan_direct_reclaim_begin"),
        (true, "on_reclaim_end", "mm_vmscan_direct_reclaim_end"),
        (true, "on_group_reclaim_begin", "mm_vmscan_memcg_reclaim_begin"),
        (true, "on_group_reclaim_end", "mm_vmscan_memcg_reclaim_end"),
        (true, "on_exit", "sched_process_exit"),
    ];
    let chosen = all.into_iter().filter(|(is_wanted, _, tracepoint)| *is_wanted && kernel.has_tracepoint(tracepoint));
    chosen.map(|(_, function, _)| Wanted { function, tracepoint: None }).collect()
}

/// Makes the children of `parent`, whose wait event is reached by `wait_pointer`, the ones that are watched.
fn aim(targets: &MapHandle, parent: u32, wait_pointer: Option<u64>) -> Result<(), Refusal> {
    let mut target = wait_pointer.unwrap_or(0).to_ne_bytes().to_vec();
    target.extend(parent.to_ne_bytes());
    target.extend(0_u32.to_ne_bytes());
    let aimed = targets.update(&0_u32.to_ne_bytes(), &target, MapFlags::ANY);
    aimed.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
}

impl Breakdown {
    /// Loads, attaches and tests the probe.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(options: &BreakdownOptions) -> Result<Self, Refusal> {
        let server = Server::of(&options.data_directory)?;
        let unknown = || Refusal::from(format!("the wait events of PostgreSQL {} are not known", server.major));
        let names = WaitNames::of(server.major).ok_or_else(unknown)?;
        let kernel = Kernel::read()?;
        let by_sockets = kernel.has_tracepoint("sock_send_length");
        let settings = settings(&Buckets::of(&names));
        let programs = Programs::start(OBJECT, &settings, &wanted(&kernel, by_sockets), |_| Ok(()))?;
        let (counters, losses) = (programs.map("counters")?, programs.map("losses")?);
        let requests = programs.map("requests")?;
        let (backends, targets) = (programs.map("backends")?, programs.map_of_section(".data.target")?);
        let aim_at = |parent, pointer| aim(&targets, parent, Some(pointer));
        let checks = self_test::run(&options.stimulus, server.major, (&requests, &backends), &aim_at)?;
        aim(&targets, server.postmaster, server.wait_pointer)?;
        Ok(Self {
            cost: programs.cost_meter()?,
            _programs: programs,
            counters,
            losses,
            requests,
            backends,
            server,
            names,
            by_sockets,
            out: options.out.clone(),
            checks,
            following: Following::NotYet,
            before: Vec::new(),
        })
    }

    /// Those of `COUNTERS`, then those of `LOST`.
    fn counts(&self) -> Vec<i64> {
        let of = |map, numbers| summed(map, 0, numbers).unwrap_or_else(|| vec![0; numbers]);
        [of(&self.counters, COUNTERS.len()), of(&self.losses, LOST.len())].concat()
    }

    /// What was counted in the segment, by name.
    fn grown(&self) -> BTreeMap<&'static str, u64> {
        let names = COUNTERS.iter().chain(&LOST);
        let before = self.before.iter().copied().chain(std::iter::repeat(0));
        let grown = self.counts().into_iter().zip(before).map(|(now, before)| (now - before).max(0) as u64);
        names.copied().zip(grown).collect()
    }

    /// What happened before the segment is none of its business.
    fn follow(&mut self) -> std::io::Result<Follower> {
        follower::drain(&self.requests, |_| {})?;
        self.before = self.counts();
        let mut processes = Processes::default();
        processes.begin(self.server.postmaster, &self.backends);
        let copy = |map: &MapHandle| MapHandle::try_from(map).map_err(|error| std::io::Error::other(error.to_string()));
        let (requests, backends) = (copy(&self.requests)?, copy(&self.backends)?);
        let followed = Followed { requests, backends, parent: self.server.postmaster, processes };
        Follower::start(followed, &self.out)
    }

    fn finish(&mut self) {
        let follower = match std::mem::replace(&mut self.following, Following::NotYet) {
            Following::Now(follower) => follower,
            other => {
                self.following = other;
                return;
            }
        };
        self.following = match follower.finish() {
            Ok(taken) => {
                let with_client = |pid: u32| taken.requests.contains_key(&pid);
                let (parent, name) = (self.server.postmaster, |event| name_of(&self.names, event));
                let processes = taken.processes.report(parent, &self.backends, with_client, name);
                Following::Done(taken, processes, processes::open(parent, &self.backends))
            }
            Err(error) => Following::Failed(format!("breakdown.npy cannot be written: {error}")),
        };
    }

    fn boundaries(&self) -> BTreeMap<String, String> {
        let by = |socket: &str| if self.by_sockets { socket.to_owned() } else { "sys_exit".to_owned() };
        let waits = if self.server.wait_pointer.is_some() { "my_wait_event_info" } else { "system_calls" };
        [("begin", "sched_waking".to_owned()), ("end", by("sock_send_length")), ("waits", waits.to_owned())]
            .map(|(what, how)| (what.to_owned(), how))
            .into()
    }
}

/// "IO:WALSync"; the system call where there was no wait event; the number where the name is not known.
fn name_of(names: &WaitNames, event: u32) -> String {
    match (names.name(event), event) {
        (Some((class, event)), _) => format!("{class}:{event}"),
        (None, 0) => "several".to_owned(),
        (None, event) if event >= SYSTEM_CALL && event & 0xff_ffff == 0xff_ffff => "page fault".to_owned(),
        (None, event) if event >= SYSTEM_CALL => format!("system call {}", event & 0xff_ffff),
        (None, event) => format!("{event:#010x}"),
    }
}

impl Probe for Breakdown {
    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn sample(&mut self, _: &mut dyn FnMut(&[i64])) {
        self.cost.sampled();
        if matches!(self.following, Following::NotYet) {
            self.following = match self.follow() {
                Ok(follower) => Following::Now(follower),
                Err(error) => Following::Failed(format!("breakdown.npy cannot be written: {error}")),
            };
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        self.finish();
        let grown = self.grown();
        let mut report = ProbeReport {
            status: "on".to_owned(),
            programs: Some("tp_btf".to_owned()),
            buckets: BUCKETS.iter().map(|bucket| (*bucket).to_owned()).collect(),
            boundaries: self.boundaries(),
            checks: self.checks.clone(),
            cost: self.cost.cost(),
            ..ProbeReport::default()
        };
        match &self.following {
            Following::Failed(reason) => return Some(ProbeReport::refused(reason.clone(), None)),
            Following::NotYet | Following::Now(_) => return Some(report),
            Following::Done(taken, processes, open) => {
                let recorded: u64 = taken.requests.values().sum();
                let seen = recorded + grown["no_room"];
                let open = *open;
                let requests =
                    [("seen", seen), ("queued", taken.queued), ("recorded", recorded), ("open_at_end", open)];
                let counted = COUNTERS.map(|what| (what, grown[what]));
                let named = requests.into_iter().chain(counted).map(|(what, count)| (what.to_owned(), count));
                report.request_counts = named.collect();
                report.lost = LOST.map(|what| (what.to_owned(), grown[what])).into();
                report.lost.insert("events".to_owned(), self.cost.missed());
                report.lost.insert("unreadable".to_owned(), taken.unreadable);
                let named = taken.events.iter().map(|event| (event.to_string(), name_of(&self.names, *event)));
                report.wait_names = named.collect();
                report.processes = processes.clone();
            }
        }
        Some(report)
    }
}
