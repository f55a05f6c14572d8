//! A load in windows: a line on standard input opens one, the series are sampled at its edges, and a line tells of it once it has
//! drained.
//!
//! The fact that constrains it: between windows another server is measured, so nothing here wakes by itself then. Sampling may wait
//! for the server, so it is asked for and heard of, and whoever says `stop` meanwhile is heard, too.

use crate::failure::Failure;
use crate::output;
use crate::sampler::{Latest, Running};
use plimsoll_load::{Control, WindowTimes, monotonic_ns};
use plimsoll_record::{Identity, WindowRow, WindowWriter, Windows};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

const NS_PER_MS: f64 = 1e6;
/// A day.
const MS_MAX: f64 = 86_400_000.0;
const TABLE: &str = "windows.npy";

/// A window that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    ms: f64,
    round: u32,
    position: u32,
}

/// What a line of standard input asks for: `window {"ms": 1000, "round": 3, "position": 2}`. `None` for another line; `Some(None)`
/// where it cannot be understood.
pub(crate) fn asked(line: &str) -> Option<Option<Asked>> {
    let json = line.trim().strip_prefix("window ")?;
    Some(serde_json::from_str(json).ok().filter(|asked: &Asked| asked.ms > 0.0 && asked.ms <= MS_MAX))
}

/// Where the gate is, as far as the agent knows.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The threads of the load are being made.
    Starting,
    Closed,
    /// The series are being sampled; then it opens.
    Opening(Asked),
    /// It is open, or drains.
    Open(Asked),
    /// All has drained, and the series are being sampled.
    Closing(Asked),
}

/// The windows of a segment.
pub(crate) struct Course {
    table: WindowWriter,
    stage: Stage,
    first_index: u64,
    /// What had become of the transactions before the window.
    before: Identity,
    told: Windows,
    /// When the next progress line is due.
    next_line: Option<Instant>,
}

#[derive(Serialize)]
struct Line {
    round: u32,
    position: u32,
    opened_ns: i64,
    closed_ns: i64,
    drained_ns: i64,
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    latest: Latest,
}

fn unwritten(error: &std::io::Error) -> Failure {
    Failure::Record(format!("{TABLE} cannot be written: {error}"))
}

impl Course {
    /// Creates the table in `folder`. The segment's first transaction has `first_index`.
    pub(crate) fn new(folder: &Path, first_index: u64) -> Result<Self, Failure> {
        let table = WindowWriter::create(&folder.join(TABLE)).map_err(|error| unwritten(&error))?;
        let (before, told) = (Identity::default(), Windows::default());
        Ok(Self { table, stage: Stage::Starting, first_index, before, told, next_line: None })
    }

    /// When the next progress line is due; `None` while the gate is closed.
    pub(crate) fn next_line(&self) -> Option<Instant> {
        self.next_line
    }

    pub(crate) fn told_progress(&mut self, every: Duration) {
        self.next_line = self.next_line.map(|at| at + every);
    }

    /// A window is asked for. False where it cannot be: the one before has not been told of.
    pub(crate) fn ask(&mut self, asked: Asked, running: &Running) -> bool {
        let is_closed = matches!(self.stage, Stage::Closed);
        if is_closed {
            self.stage = Stage::Opening(asked);
            running.sample_edge();
        }
        is_closed
    }

    /// The load has nothing under way: its threads are there, or the window has drained.
    pub(crate) fn drained(&mut self, running: &Running) {
        match self.stage {
            Stage::Starting => {
                self.stage = Stage::Closed;
                output::event("ready", json!({"t_ns": monotonic_ns()}));
            }
            Stage::Open(asked) => {
                self.stage = Stage::Closing(asked);
                running.sample_edge();
            }
            Stage::Closed | Stage::Opening(_) | Stage::Closing(_) => {}
        }
    }

    /// The series were sampled.
    pub(crate) fn sampled(&mut self, control: &Control, latest: Latest, every: Duration) -> Result<(), Failure> {
        match self.stage {
            Stage::Opening(asked) => {
                self.before = control.identity();
                // It does not open any more after a stop, of which the end of the segment will tell.
                if control.open((asked.ms * NS_PER_MS).round() as i64).is_some() {
                    self.stage = Stage::Open(asked);
                    self.next_line = Some(Instant::now() + every);
                }
                Ok(())
            }
            Stage::Closing(asked) => self.close(asked, control, latest),
            Stage::Starting | Stage::Closed | Stage::Open(_) => Ok(()),
        }
    }

    /// The segment is over. Whether a window was open that is still to be sampled; [`Course::end`] comes after that.
    pub(crate) fn wants_edge(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Tells of the window that the segment ended with, and closes the table.
    pub(crate) fn end(mut self, control: &Control, latest: Latest) -> Result<Windows, Failure> {
        if let Stage::Open(asked) | Stage::Closing(asked) = self.stage {
            self.close(asked, control, latest)?;
        }
        self.table.close().map_err(|error| unwritten(&error))?;
        Ok(self.told)
    }

    fn close(&mut self, asked: Asked, control: &Control, latest: Latest) -> Result<(), Failure> {
        (self.stage, self.next_line) = (Stage::Closed, None);
        let Some(times) = control.window() else { return Ok(()) };
        let identity = control.identity();
        self.table.append(&self.row(asked, times, identity)).map_err(|error| unwritten(&error))?;
        self.told.count += 1;
        self.told.open_ns += times.closed_ns - times.opened_ns;
        let Asked { round, position, .. } = asked;
        let WindowTimes { opened_ns, closed_ns, drained_ns } = times;
        output::event("window", Line { round, position, opened_ns, closed_ns, drained_ns, identity, latest });
        Ok(())
    }

    fn row(&self, asked: Asked, times: WindowTimes, identity: Identity) -> WindowRow {
        let before = self.before;
        WindowRow {
            round: asked.round,
            position: asked.position,
            opened_ns: times.opened_ns,
            closed_ns: times.closed_ns,
            drained_ns: times.drained_ns,
            first_index: self.first_index + before.planned,
            next_index: self.first_index + identity.planned,
            done: identity.done - before.done,
            failed: identity.failed - before.failed,
            skipped: identity.skipped - before.skipped,
            lost: identity.lost - before.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_asks_for_a_window_or_for_something_else() {
        let window = Asked { ms: 250.5, round: 3, position: 2 };
        assert_eq!(asked(r#"window {"ms": 250.5, "round": 3, "position": 2}"#), Some(Some(window)));
        for wrong in
            ["{}", r#"{"ms": 0, "round": 1, "position": 1}"#, r#"{"ms": 1, "round": -1, "position": 1}"#, "1 2 3"]
        {
            assert_eq!(asked(&format!("window {wrong}")), Some(None), "{wrong}");
        }
        assert_eq!((asked("stop"), asked("windows {}")), (None, None));
    }
}
