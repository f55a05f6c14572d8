//! The driver of sessions whose operations the kernel performs and then tells of: a thread carries any number of them on an
//! io_uring of its own.

mod worker;

use crate::config::EngineError;
use crate::driver::Carried;
use crate::recording::recorder::Recorder;
use crate::shared::Shared;
use crate::threads;
use plimsoll_ring::Ring;
use plimsoll_session::{CompletionOpener, CompletionSession, Registered};
use std::io;
use std::sync::Arc;
use worker::{Token, Worker};

/// The workers, from their making to their end, and the opener beside them.
pub(crate) fn carry(
    mut sessions: Vec<Box<dyn CompletionSession>>,
    opener: &Arc<dyn CompletionOpener>,
    shared: &Arc<Shared>,
    recorder: &Recorder,
) -> Result<Carried, EngineError> {
    let (opener, threads) = (Arc::clone(opener), shared.control.counts.len());
    let depth = u32::try_from(sessions.len().div_ceil(threads)).unwrap_or(u32::MAX);
    // All of them before the first thread: where there is no io_uring nothing is started.
    let mut rings = (0..threads).map(|_| Ring::new(depth)).collect::<io::Result<Vec<_>>>()?;
    for (number, ring) in rings.iter_mut().enumerate() {
        register(ring, sessions.iter_mut().skip(number).step_by(threads))?;
    }
    let workers = rings.into_iter().map(|ring| |dispatcher| Worker::new(dispatcher, ring).run()).collect();
    threads::carry(sessions, move |number| opener.open(number), workers, shared, recorder)
}

/// Registers with a ring what its sessions, dealt out in turn, want it to know beforehand.
fn register<'a>(
    ring: &mut Ring<Token>,
    sessions: impl Iterator<Item = &'a mut Box<dyn CompletionSession>>,
) -> io::Result<()> {
    let (mut files, mut buffers) = (Vec::new(), Vec::new());
    for session in sessions {
        let Registered { files: of_files, buffers: of_buffers } = session.registered();
        files.extend(of_files);
        buffers.extend(of_buffers);
    }
    ring.register(files, buffers)
}
