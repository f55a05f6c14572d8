//! `generate`: a table of decision_support, or part of a refresh set, as text, for servers that are loaded by their own client.
//!
//! The fact that constrains it: what is written is what `populate` loads, and what a refresh function inserts or deletes. A pipe
//! will do, so that no file need lie between.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Generate};
use crate::stop;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::decision_support::DecisionSupport;
use plimsoll_workload::decision_support::refresh::{RefreshSet, SETS_MAX, SetPart};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::Instant;

const BUFFER_BYTES: usize = 1 << 20;

/// What is to be written.
enum Content {
    /// The table of this number.
    Table(usize),
    Set(RefreshSet, SetPart),
}

impl Content {
    fn of(request: &Generate, tables: &DecisionSupport) -> Result<Self, Failure> {
        let unknown = || Failure::Request(format!("table: there is no table {}", request.table));
        let Some(number) = request.set else {
            return tables.table_number(&request.table).map(Self::Table).ok_or_else(unknown);
        };
        let part = SetPart::of_table(&request.table).ok_or_else(|| {
            let name = &request.table;
            Failure::Request(format!("table: a refresh set has no {name}; allowed: orders, lineitem, refresh_key"))
        })?;
        let set = RefreshSet::new(tables.scale_factor(), number)
            .ok_or_else(|| Failure::Request(format!("set: {number} is not between 1 and {SETS_MAX}")))?;
        Ok(Self::Set(set, part))
    }

    /// Hands the text to `each`, and gives how many rows it is.
    fn write(&self, tables: &DecisionSupport, each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
        match self {
            Self::Table(table) => tables.text_of(*table, each),
            Self::Set(set, part) => set.text_of(*part, each),
        }
    }
}

pub(crate) fn generate(request: &Generate) -> Result<(), Failure> {
    let chosen = request::workload(&request.workload, Mode::default())?;
    let tables = chosen.decision_support()?;
    let content = Content::of(request, tables)?;
    stop::exit_on_signal("the file is incomplete")?;
    let refused = |error: io::Error| Failure::Record(format!("out: {}: {error}", request.out.display()));
    let started = Instant::now();
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(&request.out).map_err(refused)?);
    let mut bytes = 0;
    let written = content.write(tables, |text| {
        bytes += text.len();
        file.write_all(text)
    });
    let rows = written.map_err(refused)?;
    file.flush().map_err(refused)?;
    let seconds = started.elapsed().as_secs_f64();
    let mut told = json!({"table": request.table, "rows": rows, "bytes": bytes, "seconds": seconds});
    if let Content::Set(set, part) = content {
        told["set"] = json!(set.number());
        told["lines"] = json!(set.lines(part.function()));
    }
    output::event("generated", told);
    Ok(())
}
