//! The known stimulus before each segment: requests of known number and known length. What is not found in its bucket is not
//! believed.

pub(crate) mod stimulus;

use super::buckets::{LOCK, OTHER_WAIT, WAL_SYNC};
use super::follower::{drain, take_batch};
use super::records::{QUEUED, Record};
use super::wait_place::WaitPlace;
use crate::Refusal;
use crate::bpf::now_ns;
use crate::self_test::{equal, until_all_hold};
use libbpf_rs::MapHandle;
use plimsoll_record::Check;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use stimulus::{ANSWER_BYTES, Ask, LENGTH};

/// Requests that do nothing, one after the other; a prime number.
const SINGLE: usize = 101;
/// Messages sent at once: the first wakes, the others wait until they are read.
const AT_ONCE: usize = 7;
/// What a stimulus may be off by: 2 % and a moment.
const SLACK: Duration = Duration::from_micros(400);
const PATIENCE: Duration = Duration::from_secs(10);
/// A busy machine may disturb one.
const TRIES: u32 = 10;

/// As what the stimulus is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tested {
    pub(crate) major: u32,
    /// Its waits are told by its system calls: its sync is a pause then, and is found as one.
    pub(crate) by_system_call: bool,
}

impl Tested {
    fn sync(self) -> (&'static str, u8) {
        if self.by_system_call {
            ("nanoseconds in a pause, with waiting for the CPU", OTHER_WAIT)
        } else {
            ("nanoseconds in a sync, with waiting for the CPU", WAL_SYNC)
        }
    }
}

/// The process and the socket to it.
struct Backend {
    child: Child,
    socket: UnixStream,
    /// Where its pointer to its wait event is.
    pointer: u64,
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Backend {
    fn start(program: &Path, major: u32) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        let mut command = Command::new(program);
        command
            .args(["stimulus", &major.to_string()])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn()?;
        // What holds the other end goes with the command: if the child dies the socket says so.
        drop(command);
        let mut backend = Self { child, socket: ours, pointer: 0 };
        backend.pointer = backend.answer()?;
        Ok(backend)
    }

    fn answer(&mut self) -> io::Result<u64> {
        let mut bytes = [0; ANSWER_BYTES];
        self.socket.read_exact(&mut bytes)?;
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[..8]);
        Ok(u64::from_ne_bytes(number))
    }

    /// Gives how long it took by its own clock.
    fn ask(&mut self, what: Ask) -> io::Result<u64> {
        self.socket.write_all(&[what as u8])?;
        self.answer()
    }
}

fn check(name: &str, expected: u64, found: i64, slack: Duration) -> Check {
    let ok = found.abs_diff(expected as i64) <= (expected / 50).max(slack.as_nanos() as u64);
    Check { name: name.to_owned(), expected: expected.to_string(), found: found.to_string(), ok }
}

fn blocked(record: &Record, bucket: u8) -> i64 {
    record.waits.iter().filter(|wait| wait.bucket == bucket).map(|wait| wait.ns).sum()
}

/// By how much the parts of a request miss its whole, in nanoseconds.
fn open_ns(record: &Record) -> i64 {
    let row = &record.row;
    let waits: i64 = record.waits.iter().map(|wait| wait.ns).sum();
    row.ended_ns - row.arrived_ns - row.cpu_ns - row.run_queue_ns - waits
}

