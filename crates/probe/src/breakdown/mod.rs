//! Where the time of each transaction goes: on a CPU, waiting for one, and blocked on what; definitions in README.md.

mod buckets;
mod budget;
mod counters;
mod follower;
mod live;
mod nfs;
pub(crate) mod processes;
mod programs;
mod records;
mod self_test;
mod slices;
mod system_calls;
pub(crate) mod target;
mod wait_place;

pub use self_test::stimulus::serve as serve_stimulus;

use crate::bpf::{CostMeter, Functions, Kernel, Programs, now_ns, summed};
use crate::folders::Known;
use crate::postgres_waits::WaitNames;
use crate::{Probe, Refusal};
use buckets::{BUCKETS, Buckets};
use budget::Budget;
use counters::{COUNTERS, LOST, SYNCS};
use follower::{Followed, Follower, Taken};
use libbpf_rs::MapHandle;
pub use live::teller::Live;
use live::teller::{Teller, name_of};
use plimsoll_record::{BreakdownReport, Check, ProbeReport, ProbeStatus, ProcessTime};
use processes::Processes;
use programs::{Attached, How, OF_SYSTEM_CALLS, OFTEN, settings};
use slices::{Slices, Watching};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use target::{Aim, Server};
use wait_place::WaitPlace;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/breakdown.bpf.o"));

/// The program without which nothing is lost but who ended a wait.
const WAKERS: &str = "on_waking";
/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct BreakdownOptions {
    /// The cluster whose server is watched.
    pub data_directory: PathBuf,
    /// A row for each request, also within a transaction block.
    pub by_request: bool,
    /// What the programs may take of the machine's CPU time, more than 0: to keep within it less of the time is watched.
    pub budget: Option<f64>,
    /// Waits are told by system call and file even if the server tells its wait events, to compare the two.
    pub by_system_call: bool,
    /// Where the tables go.
    pub out: PathBuf,
    /// The program that becomes the known stimulus when it is started with the word
    /// "stimulus" and a version of PostgreSQL ([`serve_stimulus`]).
    pub stimulus: PathBuf,
    /// What goes on is told while it does, and what is under way at the end has a row.
    pub live: Option<Live>,
}

/// The probe.
pub struct Breakdown {
    // Declared first: programs are detached before their maps go.
    programs: Programs,
    counters: MapHandle,
    losses: MapHandle,
    ended: MapHandle,
    backends: MapHandle,
    cost: CostMeter,
    server: Server,
    names: WaitNames,
    attached: Attached,
    /// What cannot be told, and why.
    absent: BTreeMap<String, String>,
    budget: Budget,
    /// What the programs take is looked at in the next interval, too.
    attentive: bool,
    out: PathBuf,
    live: Option<Live>,
    checks: Vec<Check>,
    /// Until they are followed.
    aim: Option<Aim>,
    one_in: Arc<AtomicU32>,
    following: Following,
    before: Vec<i64>,
}

fn aim_of(programs: &Programs) -> Result<Aim, Refusal> {
    Ok(Aim::new(programs.map_of_section(".data.target")?))
}

fn load(
    server: &Server,
    names: &WaitNames,
    attached: &Attached,
    options: &BreakdownOptions,
    of_nfs: Option<&Functions>,
) -> Result<Programs, Refusal> {
    let by_system_call = server.wait_place.is_none();
    let known = by_system_call.then(|| Known::of(&server.trees, true)).transpose()?;
    let (by_request, in_slices) = (options.by_request, options.budget.is_some());
    let how = How { by_request, in_slices, on_nfs: of_nfs.is_some(), known: known.as_ref() };
    let settings = settings(&Buckets::of(names), &how)?;
    let unused: &[&str] = if by_system_call { &[] } else { &OF_SYSTEM_CALLS };
    Programs::start_without(unused, OBJECT, &settings, &attached.wanted, |programs| {
        known.as_ref().map_or(Ok(()), |known| known.fill(programs, false))?;
        of_nfs.map_or(Ok(()), |functions| functions.fill(programs))?;
        // The clock's slew is told before anybody counts with it.
        aim_of(programs)?.keep()
    })
}

