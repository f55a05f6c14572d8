//! A capture under way: a thread that takes packets out of the rings, decodes them and writes the calls.
//!
//! The fact that constrains it: the rings fill while nobody reads, and a sampler reads once a second. So there is a thread, and
//! what it has not read when it is told to end is known by number: the kernel has counted it.

use super::recorder::{CallsRecorder, RecordedCalls};
use super::ring::{RETIRE, Ring};
use plimsoll_nfs::Packet;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What was handed to a ring before its end is read within this, or lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a capture leaves.
pub(super) struct Captured {
    pub(super) calls: RecordedCalls,
    pub(super) packets: u64,
    pub(super) elsewhere: u64,
    /// Without room in a ring, by the kernel's count.
    pub(super) dropped: u64,
    /// Counted by the kernel and never seen.
    pub(super) unread: u64,
    pub(super) cpu_ns: u64,
}

/// The thread.
pub(super) struct Capture {
    thread: JoinHandle<io::Result<Captured>>,
    is_over: Arc<AtomicBool>,
}

impl Capture {
    /// Records what `rings`, which are bound, are given of `servers`.
    pub(super) fn start(rings: Vec<Ring>, servers: BTreeSet<IpAddr>, recorder: CallsRecorder) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("nfs_calls".to_owned())
            .spawn(move || Reader { rings, servers, recorder, elsewhere: 0, failed: None }.run(&told))?;
        Ok(Self { thread, is_over })
    }

    /// Has it read what the rings hold, and end.
    pub(super) fn end(self) -> io::Result<Captured> {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

struct Reader {
    rings: Vec<Ring>,
    servers: BTreeSet<IpAddr>,
    recorder: CallsRecorder,
    elsewhere: u64,
    failed: Option<io::Error>,
}

impl Reader {
    fn run(mut self, is_over: &AtomicBool) -> io::Result<Captured> {
        while !is_over.load(Ordering::Acquire) {
            if !self.take() {
                Ring::wait(&self.rings, RETIRE);
            }
        }
        let expected = self.rings.iter_mut().map(Ring::counted).collect::<io::Result<Vec<_>>>()?;
        let expected: Vec<u64> = expected.iter().map(|counted| counted.packets - counted.dropped).collect();
        let open = |rings: &[Ring]| -> u64 {
            rings.iter().zip(&expected).map(|(ring, expected)| expected.saturating_sub(ring.seen)).sum()
        };
        let since = Instant::now();
        while open(&self.rings) > 0 && since.elapsed() < PATIENCE {
            if !self.take() {
                Ring::wait(&self.rings, RETIRE);
            }
        }
        let unread = open(&self.rings);
        let counted = self.rings.iter_mut().map(Ring::counted).collect::<io::Result<Vec<_>>>()?;
        if let Some(error) = self.failed {
            return Err(error);
        }
        let calls = self.recorder.finish()?;
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Ok(Captured {
            calls,
            packets: self.rings.iter().map(|ring| ring.seen).sum::<u64>() - self.elsewhere,
            elsewhere: self.elsewhere,
            dropped: counted.iter().map(|counted| counted.dropped).sum(),
            unread,
            cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
        })
    }

    /// Takes a block of each ring that has one; tells whether any had.
    fn take(&mut self) -> bool {
        let Self { rings, servers, recorder, elsewhere, failed } = self;
        let mut any = false;
        for ring in rings {
            any |= ring.take(|packet| match is_of(servers, packet) {
                // After an error nothing is written any more; the rings are emptied all the same.
                true if failed.is_none() => *failed = recorder.packet(packet).err(),
                true => {}
                false => *elsewhere += 1,
            });
        }
        any
    }
}

/// Whether a packet goes from or to one of the servers.
fn is_of(servers: &BTreeSet<IpAddr>, packet: &Packet<'_>) -> bool {
    let four = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.data.get(at..at + 4)?).ok()?));
    let sixteen = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.data.get(at..at + 16)?).ok()?));
    let ends = match packet.data.first().map(|first| first >> 4) {
        Some(4) => [four(12), four(16)],
        Some(6) => [sixteen(8), sixteen(24)],
        _ => [None, None],
    };
    ends.into_iter().flatten().any(|end| servers.contains(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_nfs::LinkType;

    #[test]
    fn a_packet_is_of_a_server_whichever_way_it_goes() {
        let servers: BTreeSet<IpAddr> = ["10.0.0.2", "fe80::2"].map(|one| one.parse().unwrap()).into();
        let v4 = |from: [u8; 4], to: [u8; 4]| [&[0x45][..], &[0; 11], &from, &to].concat();
        let v6 = |from: u8, to: u8| {
            let end = |last| [&[0xfe, 0x80][..], &[0; 13], &[last]].concat();
            [&[0x60][..], &[0; 7], &end(from), &end(to)].concat()
        };
        for (data, expected) in [
            (v4([10, 0, 0, 1], [10, 0, 0, 2]), true),
            (v4([10, 0, 0, 2], [10, 0, 0, 1]), true),
            (v4([10, 0, 0, 1], [10, 0, 0, 3]), false),
            (v6(1, 2), true),
            (v6(2, 1), true),
            (v6(1, 3), false),
            (vec![0x45; 15], false),
            (Vec::new(), false),
        ] {
            let packet = Packet { ns: 0, link: LinkType::Raw, data: &data, length: data.len() };
            assert_eq!(is_of(&servers, &packet), expected, "{data:?}");
        }
    }
}
