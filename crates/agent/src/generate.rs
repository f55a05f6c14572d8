//! `generate`: a table of decision_support, or part of a refresh set, as text, for servers that are loaded by their own client.
//!
//! The fact that constrains it: what is written is what `populate` loads, and what a refresh function inserts or deletes. A pipe
//! will do, so that no file need lie between. The generator's pool of words is made once, so several texts are asked for at once.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Generate, Part};
use crate::stop;
use crate::workload;
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
    fn of(part: &Part, tables: &DecisionSupport) -> Result<Self, Failure> {
        let name = &part.table;
        let Some(number) = part.set else {
            let unknown = || Failure::Request(format!("table: there is no table {name}"));
            return tables.table_number(name).map(Self::Table).ok_or_else(unknown);
        };
        let of_set = SetPart::of_table(name).ok_or_else(|| {
            Failure::Request(format!("table: a refresh set has no {name}; allowed: orders, lineitem, refresh_key"))
        })?;
        let set = RefreshSet::new(tables.scale_factor(), number)
            .ok_or_else(|| Failure::Request(format!("set: {number} is not between 1 and {SETS_MAX}")))?;
        Ok(Self::Set(set, of_set))
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
    let workload = request::workload(&request.workload, Mode::default())?;
    let tables = workload::decision_support(workload.as_ref())?;
    let parts = request.parts()?;
    let contents = parts.iter().map(|part| Content::of(part, tables)).collect::<Result<Vec<_>, _>>()?;
    stop::exit_on_signal("the file is incomplete")?;
    parts.iter().zip(&contents).try_for_each(|(part, content)| write(part, content, tables))
}

fn write(part: &Part, content: &Content, tables: &DecisionSupport) -> Result<(), Failure> {
    let refused = |error: io::Error| Failure::Record(format!("out: {}: {error}", part.out.display()));
    let started = Instant::now();
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(&part.out).map_err(refused)?);
    let mut bytes = 0;
    let written = content.write(tables, |text| {
        bytes += text.len();
        file.write_all(text)
    });
    let rows = written.map_err(refused)?;
    // Closed before it is told: who reads a pipe waits for its end.
    file.into_inner().map_err(|error| refused(error.into_error()))?;
    let seconds = started.elapsed().as_secs_f64();
    let mut told = json!({"table": part.table, "rows": rows, "bytes": bytes, "seconds": seconds});
    if let Content::Set(set, of_set) = content {
        told["set"] = json!(set.number());
        told["lines"] = json!(set.lines(of_set.function()));
    }
    output::event("generated", told);
    Ok(())
}
