//! Each call of NFS on the mounts that a target's files lie on, from the packets on the wire; definitions in README.md.
//!
//! The fact that constrains it: what packets show is believed only beside the client's own account (/proc/self/mountstats), so
//! packets are taken from before that is first read until after it was last read.

mod capture;
mod filter;
mod handles;
mod mounts;
mod recorder;
mod ring;
mod route;
mod self_test;
#[cfg(feature = "bpf")]
mod tasks;
#[cfg(not(feature = "bpf"))]
#[path = "no_tasks.rs"]
mod tasks;
mod words;

pub use recorder::{CallsRecorder, RecordedCalls};

use crate::folders::Files;
use crate::{Probe, Refusal};
use capture::{Capture, Captured};
#[cfg(feature = "bpf")]
pub(crate) use mounts::KINDS;
use mounts::Mount;
use plimsoll_nfs::{Decoder, FileClass};
use plimsoll_record::{Check, NfsCallsReport, NfsMount, ProbeReport, ProbeStatus};
use ring::{RING_BYTES, Ring};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use tasks::Tasks;

const MOUNTS: &str = "/proc/thread-self/mountinfo";
const ACCOUNT: &str = "/proc/self/mountstats";
/// Rows of a segment: some 1.8 GB.
const ROWS_MAX: u64 = 20_000_000;

/// The probe.
pub struct NfsCalls {
    out: PathBuf,
    mounts: Vec<Mount>,
    /// The mounts that hold files of the target, by their numbers.
    targets: BTreeSet<u64>,
    interfaces: Vec<u32>,
    checks: Vec<Check>,
    handles: u64,
    handles_untold: u64,
    /// The client's own calls, or why they are not told.
    tasks: Option<Tasks>,
    tasks_absent: Option<String>,
    state: State,
}

enum State {
    NotYet(Box<Decoder>),
    Now { capture: Capture, before_ns: [i64; 2] },
    Over(Result<Box<NfsCallsReport>, String>),
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

impl NfsCalls {
    /// Finds the mounts that hold `files`, and tests the way to packets; the tables go to `out`.
    ///
    /// # Errors
    /// The reason why calls cannot be had, or would not be believed.
    pub fn start(files: &Files, out: &Path) -> Result<Self, Refusal> {
        let text = fs::read_to_string(MOUNTS).map_err(|error| Refusal::from(format!("{MOUNTS}: {error}")))?;
        let all = mounts::parse(&text);
        let held = files.trees().iter().filter_map(|tree| mounts::holding(&all, &tree.path));
        let targets: BTreeSet<u64> = held.map(|mount| mount.id).collect();
        let mut servers = BTreeSet::new();
        for mount in all.iter().filter(|mount| targets.contains(&mount.id)) {
            servers.insert(server_of(mount)?);
        }
        let mut interfaces = BTreeSet::new();
        for (address, _) in &servers {
            let found = route::interface_towards(*address);
            interfaces.insert(found.map_err(|error| Refusal::from(format!("the way to {address}: {error}")))?);
        }
        let checks = if servers.is_empty() { Vec::new() } else { self_test::run()? };
        let (decoder, handles, handles_untold) = knowing(files, &all);
        let asked = all.iter().find(|mount| targets.contains(&mount.id));
        let tasks = asked.map(|mount| Tasks::start(&servers, &mount.place, out)).transpose();
        let (tasks, tasks_absent) = match tasks {
            Ok(tasks) => (tasks, None),
            Err(refusal) => (None, Some(refusal.reason)),
        };
        let of_servers = |mount: &Mount| mount.server.is_some_and(|server| servers.contains(&server));
        Ok(Self {
            out: out.to_owned(),
            mounts: all.into_iter().filter(of_servers).collect(),
            targets,
            interfaces: interfaces.into_iter().collect(),
            checks,
            handles,
            handles_untold,
            tasks,
            tasks_absent,
            state: State::NotYet(Box::new(decoder)),
        })
    }

    /// Begins with the segment.
    fn begin(&mut self, decoder: Decoder) -> Result<State, String> {
        if self.mounts.is_empty() {
            return Ok(State::Over(Ok(Box::new(self.report_without_calls()))));
        }
        let recorder = CallsRecorder::create(&self.out, decoder, ROWS_MAX).map_err(|error| error.to_string())?;
        let servers: BTreeSet<(IpAddr, u16)> = self.mounts.iter().filter_map(|mount| mount.server).collect();
        let ports: BTreeSet<u16> = servers.iter().map(|(_, port)| *port).collect();
        let ports: Vec<u16> = ports.into_iter().collect();
        let open = |interface: &u32| Ring::open(&ports).and_then(|ring| ring.bind(*interface).map(|()| ring));
        let rings: Result<Vec<Ring>, Refusal> = self.interfaces.iter().map(open).collect();
        let addresses = servers.into_iter().map(|(address, _)| address).collect();
        let capture = Capture::start(rings.map_err(|refusal| refusal.reason)?, addresses, recorder);
        let capture = capture.map_err(|error| error.to_string())?;
        self.with_tasks(Tasks::begin);
        let before_ns = self.keep_account("before")?;
        Ok(State::Now { capture, before_ns })
    }

