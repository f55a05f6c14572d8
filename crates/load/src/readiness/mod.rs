//! The driver of sessions that tell when they are ready: a thread carries any number of them.

mod poll;
mod worker;

use crate::config::EngineError;
use crate::driver::Carried;
use crate::recording::recorder::Recorder;
use crate::shared::Shared;
use crate::threads;
use plimsoll_session::{Opener, Session};
use std::sync::Arc;
use worker::Worker;

/// The workers, from their making to their end, and the opener beside them.
pub(crate) fn carry(
    sessions: Vec<Box<dyn Session>>,
    opener: &Arc<dyn Opener>,
    shared: &Arc<Shared>,
    recorder: &Recorder,
) -> Result<Carried, EngineError> {
    let opener = Arc::clone(opener);
    let workers = shared.control.counts.iter().map(|_| |dispatcher| Worker::new(dispatcher)?.run()).collect();
    threads::carry(sessions, move |number| opener.open(number), workers, shared, recorder)
}
