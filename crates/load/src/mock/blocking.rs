//! Sessions that block: they sleep, or wait for an interrupt.

use super::{MockOpener, Script, Scripted, ending, pause, report, scripted_ending};
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, BlockingOpener, BlockingSession, Ending, Failure, Interrupt, Pause, SessionReport};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

impl BlockingOpener for MockOpener {
    fn open(&self, number: u32) -> Result<Box<dyn BlockingSession>, Failure> {
        let server_process = self.admit(number)?;
        let (script, deaf) = (Arc::clone(&self.script), self.deaf);
        let waiting = Arc::new(Waiting::default());
        Ok(Box::new(MockBlockingSession {
            script,
            scripted: None,
            is_stuck: false,
            waiting,
            deaf,
            server_process,
            begun: 0,
        }))
    }
}

/// What a silent session waits for.
#[derive(Default)]
struct Waiting {
    ended: Mutex<Option<Outcome>>,
    bell: Condvar,
}

impl Waiting {
    fn wait(&self) -> Outcome {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(outcome) = ended.take() {
                return outcome;
            }
            ended = self.bell.wait(ended).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, outcome: Outcome) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.bell.notify_all();
    }
}

impl Interrupt for Waiting {
    fn cancel(&self) {
        self.end(Outcome::Failed);
    }

    fn hang_up(&self) {
        self.end(Outcome::Lost);
    }
}

/// A session of a [`MockOpener`] whose calls block.
struct MockBlockingSession {
    script: Script,
    scripted: Option<Scripted>,
    is_stuck: bool,
    waiting: Arc<Waiting>,
    deaf: bool,
    server_process: u32,
    begun: i64,
}

impl BlockingSession for MockBlockingSession {
    fn server_process(&self) -> u32 {
        self.server_process
    }

    fn pause(&mut self, after: u64) -> Pause {
        pause((self.script)(after))
    }

    fn begin(&mut self, index: u64) -> Begun {
        self.begun += 1;
        let scripted = (self.script)(index);
        self.scripted = Some(scripted);
        Begun { kind: 0, skipped: scripted == Scripted::Skipped }
    }

    fn perform(&mut self) -> Ending {
        let scripted = self.scripted.take().unwrap_or(Scripted::Done);
        if let Scripted::DoneAfter(ns) | Scripted::DoneAfterRest(ns) | Scripted::HandedIn(ns, _) = scripted {
            std::thread::sleep(Duration::from_nanos(ns as u64));
        }
        self.is_stuck = scripted == Scripted::LostAndStuck;
        match scripted {
            Scripted::Silent if self.deaf => loop {
                std::thread::park();
            },
            Scripted::Silent => match self.waiting.wait() {
                Outcome::Lost => ending(Outcome::Lost, Some(Failure::BROKEN)),
                outcome => ending(outcome, Some("57014")),
            },
            scripted => scripted_ending(scripted),
        }
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        (!self.deaf).then(|| Arc::clone(&self.waiting) as Arc<dyn Interrupt>)
    }

    fn close(self: Box<Self>) -> SessionReport {
        if self.is_stuck {
            loop {
                std::thread::park();
            }
        }
        report(self.begun)
    }
}