    /// Tasks that fail are told of, and the packets go on without them.
    fn with_tasks(&mut self, act: fn(&mut Tasks) -> Result<(), String>) {
        if let Some(Err(reason)) = self.tasks.as_mut().map(act) {
            (self.tasks, self.tasks_absent) = (None, Some(reason));
        }
    }

    /// Keeps the client's account as it is now; gives the moments between which it was read.
    fn keep_account(&self, name: &str) -> Result<[i64; 2], String> {
        let from_ns = now_ns();
        let text = fs::read(ACCOUNT).map_err(|error| format!("{ACCOUNT}: {error}"))?;
        let to_ns = now_ns();
        let file = format!("mountstats-{name}.txt");
        fs::write(self.out.join(&file), text).map_err(|error| format!("{file} cannot be written: {error}"))?;
        Ok([from_ns, to_ns])
    }

    fn finish(&mut self, capture: Capture, before_ns: [i64; 2]) -> Result<NfsCallsReport, String> {
        let after_ns = self.keep_account("after");
        let tasks = self.tasks.take().map(Tasks::finish).transpose();
        let tasks = tasks.unwrap_or_else(|reason| {
            self.tasks_absent = Some(reason);
            None
        });
        let captured = capture.end().map_err(|error| error.to_string())?;
        let text = format!("{:#}\n", captured.calls.document);
        fs::write(self.out.join("nfs.json"), text).map_err(|error| format!("nfs.json cannot be written: {error}"))?;
        Ok(NfsCallsReport { tasks, ..self.report_of(&captured, before_ns, after_ns?) })
    }

    fn report_of(&self, captured: &Captured, before_ns: [i64; 2], after_ns: [i64; 2]) -> NfsCallsReport {
        let totals = &captured.calls.totals;
        let lost = [
            ("dropped", captured.dropped),
            ("unread", captured.unread),
            ("gaps", totals.gaps),
            ("messages", totals.records_lost),
            ("rows", captured.calls.not_kept),
        ];
        NfsCallsReport {
            packets: captured.packets,
            packets_elsewhere: captured.elsewhere,
            lost: lost.map(|(what, count)| (what.to_owned(), count)).into(),
            before_ns: Some(before_ns),
            after_ns: Some(after_ns),
            thread_cpu_ns: captured.cpu_ns,
            ..self.report_without_calls()
        }
    }

