//! The driver of sessions whose operations the kernel performs and then tells of: a thread carries any number of them on an
//! io_uring of its own.

mod worker;

use crate::config::EngineError;
use crate::driver::Carried;
use crate::recorder::Recorder;
use crate::shared::Shared;
use crate::threads;
use plimsoll_ring::Ring;
use plimsoll_session::{CompletionOpener, CompletionSession};
use std::io;
use std::sync::Arc;
use worker::Worker;

/// The workers, from their making to their end, and the opener beside them.
pub(crate) fn carry(
    sessions: Vec<Box<dyn CompletionSession>>,
    opener: &Arc<dyn CompletionOpener>,
    shared: &Arc<Shared>,
    recorder: &Recorder,
) -> Result<Carried, EngineError> {
    let (opener, threads) = (Arc::clone(opener), shared.control.counts.len());
    let depth = u32::try_from(sessions.len().div_ceil(threads)).unwrap_or(u32::MAX);
    // All of them before the first thread: where there is no io_uring nothing is started.
    let rings = (0..threads).map(|_| Ring::new(depth)).collect::<io::Result<Vec<_>>>()?;
    let workers = rings.into_iter().map(|ring| |dispatcher| Worker::new(dispatcher, ring).run()).collect();
    threads::carry(sessions, move |number| opener.open(number), workers, shared, recorder)
}
