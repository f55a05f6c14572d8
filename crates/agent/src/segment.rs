//! A segment under way: the engine on a thread of its own, the sampler beside it, a progress line a second, and what is to stop it.

use crate::failure::Failure;
use crate::output;
use crate::process::cpu_ns;
use crate::sampler::{Latest, Running, Sampled, Sampler};
use crate::stop::{self, Cause};
use plimsoll_load::{Control, CpuNs, EngineError, Outcomes, monotonic_ns};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Transactions under way when a segment ends may take this long; with scans over swapped memory they are slow. An open
/// loop's backlog is worked off for as long.
pub(crate) const PATIENCE_NS: i64 = 120_000_000_000;

/// What the waiting main thread hears.
enum Message {
    Stop(Cause),
    Ended(Box<Result<Outcomes, EngineError>>),
}

/// Where a segment is told to stop, and where it tells that it has ended. Listens from its making on.
pub(crate) struct Conductor {
    tell: Sender<Message>,
    heard: Receiver<Message>,
}

/// What a segment leaves.
pub(crate) struct Carried {
    pub(crate) outcomes: Outcomes,
    /// CPU time of the process in the segment.
    pub(crate) cpu: CpuNs,
    pub(crate) sampled: Sampled,
    /// Who told it to stop.
    pub(crate) cause: Option<Cause>,
}

impl Conductor {
    pub(crate) fn new() -> Result<Self, Failure> {
        let (tell, heard) = channel();
        stop::watch(&tell, Message::Stop)?;
        Ok(Self { tell, heard })
    }

    /// Carries a segment to its end. `progress` gives what a progress line says of that moment, in nanoseconds of the monotonic clock.
    pub(crate) fn carry<P: Serialize>(
        self,
        sampler: Sampler,
        control: &Arc<Control>,
        progress: impl Fn(i64, Latest) -> P,
        run: impl FnOnce() -> Result<Outcomes, EngineError> + Send + 'static,
    ) -> Result<Carried, Failure> {
        let Self { tell, heard } = self;
        let cpu_before = cpu_ns();
        let running = sampler.start().map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
        std::thread::spawn(move || {
            // Others hold the channel, too: without a word from here `wait` would wait for ever.
            let outcomes = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(EngineError::Panicked));
            tell.send(Message::Ended(Box::new(outcomes)))
        });
        let (outcomes, cause) = wait(&heard, control, &running, progress);
        let cpu = cpu_ns() - cpu_before;
        let sampled =
            running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;
        Ok(Carried { outcomes: outcomes?, cpu, sampled, cause })
    }
}

/// Writes a progress line a second until the engine has ended; passes on what is to stop it.
fn wait<P: Serialize>(
    heard: &Receiver<Message>,
    control: &Control,
    running: &Running,
    progress: impl Fn(i64, Latest) -> P,
) -> (Result<Outcomes, EngineError>, Option<Cause>) {
    let mut cause = None;
    let mut next_line = Instant::now() + PROGRESS_EVERY;
    loop {
        match heard.recv_timeout(next_line.saturating_duration_since(Instant::now())) {
            Ok(Message::Ended(outcomes)) => return (*outcomes, cause),
            Ok(Message::Stop(why)) => {
                cause.get_or_insert(why);
                control.stop();
            }
            Err(RecvTimeoutError::Timeout) => {
                next_line += PROGRESS_EVERY;
                output::event("progress", progress(monotonic_ns(), running.latest()));
            }
            Err(RecvTimeoutError::Disconnected) => return (Err(EngineError::Panicked), cause),
        }
    }
}
