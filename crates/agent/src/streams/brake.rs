//! Ends a test before its time: nothing more is begun, and the server is asked to cancel what is under way.
//!
//! The fact that constrains it: a session that was told to stop may have begun its next query a moment before, after the request to
//! cancel met nothing. So it is asked again and again, until every session has left.

use super::session::Told;
use plimsoll_target::postgres::Canceller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A server that has not answered a request to cancel by then is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// The way to stop all sessions.
#[derive(Debug)]
pub(super) struct Brake {
    told: Arc<Told>,
    cancellers: Arc<Vec<Canceller>>,
    since: Option<Instant>,
    cancelling: Option<JoinHandle<()>>,
}

impl Brake {
    pub(super) fn new(told: Arc<Told>, cancellers: Vec<Canceller>) -> Self {
        Self { told, cancellers: Arc::new(cancellers), since: None, cancelling: None }
    }

    /// Stops the test.
    pub(super) fn pull(&mut self) {
        self.told.stop.store(true, Ordering::SeqCst);
        self.since.get_or_insert_with(Instant::now);
        self.cancel();
    }

    /// To be called now and then: asks again if the test was stopped.
    pub(super) fn hold(&mut self) {
        match self.since {
            None => {}
            Some(since) if since.elapsed() < PATIENCE => self.cancel(),
            Some(_) => {
                self.told.given_up.store(true, Ordering::SeqCst);
                self.cancellers.iter().for_each(Canceller::hang_up);
            }
        }
    }

    /// In a thread of its own, because a server that stands still may keep who connects waiting.
    fn cancel(&mut self) {
        if self.cancelling.as_ref().is_none_or(JoinHandle::is_finished) {
            let all = Arc::clone(&self.cancellers);
            self.cancelling = Some(std::thread::spawn(move || all.iter().for_each(|one| drop(one.cancel()))));
        }
    }
}
