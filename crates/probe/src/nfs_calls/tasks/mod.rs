//! Calls of NFS as the kernel's client counts them, from the tracepoint rpc_stats_latency: what packets do not show, the time in
//! the queue before and in the client after, and whose call it is.
//!
//! The fact that constrains it: the tracepoint is of a module, which is there once something is mounted, and of kernels with
//! types and tracing. Where it is not, the packets tell what they tell.

mod records;
mod self_test;

use crate::Refusal;
use crate::bpf::{CostMeter, Kernel, Programs, Wanted, summed};
use libbpf_rs::{MapHandle, RingBufferBuilder};
use plimsoll_record::{Check, NfsTaskRow, NfsTasks, RowWriter};
use records::{Operations, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tasks.bpf.o"));
const EVENT: &str = "rpc_stats_latency";
const MODULE: &str = "sunrpc";
/// As tasks.h has them.
const SERVERS: usize = 8;
const ADDRESS_BYTES: usize = 16;
/// `enum lost`, and what the kernel left out.
const LOST: [&str; 1] = ["records"];
const LOST_EVENTS: &str = "events";
const UNREADABLE: &str = "unreadable";
/// Rows of a segment, as of the table of packets' calls.
const ROWS_MAX: u64 = 20_000_000;

/// The program at work, and what it has handed over.
pub(super) struct Tasks {
    // Declared first: the program is detached before its maps go.
    _programs: Programs,
    calls: MapHandle,
    losses: MapHandle,
    cost: CostMeter,
    checks: Vec<Check>,
    out: PathBuf,
    recording: Option<Recorded>,
    lost_before: Vec<i64>,
}

struct Recorded {
    writer: RowWriter<NfsTaskRow>,
    operations: Operations,
    written: u64,
    not_kept: u64,
    unreadable: u64,
}

impl Recorded {
    fn take(&mut self, records: Vec<Option<Record>>) -> io::Result<()> {
        for record in records {
            match record {
                None => self.unreadable += 1,
                Some(_) if self.written >= ROWS_MAX => self.not_kept += 1,
                Some(Record { mut row, operation }) => {
                    row.operation = self.operations.place(operation);
                    self.writer.append(&row)?;
                    self.written += 1;
                }
            }
        }
        Ok(())
    }
}

/// Takes what is in the ring; None for what cannot be read.
fn drain(calls: &MapHandle) -> Result<Vec<Option<Record>>, Refusal> {
    let failed = |error: libbpf_rs::Error| Refusal::from(format!("the ring of NFS calls: {error}"));
    let records = std::cell::RefCell::new(Vec::new());
    {
        let mut builder = RingBufferBuilder::new();
        builder
            .add(calls, |bytes| {
                records.borrow_mut().push(Record::decode(bytes));
                0
            })
            .map_err(failed)?;
        builder.build().map_err(failed)?.consume().map_err(failed)?;
    }
    Ok(records.into_inner())
}

/// `struct settings`.
fn settings(servers: &BTreeSet<(IpAddr, u16)>) -> Result<Vec<u8>, Refusal> {
    if servers.len() > SERVERS {
        return Err(Refusal::from(format!("{} servers of NFS, and {SERVERS} can be watched", servers.len())));
    }
    let mut bytes = (servers.len() as u32).to_ne_bytes().to_vec();
    for (address, port) in servers {
        let (family, address) = match address {
            IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
            IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
        };
        bytes.extend((family as u16).to_ne_bytes());
        bytes.extend(port.to_be_bytes());
        bytes.extend(&address);
        bytes.resize(bytes.len() + ADDRESS_BYTES - address.len(), 0);
    }
    bytes.resize(4 + SERVERS * (4 + ADDRESS_BYTES), 0);
    Ok(bytes)
}

impl Tasks {
    /// Loads, attaches and tests the program, for the calls to `servers`; a folder of `mounts` is the stimulus, and the table
    /// goes to `out`.
    ///
    /// # Errors
    /// The reason why its figures cannot be had, or would not be believed.
    pub(super) fn start(servers: &BTreeSet<(IpAddr, u16)>, mount: &Path, out: &Path) -> Result<Self, Refusal> {
        let kernel = Kernel::read()?;
        if !kernel.module_has_tracepoint(MODULE, EVENT) && !kernel.has_tracepoint(EVENT) {
            return Err(Refusal::from(format!("this kernel has no tracepoint {EVENT} with types")));
        }
        let wanted = [Wanted { function: "on_call", tracepoint: None }];
        let programs = Programs::start(OBJECT, &settings(servers)?, &wanted, |_| Ok(()))?;
        let calls = programs.map("calls")?;
        let checks = self_test::run(mount, &|| drain(&calls))?;
        Ok(Self {
            losses: programs.map("losses")?,
            cost: programs.cost_meter()?,
            _programs: programs,
            calls,
            checks,
            out: out.to_owned(),
            recording: None,
            lost_before: Vec::new(),
        })
    }

    fn lost(&self) -> Vec<i64> {
        summed(&self.losses, 0, LOST.len()).unwrap_or_else(|| vec![0; LOST.len()])
    }

    /// Begins with the segment: what was before it is let go.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        drain(&self.calls).map_err(|refusal| refusal.reason)?;
        self.lost_before = self.lost();
        let writer = RowWriter::create(&self.out).map_err(|error| error.to_string())?;
        let operations = Operations::default();
        self.recording = Some(Recorded { writer, operations, written: 0, not_kept: 0, unreadable: 0 });
        self.cost.sampled(false);
        Ok(())
    }

    fn take(&mut self) -> Result<(), String> {
        let records = drain(&self.calls).map_err(|refusal| refusal.reason)?;
        let Some(recorded) = &mut self.recording else { return Ok(()) };
        recorded.take(records).map_err(|error| format!("nfs_tasks.npy cannot be written: {error}"))
    }

    /// Empties the ring.
    pub(super) fn go_on(&mut self) -> Result<(), String> {
        self.take()?;
        self.cost.sampled(false);
        Ok(())
    }

    /// Writes the rest and the table's length.
    pub(super) fn finish(mut self) -> Result<NfsTasks, String> {
        self.take()?;
        let now = self.lost();
        let Some(recorded) = self.recording.take() else { return Err("it has not begun".to_owned()) };
        let lost = now.iter().zip(&self.lost_before).map(|(now, before)| (now - before).max(0) as u64);
        let mut lost: BTreeMap<String, u64> = LOST.map(str::to_owned).into_iter().zip(lost).collect();
        lost.insert(LOST_EVENTS.to_owned(), self.cost.missed(|_| true));
        lost.insert(UNREADABLE.to_owned(), recorded.unreadable);
        lost.insert("rows".to_owned(), recorded.not_kept);
        let rows = recorded.writer.close().map_err(|error| format!("nfs_tasks.npy cannot be written: {error}"))?;
        Ok(NfsTasks {
            operations: recorded.operations.met,
            rows,
            lost,
            checks: self.checks.clone(),
            cost: self.cost.cost(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_stand_as_the_kernel_has_their_addresses() {
        let servers = [("10.0.0.2", 2049), ("fe80::2", 0x1234)];
        let servers: BTreeSet<_> = servers.map(|(address, port)| (address.parse().unwrap(), port)).into();
        let bytes = settings(&servers).unwrap();
        assert_eq!(bytes.len(), 4 + SERVERS * 20);
        assert_eq!(bytes[..4], 2_u32.to_ne_bytes());
        assert_eq!(bytes[4..6], 2_u16.to_ne_bytes(), "AF_INET");
        assert_eq!((&bytes[6..8], &bytes[8..12]), (&[0x08, 0x01][..], &[10, 0, 0, 2][..]));
        assert_eq!(bytes[24..26], 10_u16.to_ne_bytes(), "AF_INET6");
        assert_eq!((&bytes[26..28], &bytes[28..30], bytes[43]), (&[0x12, 0x34][..], &[0xfe, 0x80][..], 2));
        let many = (0..=SERVERS as u16).map(|port| ("10.0.0.2".parse().unwrap(), port)).collect();
        assert!(settings(&many).unwrap_err().reason.contains("9 servers"));
    }

    #[test]
    fn a_kernel_without_the_tracepoint_is_told_of() {
        let kernel = Kernel::read();
        let mounted = Path::new("/sys/kernel/btf/sunrpc").exists();
        let folder = tempfile::tempdir().unwrap();
        let servers = [("10.0.0.2".parse().unwrap(), 2049)].into();
        let reason = Tasks::start(&servers, folder.path(), folder.path()).err().unwrap().reason;
        match kernel {
            Ok(_) if !mounted => assert_eq!(reason, "this kernel has no tracepoint rpc_stats_latency with types"),
            // What is asked of a folder that is not on NFS makes no calls.
            Ok(_) => assert!(reason.contains("root") || reason.contains("self-test"), "{reason}"),
            Err(refusal) => assert_eq!(reason, refusal.reason),
        }
    }
}