enum Following {
    NotYet,
    Now(Follower),
    Done(Taken, Vec<ProcessTime>, u64),
    Failed(String),
}

impl Breakdown {
    /// Loads, attaches and tests the probe.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub fn start(options: &BreakdownOptions) -> Result<Self, Refusal> {
        let server = Server::of(&options.data_directory, options.by_system_call)?;
        let major = server.cluster.major;
        let unknown = || Refusal::from(format!("the wait events of PostgreSQL {major} are not known"));
        let names = WaitNames::of(major).ok_or_else(unknown)?;
        let kernel = Kernel::read()?;
        let attached = Attached::on(&kernel, &options.data_directory);
        let of_nfs = nfs::functions(&options.data_directory);
        let programs =
            load(&server, &names, &attached, options, of_nfs.as_ref().and_then(|known| known.as_ref().ok()))?;
        let why = of_nfs.and_then(Result::err).map(|refusal| (nfs::PARTS.to_owned(), refusal.with_its_remedy()));
        let (counters, losses) = (programs.map("counters")?, programs.map("losses")?);
        let ended = programs.map("ended")?;
        let (backends, mut aim) = (programs.map("backends")?, aim_of(&programs)?);
        let by_system_call = server.wait_place.is_none();
        let mut aim_at = |parent, place| aim.at(parent, Some(place).filter(|_| !by_system_call));
        let tested = self_test::Tested { major, by_system_call };
        let checks = self_test::run(&options.stimulus, tested, (&ended, &backends), &mut aim_at)?;
        aim.at(server.cluster.postmaster, server.wait_place)?;
        Ok(Self {
            cost: programs.cost_meter()?,
            programs,
            counters,
            losses,
            ended,
            backends,
            server,
            names,
            attached,
            absent: why.into_iter().collect(),
            budget: Budget::of_this_machine(options.budget),
            attentive: false,
            out: options.out.clone(),
            live: options.live,
            checks,
            aim: Some(aim),
            one_in: Arc::new(AtomicU32::new(1)),
            following: Following::NotYet,
            before: Vec::new(),
        })
    }

    /// Those of `COUNTERS`, of `SYNCS`, and of `LOST`.
    fn counts(&self) -> Vec<i64> {
        let of = |map, numbers| summed(map, 0, numbers).unwrap_or_else(|| vec![0; numbers]);
        [of(&self.counters, COUNTERS.len() + SYNCS.len()), of(&self.losses, LOST.len())].concat()
    }

    /// What was counted in the segment, by name.
    fn grown(&self) -> BTreeMap<&'static str, u64> {
        let names = COUNTERS.iter().chain(&SYNCS).chain(&LOST);
        let before = self.before.iter().copied().chain(std::iter::repeat(0));
        let grown = self.counts().into_iter().zip(before).map(|(now, before)| (now - before).max(0) as u64);
        names.copied().zip(grown).collect()
    }

    /// What happened before the segment is none of its business.
    fn follow(&mut self) -> std::io::Result<Follower> {
        follower::drain(&self.ended, |_| {})?;
        self.before = self.counts();
        let mut processes = Processes::default();
        processes.begin(self.server.cluster.postmaster, &self.backends);
        let copy = |map: &MapHandle| MapHandle::try_from(map).map_err(|error| std::io::Error::other(error.to_string()));
        let (ended, backends, counters) = (copy(&self.ended)?, copy(&self.backends)?, copy(&self.counters)?);
        let aim = self.aim.take().ok_or_else(|| std::io::Error::other("it is watched already"))?;
        let refused = |refusal: Refusal| std::io::Error::other(refusal.reason);
        let often = self.budget.is_set().then(|| self.programs.switch(&OFTEN)).transpose().map_err(refused)?;
        let watching = Watching { aim, often, slices: Slices::new(now_ns()), one_in: Arc::clone(&self.one_in) };
        let mut teller = self.live.map(|live| Teller::new(live, self.names.clone())).transpose()?;
        let lives = teller.as_mut().map(|teller| teller.begin(&self.server, &backends, &watching));
        let server = self.server.clone();
        let followed = Followed { ended, backends, counters, watching, server, processes, teller, lives };
        Follower::start(followed, &self.out)
    }

    fn keep_within_budget(&mut self) {
        // Attentive until it is known to hold.
        let Some(cpus) = self.cost.sampled(self.attentive) else { return };
        self.attentive = self.budget.spent(cpus);
        self.one_in.store(self.budget.one_in(), Ordering::Relaxed);
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
                let (parent, name) = (self.server.cluster.postmaster, |event| name_of(&self.names, event));
                let processes = taken.processes.report(parent, &self.backends, with_client, name);
                Following::Done(taken, processes, processes::open(parent, &self.backends))
            }
            Err(error) => Following::Failed(format!("breakdown.npy cannot be written: {error}")),
        };
    }

    /// What is known from the start.
    fn head(&self) -> BreakdownReport {
        BreakdownReport {
            status: ProbeStatus::on("tp_btf").without(self.absent.clone()),
            lost: BTreeMap::new(),
            buckets: BUCKETS.iter().map(|bucket| (*bucket).to_owned()).collect(),
            wait_names: BTreeMap::new(),
            boundaries: self.boundaries(),
            sampling: None,
            syncs: BTreeMap::new(),
            request_counts: BTreeMap::new(),
            processes: Vec::new(),
            server_ended_ns: None,
            checks: self.checks.clone(),
            cost: self.cost.cost(),
        }
    }

    /// What was followed; `open` requests were under way at the end.
    fn add_taken(&self, taken: &Taken, open: u64, report: &mut BreakdownReport) {
        let grown = self.grown();
        let recorded: u64 = taken.requests.values().sum();
        let requests = [
            ("seen", recorded + grown["no_room"]),
            ("recorded", recorded),
            ("rows", taken.rows),
            ("queued", taken.queued),
            ("open_at_end", open),
            ("wakers_unseen", self.cost.missed(|name| name == WAKERS)),
        ];
        let counted = COUNTERS.map(|what| (what, grown[what]));
        let named = requests.into_iter().chain(counted).map(|(what, count)| (what.to_owned(), count));
        report.request_counts = named.collect();
        if self.attached.tells_of_syncs {
            report.syncs = SYNCS.map(|what| (what.to_owned(), grown[what])).into();
        }
        let ran = report.cost.as_ref().map(|cost| cost.run_ns as f64 / cost.segment_ns as f64);
        report.sampling = Some(self.budget.report(ran, taken.cut));
        report.lost = LOST.map(|what| (what.to_owned(), grown[what])).into();
        report.lost.insert("events".to_owned(), self.cost.missed(|name| name != WAKERS));
        report.lost.insert("unreadable".to_owned(), taken.unreadable);
        let named = taken.events.iter().map(|event| (event.to_string(), name_of(&self.names, *event)));
        report.wait_names = named.collect();
        report.server_ended_ns = taken.server_ended_ns;
    }

    fn boundaries(&self) -> BTreeMap<String, String> {
        let by = |socket: &str| if self.attached.by_sockets { socket.to_owned() } else { "sys_exit".to_owned() };
        let waits = self.server.wait_place.map_or("system_calls", WaitPlace::name);
        [("begin", "sched_switch".to_owned()), ("end", by("sock_send_length")), ("waits", waits.to_owned())]
            .map(|(what, how)| (what.to_owned(), how))
            .into()
    }
}

impl Probe for Breakdown {
    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn sample(&mut self, _: &mut dyn FnMut(&[i64])) {
        self.keep_within_budget();
        if matches!(self.following, Following::NotYet) {
            self.following = match self.follow() {
                Ok(follower) => Following::Now(follower),
                Err(error) => Following::Failed(format!("breakdown.npy cannot be written: {error}")),
            };
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        self.finish();
        match &self.following {
            Following::Failed(reason) => Some(ProbeReport::refused(reason.clone(), None)),
            Following::NotYet | Following::Now(_) => Some(ProbeReport::new(self.head())),
            Following::Done(taken, processes, open) => {
                let mut report = self.head();
                self.add_taken(taken, *open, &mut report);
                report.processes.clone_from(processes);
                Some(ProbeReport::new(report))
            }
        }
    }
}
