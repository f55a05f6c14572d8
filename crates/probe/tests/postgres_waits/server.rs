//! Asks a server's program for its names of wait events, without starting the server: names.c is loaded into it.

use std::path::Path;
use std::process::Command;

const SOURCE: &str = include_str!("names.c");

/// What a server's program answers.
pub(crate) struct Answers {
    /// As it says it, such as 15.18.
    pub(crate) version: String,
    /// Number, class and event, in the order of the numbers, with what is no name as the server says it; before those of a
    /// class an entry without event.
    pub(crate) events: Vec<(u32, String, Option<String>)>,
}

/// Whether the server's `answer` for an event is its way to say that there is none of its own.
pub(crate) fn is_no_name(answer: &str) -> bool {
    matches!(answer, "-" | "???" | "unknown wait event") || answer.starts_with("<unassigned")
}

fn said(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command.output().map_err(|error| format!("{shown}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{shown}: {}", String::from_utf8_lossy(&done.stderr))),
    }
}

fn answer(line: &str) -> Result<(u32, String, Option<String>), String> {
    let mut parts = line.splitn(3, ' ');
    let info = parts.next().and_then(|info| u32::from_str_radix(info, 16).ok());
    let (Some(info), Some(class)) = (info, parts.next()) else { return Err(format!("not an answer: {line}")) };
    Ok((info, class.to_owned(), parts.next().map(str::to_owned)))
}

/// Asks the program `postgres`.
pub(crate) fn ask(postgres: &Path) -> Result<Answers, String> {
    let version = said(Command::new(postgres).arg("--version"))?;
    let version = version.split_ascii_whitespace().nth(2).ok_or_else(|| format!("no version in {version}"))?.to_owned();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, library) = (folder.path().join("names.c"), folder.path().join("names.so"));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    said(&mut compiler).map_err(|why| format!("the C compiler (Debian: install gcc or clang): {why}"))?;
    let printed = said(Command::new(postgres).arg("--version").env("LD_PRELOAD", &library))?;
    let events = printed.lines().map(answer).collect::<Result<Vec<_>, _>>()?;
    Ok(Answers { version, events })
}

impl Answers {
    /// The table of this server as crates/probe/src/postgres_waits keeps it.
    pub(crate) fn table(&self) -> String {
        let mut table = format!("# PostgreSQL {}, printed by the server's own pgstat_get_wait_event", self.version);
        let (mut first, mut holes) = (None, 0);
        for (_, class, event) in &self.events {
            let Some(event) = event.as_deref() else {
                table.push_str(&format!("\n{class}:"));
                (first, holes) = (None, 0);
                continue;
            };
            // A class whose events have one name has one event, and "extension" stands for what others register.
            if is_no_name(event) || event == "extension" || first == Some(event) {
                holes += 1;
                continue;
            }
            table.push_str(&" -".repeat(holes));
            table.push_str(&format!(" {event}"));
            holes = 0;
            first = first.or(Some(event));
        }
        table.push('\n');
        table
    }
}
