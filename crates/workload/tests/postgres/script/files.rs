//! Thirteen script files in the style of public pgbench use, run unchanged: what they leave in their tables equals what
//! pgbench 15 left, which is recorded beside them, and what the pgbench of this machine leaves if it is of version 15.

use super::{is_recording, open, path, read};
use crate::server::Server;
use crate::support::perform_all;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::script::{Definition, NAME, Parameters, Scripts, Source};
use serde::Deserialize;
use std::collections::BTreeMap;

const EXPECTED: &str = "expected.json";

fn all_modes() -> Vec<Mode> {
    vec![Mode::Simple, Mode::Extended, Mode::Prepared]
}

/// One way to run one or more of the files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    name: String,
    scripts: Vec<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    seed: u64,
    clients: u32,
    transactions: u64,
    #[serde(default = "all_modes")]
    modes: Vec<Mode>,
    check: String,
}

fn file_of(script: &str) -> &str {
    script.split('@').next().unwrap()
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Simple => "simple",
        Mode::Extended => "extended",
        Mode::Prepared => "prepared",
    }
}

/// What the run's tables hold, in short.
fn state(server: &Server, run: &Run) -> String {
    let answer = |sql: &str| {
        let rows = format!("SELECT count(*), md5(coalesce(string_agg(row::text, ' '), '')) FROM ({sql}) AS row");
        server.sql(&rows).replace('|', " rows ")
    };
    run.check.split(';').map(answer).collect::<Vec<_>>().join(", ")
}

fn by_pgbench(server: &Server, run: &Run, mode: Mode) -> String {
    server.sql(&read("setup.sql"));
    let mut arguments: Vec<String> = ["-n", "-M", word(mode)].map(str::to_owned).to_vec();
    arguments.push(format!("--random-seed={}", run.seed));
    arguments.extend([format!("-c{}", run.clients), format!("-j{}", run.clients), format!("-t{}", run.transactions)]);
    arguments.extend(run.variables.iter().map(|(name, value)| format!("-D{name}={value}")));
    for script in &run.scripts {
        let weight = &script[file_of(script).len()..];
        arguments.push(format!("-f{}{weight}", server.file(file_of(script), &read(file_of(script)))));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (success, said) = server.try_pgbench(&arguments);
    assert!(success, "{} {}: {said}", run.name, word(mode));
    state(server, run)
}

fn by_us(server: &Server, run: &Run, mode: Mode) -> String {
    server.sql(&read("setup.sql"));
    let source = |script: &String| Source { name: script.clone(), text: read(file_of(script)), weight: None };
    let parameters = Parameters {
        name: NAME.to_owned(),
        scripts: run.scripts.iter().map(source).collect(),
        variables: run.variables.iter().map(|(name, text)| (name.clone(), Definition::Text(text.clone()))).collect(),
        seed: run.seed,
        client_count: run.clients,
    };
    let scripts = Scripts::new(&parameters, mode).unwrap_or_else(|problems| panic!("{problems}"));
    perform_all(open(server, scripts, mode, 0, run.clients), run.transactions);
    state(server, run)
}

#[test]
fn scripts_leave_what_pgbench_leaves() {
    let Some(server) = Server::start("") else { return };
    let runs: Vec<Run> = serde_json::from_str(&read("runs.json")).unwrap();
    let mut expected: BTreeMap<String, String> = serde_json::from_str(&read(EXPECTED)).unwrap();
    for run in &runs {
        for &mode in &run.modes {
            let key = format!("{}, {}", run.name, word(mode));
            if server.has_pgbench_15() {
                let found = by_pgbench(&server, run, mode);
                if is_recording() {
                    expected.insert(key.clone(), found);
                } else {
                    assert_eq!(Some(&found), expected.get(&key), "{key}: pgbench against its record");
                }
            }
            assert_eq!(Some(&by_us(&server, run, mode)), expected.get(&key), "{key}");
        }
    }
    if is_recording() {
        std::fs::write(path(EXPECTED), serde_json::to_string_pretty(&expected).unwrap() + "\n").unwrap();
    }
}