fn judge(records: &[Record], lasted: [u64; 3], (of_sync, in_sync): (&str, u8)) -> Vec<Check> {
    let queued = records.iter().filter(|record| record.row.flags & QUEUED != 0).count();
    let mut checks = vec![
        equal("requests", (SINGLE + AT_ONCE + lasted.len()) as u64, records.len() as u64),
        // One that follows fast enough finds the process still awake, too.
        Check {
            name: "requests that were read without waiting".to_owned(),
            expected: format!("{} or more", AT_ONCE - 1),
            found: queued.to_string(),
            ok: queued >= AT_ONCE - 1,
        },
    ];
    let open = records.iter().map(|record| open_ns(record).abs()).max().unwrap_or(i64::MAX);
    checks.push(check("nanoseconds by which the parts of a request miss it", 0, open, Duration::from_micros(20)));
    let Some([burn, lock, sync]) = records.last_chunk::<3>() else { return checks };
    let waited = |record: &Record, bucket| blocked(record, bucket) + record.row.run_queue_ns;
    let slack = SLACK;
    let on_cpu = burn.row.cpu_ns + burn.row.run_queue_ns;
    checks.push(check("nanoseconds on the CPU, with waiting for it", lasted[0], on_cpu, slack));
    checks.push(check("nanoseconds in a lock, with waiting for the CPU", lasted[1], waited(lock, LOCK), slack));
    checks.push(check(of_sync, lasted[2], waited(sync, in_sync), slack));
    let least = LENGTH.as_nanos() as i64;
    let enough = blocked(lock, LOCK).min(blocked(sync, in_sync)).min(burn.row.cpu_ns);
    checks.push(Check {
        name: "nanoseconds in the bucket of each".to_owned(),
        expected: format!("{least} or more"),
        found: enough.to_string(),
        ok: enough >= least,
    });
    checks
}

fn try_once(
    program: &Path,
    tested: Tested,
    (ended, backends): (&MapHandle, &MapHandle),
    aim: &mut dyn FnMut(u32, WaitPlace) -> Result<(), Refusal>,
) -> Result<Vec<Check>, Refusal> {
    let failed = |error: io::Error| Refusal::from(format!("the self-test could not run: {error}"));
    let mut backend = Backend::start(program, tested.major).map_err(failed)?;
    aim(std::process::id(), WaitPlace { pointer: backend.pointer, offset: 0 })?;
    // The first request may have begun before anybody looked.
    backend.ask(Ask::Nothing).map_err(failed)?;
    backend.ask(Ask::Nothing).map_err(failed)?;
    std::thread::sleep(Duration::from_millis(2));
    let began_ns = now_ns();
    for _ in 0..SINGLE {
        backend.ask(Ask::Nothing).map_err(failed)?;
    }
    backend.socket.write_all(&[Ask::Nothing as u8; AT_ONCE]).map_err(failed)?;
    for _ in 0..AT_ONCE {
        backend.answer().map_err(failed)?;
    }
    let mut lasted = [0; 3];
    for (lasted, what) in lasted.iter_mut().zip([Ask::Burn, Ask::Lock, Ask::Sync]) {
        *lasted = backend.ask(what).map_err(failed)?;
    }
    // The last record comes when the process waits for its client again.
    std::thread::sleep(Duration::from_millis(2));
    let records: Rc<RefCell<Vec<Record>>> = Rc::default();
    let (into, pid) = (Rc::clone(&records), backend.child.id());
    let mut take = move |mut bytes: &[u8]| {
        let mut record = Record::default();
        while let Some(rest) = record.decode(bytes) {
            bytes = rest;
            if record.row.backend_pid == pid && record.row.arrived_ns > began_ns {
                into.borrow_mut().push(record.clone());
            }
        }
    };
    drain(ended, take.clone()).map_err(failed)?;
    take_batch(backends, pid, &mut take);
    let records = records.borrow();
    Ok(judge(&records, lasted, tested.sync()))
}

/// Starts `program` with the word "stimulus" and a version, and compares what it did with what was recorded; `aim` makes the
/// children of a process, with the place of their wait event, the ones that are watched.
pub(crate) fn run(
    program: &Path,
    tested: Tested,
    (ended, backends): (&MapHandle, &MapHandle),
    aim: &mut dyn FnMut(u32, WaitPlace) -> Result<(), Refusal>,
) -> Result<Vec<Check>, Refusal> {
    until_all_hold(TRIES, || try_once(program, tested, (ended, backends), aim))
}
