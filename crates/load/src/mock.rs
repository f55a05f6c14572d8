//! Sessions without a server: each has a timer that answers, and a script says how transactions end.

use plimsoll_record::{Outcome, Verification};
use plimsoll_session::{Begun, Ending, Failure, Opener, Pause, Progress, Ready, Session, SessionReport};
use plimsoll_session::{BlockingOpener, BlockingSession, Interrupt};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How a scripted transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scripted {
    /// Ends well at once.
    Done,
    /// Ends well after so many nanoseconds.
    DoneAfter(i64),
    /// Ends well after a rest of so many nanoseconds.
    DoneAfterRest(i64),
    /// Ends well after so many retries.
    DoneAfterRetries(u32),
    /// Ends well; so many nanoseconds later the server closes the connection.
    DoneThenClosed(i64),
    /// Ends well at once; its user pauses for so many nanoseconds.
    DoneThenPaused(i64),
    /// Ends well after so many nanoseconds; its user pauses for so many from when it was due.
    HandedIn(i64, i64),
    /// The server refuses it with this SQLSTATE.
    Failed(&'static str),
    /// Nothing is to be done.
    Skipped,
    /// The connection breaks after the commit was sent.
    Lost,
    /// No reply ever comes.
    Silent,
    /// The connection breaks, and closing it never comes back (sessions that block).
    LostAndStuck,
}

/// Of what a session calls its server's process, the number under which it was opened; above it how many were before.
pub const NUMBER_BITS: u32 = 16;

type Script = Arc<dyn Fn(u64) -> Scripted + Send + Sync>;

/// Opens sessions whose transactions end as the script says for their index. All are of kind 0 with one statement.
pub struct MockOpener {
    script: Script,
    opened: AtomicU32,
    accepted: u32,
    silent: bool,
    deaf: bool,
}

impl MockOpener {
    /// Opens as many as are asked for.
    pub fn new(script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self::accepting(u32::MAX, script)
    }

    /// Refuses after the first `accepted`.
    pub fn accepting(accepted: u32, script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), opened: AtomicU32::new(0), accepted, silent: false, deaf: false }
    }

    /// Answers nothing any more after the first `accepted`: whoever asks waits for ever.
    pub fn silent_after(accepted: u32, script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { silent: true, ..Self::accepting(accepted, script) }
    }

    /// Its sessions that block cannot be interrupted.
    pub fn deaf(script: impl Fn(u64) -> Scripted + Send + Sync + 'static) -> Self {
        Self { deaf: true, ..Self::new(script) }
    }

    /// How often it was asked to open.
    pub fn opened(&self) -> u32 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl MockOpener {
    /// Counts an opening; gives what the session calls its server's process, or refuses.
    fn admit(&self, number: u32) -> Result<u32, Failure> {
        let before = self.opened.fetch_add(1, Ordering::Relaxed);
        if self.silent && before >= self.accepted {
            loop {
                std::thread::park();
            }
        }
        if before >= self.accepted {
            return Err(Failure { code: "53300".to_owned(), message: "too many connections".to_owned() });
        }
        Ok((1 + before) << NUMBER_BITS | number)
    }
}

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
pub struct MockSession {
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

fn scripted_ending(scripted: Scripted) -> Ending {
    match scripted {
        Scripted::Failed(code) => ending(Outcome::Failed, Some(code)),
        Scripted::Lost | Scripted::LostAndStuck => ending(Outcome::Lost, Some(Failure::BROKEN)),
        Scripted::DoneAfterRetries(retries) => Ending { retries, ..ending(Outcome::Done, None) },
        _ => ending(Outcome::Done, None),
    }
}

fn pause(scripted: Scripted) -> Pause {
    match scripted {
        Scripted::DoneThenPaused(ns) => Pause { ns, since_planned: false },
        Scripted::HandedIn(_, ns) => Pause { ns, since_planned: true },
        _ => Pause::default(),
    }
}

fn report(begun: i64) -> SessionReport {
    SessionReport { requests: 0, verification: Verification::default(), totals: vec![("begun", begun)] }
}

fn ending(outcome: Outcome, failure: Option<&str>) -> Ending {
    let failure = failure.map(|code| Failure { code: code.to_owned(), message: "as scripted".to_owned() });
    Ending { outcome, statements: 1, retries: 0, requests: 1, bytes: 0, failure, alive: outcome != Outcome::Lost }
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
