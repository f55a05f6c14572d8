//! `generate`: a table of decision_support as text, for servers that are loaded by their own client.
//!
//! The fact that constrains it: what is written is what `populate` loads. A pipe will do, so that no file need lie between.

use crate::failure::Failure;
use crate::output;
use crate::request::{self, Generate};
use crate::stop;
use plimsoll_target::postgres::Mode;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

const BUFFER_BYTES: usize = 1 << 20;

pub(crate) fn generate(request: &Generate) -> Result<(), Failure> {
    let chosen = request::workload(&request.workload, Mode::default())?;
    let tables = chosen.decision_support()?;
    let unknown = || Failure::Request(format!("table: there is no table {}", request.table));
    let table = tables.table_number(&request.table).ok_or_else(unknown)?;
    stop::exit_on_signal("the file is incomplete")?;
    let refused = |error: std::io::Error| Failure::Record(format!("out: {}: {error}", request.out.display()));
    let started = Instant::now();
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(&request.out).map_err(refused)?);
    let mut bytes = 0;
    let written = tables.text_of(table, |text| {
        bytes += text.len();
        file.write_all(text)
    });
    let rows = written.map_err(refused)?;
    file.flush().map_err(refused)?;
    let seconds = started.elapsed().as_secs_f64();
    output::event("generated", json!({"table": request.table, "rows": rows, "bytes": bytes, "seconds": seconds}));
    Ok(())
}
