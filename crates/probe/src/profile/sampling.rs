//! Takes samples from the ring while the load runs, and counts equal stacks.
//!
//! The fact that constrains it: the load shares the CPUs. A stack is unwound here, because what is needed for that is
//! large; names, which take longer, have to wait until the segment is over.

use super::clock::Clock;
use super::stacks::Stacks;
use super::ticks::Reading;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(100);

fn ring(map: &MapHandle, mut take: impl FnMut(&[u8]) + 'static) -> io::Result<RingBuffer<'static>> {
    let failed = |error: libbpf_rs::Error| io::Error::other(error.to_string());
    let mut builder = RingBufferBuilder::new();
    let each = move |bytes: &[u8]| {
        take(bytes);
        0
    };
    builder.add(map, each).map_err(failed)?;
    builder.build().map_err(failed)
}

fn consume(ring: &RingBuffer<'_>) -> io::Result<()> {
    ring.consume().map_err(|error| io::Error::other(error.to_string()))
}

/// Takes what is in the ring.
pub(crate) fn drain(map: &MapHandle, take: impl FnMut(&[u8]) + 'static) -> io::Result<()> {
    consume(&ring(map, take)?)
}

/// What was sampled, by its thread.
pub(crate) struct Sampled {
    pub(crate) stacks: Stacks,
    pub(crate) cpu_ns: u64,
}

/// How long the clock ran, and on how many CPUs.
pub(crate) struct Span {
    pub(crate) from: Reading,
    pub(crate) to: Reading,
    pub(crate) cpus: usize,
}

/// The thread that takes.
pub(crate) struct Sampling {
    stop: Sender<()>,
    thread: JoinHandle<io::Result<Sampled>>,
    clock: Clock,
    from: Option<Reading>,
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn take(samples: &MapHandle, parent: u32, stopped: &Receiver<()>) -> io::Result<Sampled> {
    let stacks = Rc::new(RefCell::new(Stacks::new(parent)));
    let into = Rc::clone(&stacks);
    let ring = ring(samples, move |bytes| into.borrow_mut().take(bytes))?;
    loop {
        let last = !matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout));
        stacks.borrow_mut().begin_round();
        consume(&ring)?;
        if last {
            break;
        }
    }
    drop(ring);
    let stacks = Rc::into_inner(stacks).ok_or_else(|| io::Error::other("the ring is still read"))?;
    Ok(Sampled { stacks: stacks.into_inner(), cpu_ns: cpu_ns() })
}

impl Sampling {
    /// Goes on until it is told to finish, or `clock` with it.
    pub(crate) fn start(samples: MapHandle, parent: u32, clock: Clock) -> io::Result<Self> {
        let from = Reading::of(&clock.cpus);
        let (stop, stopped) = channel();
        let named = std::thread::Builder::new().name("profile".to_owned());
        let thread = named.spawn(move || take(&samples, parent, &stopped))?;
        Ok(Self { stop, thread, clock, from })
    }

    /// Takes the rest.
    pub(crate) fn finish(self) -> io::Result<(Sampled, Option<Span>)> {
        let cpus = self.clock.cpus.len();
        let span = self.from.zip(Reading::of(&self.clock.cpus)).map(|(from, to)| Span { from, to, cpus });
        drop(self.clock);
        let _ = self.stop.send(());
        let sampled = self.thread.join();
        let sampled = sampled.unwrap_or_else(|_| Err(io::Error::other("the thread that takes samples panicked")))?;
        Ok((sampled, span))
    }
}
