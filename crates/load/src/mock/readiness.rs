//! Sessions that tell when they are ready: each has a timer that answers.

use super::{MockOpener, Script, Scripted, ending, pause, report, scripted_ending};
use plimsoll_record::Outcome;
use plimsoll_session::{Begun, Ending, Failure, Opener, Pause, Progress, Ready, Session, SessionReport};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

impl Opener for MockOpener {
    fn open(&self, number: u32) -> Result<Box<dyn Session>, Failure> {
        let server_process = self.admit(number)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|error| Failure { code: Failure::BROKEN.to_owned(), message: error.to_string() })?;
        let script = Arc::clone(&self.script);
        Ok(Box::new(MockSession { timer, script, under_way: None, step: Step::Idle, server_process, begun: 0 }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Begun,
    Rested,
    Sent,
    Closing,
}

/// A session of a [`MockOpener`].
struct MockSession {
    timer: OwnedFd,
    script: Script,
    under_way: Option<Scripted>,
    step: Step,
    server_process: u32,
    begun: i64,
}

impl MockSession {
    fn answer_after(&self, ns: i64) {
        let (tv_sec, tv_nsec) = (ns / 1_000_000_000, ns.max(1) % 1_000_000_000);
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value: Timespec { tv_sec, tv_nsec } };
        // A timer of our own, a valid time: it cannot be refused.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    fn ended(&mut self) -> Progress {
        let Some(scripted) = self.under_way.take() else { return Progress::Waiting { to_write: false } };
        self.step = Step::Idle;
        if let Scripted::DoneThenClosed(ns) = scripted {
            self.step = Step::Closing;
            self.answer_after(ns);
        }
        Progress::Ended(scripted_ending(scripted))
    }
}

impl AsFd for MockSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

impl Session for MockSession {
    fn server_process(&self) -> u32 {
        self.server_process
    }

    fn pause(&mut self, after: u64) -> Pause {
        pause((self.script)(after))
    }

    fn begin(&mut self, index: u64) -> Begun {
        let scripted = (self.script)(index);
        self.begun += 1;
        let skipped = scripted == Scripted::Skipped;
        if !skipped {
            (self.under_way, self.step) = (Some(scripted), Step::Begun);
        }
        Begun { kind: 0, skipped }
    }

    fn advance(&mut self, ready: Ready) -> Progress {
        if let (Step::Begun | Step::Rested, Some(scripted)) = (self.step, self.under_way) {
            match scripted {
                Scripted::DoneAfterRest(ns) if self.step == Step::Begun => {
                    self.step = Step::Rested;
                    return Progress::Resting { ns };
                }
                Scripted::DoneAfter(ns) | Scripted::HandedIn(ns, _) => self.answer_after(ns),
                Scripted::Silent => {}
                _ => self.answer_after(1),
            }
            self.step = Step::Sent;
            return Progress::Waiting { to_write: false };
        }
        if ready == Ready::Nothing || rustix::io::read(&self.timer, &mut [0; 8]).is_err() {
            return Progress::Waiting { to_write: false };
        }
        if self.step == Step::Closing { Progress::Closed } else { self.ended() }
    }

    fn abandon(&mut self) -> Ending {
        self.under_way = None;
        ending(Outcome::Lost, Some(Failure::ABANDONED))
    }

    fn close(self: Box<Self>) -> SessionReport {
        report(self.begun)
    }
}