    fn report_without_calls(&self) -> NfsCallsReport {
        let mounts = self.mounts.iter().map(|mount| NfsMount {
            place: mount.place.display().to_string(),
            source: mount.source.clone(),
            device: mount.device.clone(),
            options: mount.options.clone(),
            server: mount.server.map_or_else(String::new, |server| SocketAddr::from(server).to_string()),
            is_targets: self.targets.contains(&mount.id),
        });
        let mut absent = BTreeMap::new();
        if self.handles_untold > 0 {
            let why = format!("the client does not tell the handles of {} files", self.handles_untold);
            absent.insert("files".to_owned(), why);
        }
        if let Some(why) = &self.tasks_absent {
            absent.insert("tasks".to_owned(), why.clone());
        }
        NfsCallsReport {
            status: ProbeStatus::on("packet socket").without(absent),
            mounts: mounts.collect(),
            interfaces: self.interfaces.iter().map(|interface| route::name_of(*interface)).collect(),
            checks: self.checks.clone(),
            packets: 0,
            packets_elsewhere: 0,
            lost: BTreeMap::new(),
            ring_bytes: (RING_BYTES * self.interfaces.len()) as u64,
            handles: self.handles,
            handles_untold: self.handles_untold,
            before_ns: None,
            after_ns: None,
            thread_cpu_ns: 0,
            tasks: None,
        }
    }
}

/// A decoder that knows the target's files, how many it knows, and of how many it was told nothing. Looking them up makes calls
/// itself, so that it is done before anything is counted.
fn knowing(files: &Files, mounts: &[Mount]) -> (Decoder, u64, u64) {
    let walked = handles::walk(files.trees(), |path| mounts::holding(mounts, path));
    let (mut decoder, mut told) = (Decoder::default(), 0);
    for known in &walked.known {
        let Some((address, _)) = known.on.server else { continue };
        let path = known.path.strip_prefix(&known.on.place).unwrap_or(&known.path);
        let class = FileClass::named(known.class).unwrap_or(FileClass::Other);
        told += u64::from(decoder.tell(address, &known.handle, &format!("/{}", path.display()), class));
    }
    (decoder, told, walked.untold + walked.known.len() as u64 - told)
}

fn server_of(mount: &Mount) -> Result<(IpAddr, u16), Refusal> {
    let place = mount.place.display();
    if !mount.is_tcp {
        return Err(Refusal::with_remedy(format!("{place} is mounted over UDP"), "mount it with proto=tcp"));
    }
    mount.server.ok_or_else(|| Refusal::from(format!("{place}: its mount tells no address of its server")))
}

impl Probe for NfsCalls {
    /// It writes a table of its own.
    fn columns(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn sample(&mut self, _: &mut dyn FnMut(&[i64])) {
        match &mut self.state {
            State::NotYet(decoder) => {
                let decoder = std::mem::take(decoder);
                self.state = self.begin(*decoder).unwrap_or_else(|reason| State::Over(Err(reason)));
            }
            State::Now { .. } => self.with_tasks(Tasks::go_on),
            State::Over(_) => {}
        }
    }

    fn report(&mut self) -> Option<ProbeReport> {
        if matches!(self.state, State::NotYet(_)) {
            return Some(ProbeReport::new(self.report_without_calls()));
        }
        let ended = State::Over(Err("it has ended".to_owned()));
        let over = match std::mem::replace(&mut self.state, ended) {
            State::Now { capture, before_ns } => self.finish(capture, before_ns).map(Box::new),
            State::Over(over) => over,
            State::NotYet(_) => return None,
        };
        let report = match &over {
            Ok(report) => ProbeReport::new((**report).clone()),
            Err(reason) => ProbeReport::refused(reason.clone(), None),
        };
        self.state = State::Over(over);
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::Table;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn files_on_no_mount_of_nfs_have_no_calls() {
        let folder = tempfile::tempdir().unwrap();
        let mut probe = NfsCalls::start(&Files::of_folder(folder.path()).unwrap(), folder.path()).unwrap();
        probe.sample(&mut |_| panic!("it has no series"));
        let report = serde_json::to_value(probe.report().unwrap()).unwrap();
        assert_eq!((&report["status"], &report["mounts"]), (&"on".into(), &serde_json::json!([])));
        assert_eq!((&report["packets"], report.get("before_ns")), (&0.into(), None));
        assert!(!folder.path().join("nfs_calls.npy").exists());
    }

    #[test]
    fn a_conversation_over_the_loopback_device_is_rows_where_packets_may_be_read() {
        let (folder, local) = (tempfile::tempdir().unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
        let listener = TcpListener::bind((local, 0)).unwrap();
        let ring = match Ring::open(&[listener.local_addr().unwrap().port()]) {
            Ok(ring) => ring,
            Err(refusal) => {
                assert!(refusal.remedy.is_some(), "{refusal}");
                return;
            }
        };
        ring.bind(route::interface_towards(local).unwrap()).unwrap();
        let recorder = CallsRecorder::create(folder.path(), Decoder::default(), 10).unwrap();
        let capture = Capture::start(vec![ring], [local].into(), recorder).unwrap();
        self_test::converse(&listener).unwrap();
        let captured = capture.end().unwrap();
        assert_eq!((captured.dropped, captured.unread, captured.elsewhere), (0, 0, 0));
        let calls = &captured.calls;
        assert_eq!((calls.totals.calls, calls.totals.answered), (self_test::CALLS.into(), self_test::CALLS.into()));
        assert_eq!((calls.written, calls.not_kept), (10, u64::from(self_test::CALLS) - 10));
        let table = Table::read(&folder.path().join("nfs_calls.npy")).unwrap();
        assert_eq!(table.column("xid").unwrap(), (0..10).collect::<Vec<i128>>());
    }

    #[test]
    fn the_self_test_holds_where_packets_may_be_read() {
        match self_test::run() {
            Ok(checks) => assert_eq!(checks.len(), 4),
            Err(refusal) => assert!(refusal.remedy.is_some(), "{refusal}"),
        }
    }

    #[test]
    fn a_mount_that_cannot_be_watched_says_what_would_help() {
        let line = |options: &str| mounts::parse(&format!("40 22 0:38 / /mnt rw - nfs s:/ {options}")).pop().unwrap();
        let refused = server_of(&line("proto=udp,addr=10.0.0.1")).unwrap_err();
        assert_eq!(refused.remedy.as_deref(), Some("mount it with proto=tcp"));
        assert!(server_of(&line("proto=tcp")).unwrap_err().reason.contains("no address"));
        assert!(server_of(&line("proto=tcp,addr=10.0.0.1")).is_ok());
    }
}
