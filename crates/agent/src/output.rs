//! JSON lines on standard output.

use serde::Serialize;
use std::io::Write;

/// Writes one line and flushes it. A reader that is gone is no error here: standard input tells of it.
pub(crate) fn line(value: &impl Serialize) {
    let mut out = std::io::stdout().lock();
    if serde_json::to_writer(&mut out, value).is_ok() {
        let _ = out.write_all(b"\n");
        let _ = out.flush();
    }
}

/// An event: `{"event": name, ...fields of value}`.
#[derive(Serialize)]
pub(crate) struct Event<'a, T: Serialize> {
    pub(crate) event: &'a str,
    #[serde(flatten)]
    pub(crate) value: T,
}

/// Writes an event.
pub(crate) fn event(event: &str, value: impl Serialize) {
    line(&Event { event, value });
}
