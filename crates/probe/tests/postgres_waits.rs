//! The tables of wait events against the PostgreSQL servers of this machine: their own programs say what each number means.

#[path = "postgres_waits/server.rs"]
mod server;

use plimsoll_probe::postgres_waits::WaitNames;
use server::{Answers, ask, is_no_name};
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

const SERVERS: &str = "/usr/lib/postgresql";
/// A folder of more of them; `./test --long` installs some.
const MORE_SERVERS: &str = "PLIMSOLL_TEST_SERVERS";

/// Programs of versions that have a table.
fn installed() -> Vec<(u32, PathBuf)> {
    let more = std::env::var_os(MORE_SERVERS).map(PathBuf::from);
    std::iter::once(SERVERS.into()).chain(more).flat_map(|folder| installed_in(&folder)).collect()
}

fn installed_in(folder: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(versions) = fs::read_dir(folder) else { return Vec::new() };
    let server = |version: PathBuf| {
        let major = version.file_name()?.to_str()?.parse().ok()?;
        let postgres = version.join("bin/postgres");
        (postgres.exists() && WaitNames::of(major).is_some()).then_some((major, postgres))
    };
    versions.flatten().filter_map(|entry| server(entry.path())).collect()
}

/// How a server's minor version stands to that of the table: within a major version events are only appended.
fn minor_against(version: &str, table: &str) -> Ordering {
    let of_table = table.trim_start_matches("# PostgreSQL ").split(',').next().unwrap_or_default();
    let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    minor(version).cmp(&minor(of_table))
}

/// What the table and the server have different names for. A table of a later minor version may know more than the server; a later
/// server more than the table, which a machine that is kept up to date comes to by itself: such a wait has no name in a report.
fn differences(names: &WaitNames, answers: &Answers, server: Ordering) -> Vec<String> {
    let mut found = Vec::new();
    for (info, class, event) in &answers.events {
        let Some(event) = event.as_deref() else { continue };
        let said = (!is_no_name(event)).then_some((class.as_str(), event));
        let known = names.name(*info);
        let only_later = match server {
            Ordering::Less => said.is_none(),
            Ordering::Equal => false,
            Ordering::Greater => known.is_none(),
        };
        if known != said && !only_later {
            found.push(format!("{info:08x}: the server says {said:?}, the table {known:?}"));
        }
    }
    found
}

#[test]
fn installed_servers_say_what_their_tables_say() {
    let servers = installed();
    assert!(!servers.is_empty(), "no PostgreSQL 13 to 18 under {SERVERS}: install one (Debian: postgresql-15)");
    for (major, postgres) in servers {
        let answers = ask(&postgres).unwrap_or_else(|why| panic!("{}: {why}", postgres.display()));
        let names = WaitNames::of(major).unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/postgres_waits/{major}.txt"));
        let table = fs::read_to_string(&path).unwrap();
        let server = minor_against(&answers.version, &table);
        let found = differences(&names, &answers, server);
        assert!(
            found.is_empty(),
            "PostgreSQL {} has other names than {} (docs/decisions/0014-names-of-waits.md says how to print it anew):\n{}",
            answers.version,
            path.display(),
            found.join("\n"),
        );
        let is_same = server == Ordering::Equal;
        assert!(!is_same || answers.table() == table, "{} is not as the example prints it", path.display());
        // One in every class at least, so that a server that says nothing is not taken for one that agrees.
        assert!(answers.events.len() > 1000, "PostgreSQL {} answered too little", answers.version);
    }
}

#[test]
fn a_minor_version_is_compared_as_a_number() {
    let table = "# PostgreSQL 15.9, printed by the server";
    assert_eq!(minor_against("15.10", table), Ordering::Greater);
    assert_eq!(minor_against("15.9", table), Ordering::Equal);
    assert_eq!(minor_against("15.8", table), Ordering::Less);
}

#[test]
fn a_program_without_the_names_is_refused() {
    let why = ask(Path::new("/bin/true")).err().unwrap();
    assert!(why.contains("this program has no pgstat_get_wait_event"), "{why}");
}
