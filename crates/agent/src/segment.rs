//! A segment under way: the engine on a thread of its own, the sampler beside it, a progress line a second, and what is to stop it.

use crate::failure::Failure;
use crate::output;
use crate::process::cpu_ns;
use crate::sampler::{Latest, Running, Sampled, Sampler};
use crate::stop::{self, Cause};
use crate::windows::{self, Asked, Course};
use plimsoll_load::{Control, CpuNs, EngineError, Outcomes, monotonic_ns};
use plimsoll_record::Windows;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Transactions under way when a segment or a window ends may take this long; with scans over swapped memory they are slow. An open
/// loop's backlog is worked off for as long.
pub(crate) const PATIENCE_NS: i64 = 120_000_000_000;

/// What the waiting main thread hears.
enum Message {
    Stop(Cause),
    /// A window is asked for; `None`: in words that cannot be understood.
    Window(Option<Asked>),
    /// Nothing of the load is under way.
    Drained,
    /// The series were sampled at an edge of a window.
    Sampled,
    /// Nothing is sampled any more.
    Unsampled,
    Ended(Box<Result<Outcomes, EngineError>>),
}

/// Where a segment is told to stop, and where it tells that it has ended. Listens from its making on.
pub(crate) struct Conductor {
    tell: Sender<Message>,
    heard: Receiver<Message>,
    course: Option<Course>,
}

/// What a segment leaves.
pub(crate) struct Carried {
    pub(crate) outcomes: Outcomes,
    /// CPU time of the process in the segment.
    pub(crate) cpu: CpuNs,
    pub(crate) sampled: Sampled,
    /// Of a segment in windows.
    pub(crate) windows: Option<Windows>,
    /// Who told it to stop.
    pub(crate) cause: Option<Cause>,
}

impl Conductor {
    pub(crate) fn new() -> Result<Self, Failure> {
        let (tell, heard) = channel();
        stop::watch(&tell, Message::Stop, |line| windows::asked(line).map(Message::Window))?;
        Ok(Self { tell, heard, course: None })
    }

    /// Has transactions, the first of which has `first_index`, be started in windows only, which are recorded in `folder`.
    pub(crate) fn opens_windows(&mut self, folder: &Path, first_index: u64) -> Result<(), Failure> {
        self.course = Some(Course::new(folder, first_index)?);
        Ok(())
    }

    /// The control of a segment of so many threads that this one carries.
    pub(crate) fn control(&self, threads: usize) -> Arc<Control> {
        if self.course.is_none() {
            return Control::new(threads);
        }
        let tell = self.tell.clone();
        Control::windowed(threads, move || drop(tell.send(Message::Drained)))
    }

    /// Carries a segment to its end. `progress` gives what a progress line says of that moment, in nanoseconds of the monotonic clock.
    pub(crate) fn carry<P: Serialize>(
        self,
        sampler: Sampler,
        control: &Arc<Control>,
        progress: impl Fn(i64, Latest) -> P,
        run: impl FnOnce() -> Result<Outcomes, EngineError> + Send + 'static,
    ) -> Result<Carried, Failure> {
        let Self { tell, heard, course } = self;
        let cpu_before = cpu_ns();
        let running = if course.is_some() { sampler.start_at_edges(edges(&tell)) } else { sampler.start() };
        let running = running.map_err(|error| Failure::Record(format!("no thread for sampling: {error}")))?;
        std::thread::spawn(move || {
            // Others hold the channel, too: without a word from here `wait` would wait for ever.
            let outcomes = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(EngineError::Panicked));
            tell.send(Message::Ended(Box::new(outcomes)))
        });
        let mut watch = Watch { control, running: &running, course, cause: None, failure: None };
        let outcomes = watch.wait(&heard, progress);
        let Watch { course, cause, failure, .. } = watch;
        let cpu = cpu_ns() - cpu_before;
        if course.as_ref().is_some_and(Course::wants_edge) {
            running.sample_edge();
        }
        let (sampled, latest) =
            running.finish().map_err(|error| Failure::Record(format!("a series cannot be written: {error}")))?;
        let outcomes = outcomes?;
        let windows = course.map(|course| course.end(control, latest)).transpose()?;
        failure.map_or(Ok(Carried { outcomes, cpu, sampled, windows, cause }), Err)
    }
}

/// Tells of each edge that was sampled, and of the end of sampling whatever ends it.
fn edges(tell: &Sender<Message>) -> impl FnMut() + Send + 'static {
    struct Edges(Sender<Message>);
    impl Drop for Edges {
        fn drop(&mut self) {
            let _ = self.0.send(Message::Unsampled);
        }
    }
    let edges = Edges(tell.clone());
    move || drop(edges.0.send(Message::Sampled))
}

/// What the main thread does while the engine carries the load.
struct Watch<'a> {
    control: &'a Control,
    running: &'a Running,
    course: Option<Course>,
    cause: Option<Cause>,
    failure: Option<Failure>,
}

impl Watch<'_> {
    /// Writes a progress line a second until the engine has ended, while there is progress; passes on what is to stop it, and what
    /// opens its windows.
    fn wait<P: Serialize>(
        &mut self,
        heard: &Receiver<Message>,
        progress: impl Fn(i64, Latest) -> P,
    ) -> Result<Outcomes, EngineError> {
        let mut next_line = Instant::now() + PROGRESS_EVERY;
        loop {
            let due = self.course.as_ref().map_or(Some(next_line), Course::next_line);
            let message = match due {
                Some(at) => heard.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Ended(outcomes)) => return *outcomes,
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {
                    next_line += PROGRESS_EVERY;
                    if let Some(course) = &mut self.course {
                        course.told_progress(PROGRESS_EVERY);
                    }
                    output::event("progress", progress(monotonic_ns(), self.running.latest()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Panicked),
            }
        }
    }

    fn take(&mut self, message: Message) {
        let Self { control, running, course, .. } = self;
        match (message, course) {
            (Message::Stop(cause), _) => self.stop(cause),
            (Message::Unsampled, _) => control.stop(),
            (Message::Window(asked), Some(course)) => {
                if !asked.is_some_and(|asked| course.ask(asked, running)) {
                    self.stop(Cause::Misunderstood);
                }
            }
            (Message::Drained, Some(course)) => course.drained(running),
            (Message::Sampled, Some(course)) => {
                if let Err(failure) = course.sampled(control, running.latest(), PROGRESS_EVERY) {
                    self.failure.get_or_insert(failure);
                    control.stop();
                }
            }
            // What has no windows is as deaf to `window` as to any line that it does not know.
            (Message::Window(_) | Message::Drained | Message::Sampled | Message::Ended(_), _) => {}
        }
    }

    fn stop(&mut self, cause: Cause) {
        self.cause.get_or_insert(cause);
        self.control.stop();
    }
}
