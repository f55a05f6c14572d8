//! What `populate` says while it loads, and its times by phase and table in the end.
//!
//! The fact that constrains it: several connections are at work at once, often at the same table, so what is timed is from when
//! the first of them began to when the last had ended, and such spans overlap.

use crate::output;
use plimsoll_target::postgres::bulk::Progress;
use plimsoll_workload::Event;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// At most one progress line in this time.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// A phase, in seconds since the start.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Phase {
    phase: &'static str,
    began_s: f64,
    ended_s: f64,
}

/// A phase's work on a table, in seconds since the start.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Work {
    phase: &'static str,
    table: String,
    /// Rows that were handed over.
    #[serde(skip_serializing_if = "is_none")]
    rows: u64,
    /// The same in bytes of COPY BINARY.
    #[serde(skip_serializing_if = "is_none")]
    bytes: u64,
    began_s: f64,
    ended_s: f64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A loading under way.
#[derive(Debug)]
pub(crate) struct Loading {
    total: u64,
    done: u64,
    bytes: u64,
    told: Duration,
    phases: Vec<Phase>,
    work: Vec<Work>,
}

impl Loading {
    /// One of `total` rows that begins now.
    pub(crate) fn new(total: u64) -> Self {
        Self { total, done: 0, bytes: 0, told: Duration::ZERO, phases: Vec::new(), work: Vec::new() }
    }

    /// Takes what happened `since` the start, and tells it where that is due.
    pub(crate) fn hear(&mut self, event: Event<'_>, since: Duration) {
        let now_s = since.as_secs_f64();
        match event {
            Event::Phase(phase) => {
                output::event("phase", json!({"phase": phase, "seconds": now_s}));
                self.end_one_without_work(now_s);
                self.phases.push(Phase { phase, began_s: now_s, ended_s: now_s });
            }
            Event::Table { phase, table, progress } => {
                self.phases.iter_mut().filter(|one| one.phase == phase).for_each(|one| one.ended_s = now_s);
                let work = self.work_on(phase, table, now_s);
                work.ended_s = now_s;
                let Progress::Rows { rows, bytes } = progress else { return };
                (work.rows, work.bytes) = (work.rows + rows, work.bytes + bytes);
                (self.done, self.bytes) = (self.done + rows, self.bytes + bytes);
                if self.done == self.total || since - self.told >= PROGRESS_EVERY {
                    self.told = since;
                    let (done, total, bytes) = (self.done, self.total, self.bytes);
                    let line = json!({"done": done, "total": total, "table": table, "bytes": bytes, "seconds": now_s});
                    output::event("progress", line);
                }
            }
        }
    }

    fn work_on(&mut self, phase: &'static str, table: &str, now_s: f64) -> &mut Work {
        let place = self.work.iter().position(|work| work.phase == phase && work.table == table);
        let place = place.unwrap_or_else(|| {
            let (table, began_s) = (table.to_owned(), now_s);
            self.work.push(Work { phase, table, rows: 0, bytes: 0, began_s, ended_s: began_s });
            self.work.len() - 1
        });
        &mut self.work[place]
    }

    /// A phase without work on tables ends when the next one begins.
    fn end_one_without_work(&mut self, now_s: f64) {
        if let Some(last) = self.phases.last_mut()
            && !self.work.iter().any(|work| work.phase == last.phase)
        {
            last.ended_s = now_s;
        }
    }

    /// All phases, and all work by phase and table, when loading has ended `since` its start.
    pub(crate) fn end(mut self, since: Duration) -> (Vec<Phase>, Vec<Work>) {
        self.phases.iter_mut().rev().take(1).for_each(|last| last.ended_s = since.as_secs_f64());
        (self.phases, self.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lasts_from_the_first_connection_that_begins_to_the_last_that_ends() {
        let mut loading = Loading::new(30);
        let mut hear = |seconds: u64, event| loading.hear(event, Duration::from_secs(seconds));
        let table = |phase, progress| Event::Table { phase, table: "lines", progress };
        let rows = |rows, bytes| table("rows", Progress::Rows { rows, bytes });
        hear(0, Event::Phase("tables"));
        hear(1, Event::Phase("rows"));
        hear(2, table("rows", Progress::Began));
        hear(3, table("rows", Progress::Began));
        hear(4, rows(10, 100));
        hear(6, table("rows", Progress::Ended));
        hear(5, rows(20, 200));
        hear(7, Event::Phase("vacuum"));
        hear(7, table("vacuum", Progress::Began));
        hear(8, table("rows", Progress::Ended));
        hear(11, table("vacuum", Progress::Ended));
        let (phases, work) = loading.end(Duration::from_secs(12));
        let phase = |phase, began_s, ended_s| Phase { phase, began_s, ended_s };
        assert_eq!(phases, [phase("tables", 0.0, 1.0), phase("rows", 1.0, 8.0), phase("vacuum", 7.0, 12.0)]);
        let of = |phase, (rows, bytes), (began_s, ended_s)| {
            let table = "lines".to_owned();
            Work { phase, table, rows, bytes, began_s, ended_s }
        };
        assert_eq!(work, [of("rows", (30, 300), (2.0, 8.0)), of("vacuum", (0, 0), (7.0, 11.0))]);
    }
}
