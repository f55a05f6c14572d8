//! The records of what pgbench 15 draws and computes, with which the unit tests compare us, against the pgbench of this
//! machine if it is of version 15.

use super::{is_recording, path, read};
use crate::server::Server;

const SEEDS: [&str; 2] = ["42", "18446744073709551615"];

/// Compares the record `name` with `found`, or writes it.
fn settle(name: &str, found: &str) {
    if is_recording() {
        return std::fs::write(path(name), found).unwrap();
    }
    let recorded = read(name);
    for (number, (recorded, found)) in recorded.lines().zip(found.lines()).enumerate() {
        assert_eq!(recorded, found, "{name}, line {}", number + 1);
    }
    assert_eq!(recorded.len(), found.len(), "{name}");
}

fn server() -> Option<Server> {
    let server = Server::start("")?;
    if !server.has_pgbench_15() {
        eprintln!("skipped: pgbench is not of version 15");
        return None;
    }
    Some(server)
}

#[test]
fn draws_are_recorded_as_pgbench_draws() {
    let Some(server) = server() else { return };
    server.sql("CREATE TABLE draws (id serial, client int, row text)");
    let file = server.file("draws.sql", &read("draws.sql"));
    let mut found = String::new();
    for seed in SEEDS {
        let (success, said) =
            server.try_pgbench(&["-n", "-f", &file, "-c3", "-j3", "-t30", &format!("--random-seed={seed}")]);
        assert!(success, "{said}");
        for line in server.sql("SELECT client, row FROM draws ORDER BY client, id").lines() {
            found.push_str(&format!("{seed} {}\n", line.replace('|', " ")));
        }
        server.sql("TRUNCATE draws");
    }
    settle("draws.txt", &found);
}

/// Scripts 0, 1 and 2 with weights 1, 3 and 2: one digit for each transaction of a client.
#[test]
fn choices_are_recorded_as_pgbench_chooses() {
    let Some(server) = server() else { return };
    server.sql("CREATE TABLE chosen (id serial, client int, script int)");
    let mut arguments: Vec<String> = ["-n", "-c3", "-j3", "-t60", "--random-seed=42"].map(str::to_owned).to_vec();
    for (script, weight) in [1, 3, 2].iter().enumerate() {
        let text = format!("INSERT INTO chosen (client, script) VALUES (:client_id, {script});");
        arguments.push(format!("-f{}@{weight}", server.file(&format!("{script}.sql"), &text)));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (success, said) = server.try_pgbench(&arguments);
    assert!(success, "{said}");
    let found =
        server.sql("SELECT string_agg(script::text, '' ORDER BY id) FROM chosen GROUP BY client ORDER BY client");
    settle("choices.txt", &(found + "\n"));
}

#[test]
fn expressions_are_recorded_as_pgbench_computes() {
    let Some(server) = server() else { return };
    let mut found = String::new();
    let variables = [
        "-Di=42",
        "-Dd=2.5",
        "-Dt=true",
        "-Dy=Yes",
        "-Dn=null",
        "-Dword=abc",
        "-Dneg=-7",
        "-Dzeros=007",
        "-Dbig=9223372036854775807",
    ];
    for line in read("expressions.txt").lines() {
        if line.starts_with('#') {
            found.push_str(&format!("{line}\n"));
            continue;
        }
        let expression = line.split('\t').next().unwrap();
        let file = server.file("expression.sql", &format!("\\set x debug({expression})\n\\set y 1\n"));
        let plain = server.file("plain.sql", &format!("\\set x {expression}\n"));
        let mut arguments = vec!["-n", "-t1", "--random-seed=42"];
        arguments.extend(variables);
        let run = |file: &str| server.try_pgbench(&[&arguments[..], &["-f", file]].concat());
        let (success, said) = run(&file);
        // The brackets of debug() could make a whole of what is none.
        let (_, said_plain) = run(&plain);
        let debugged = said.lines().filter_map(|line| line.split_once("): ")).map(|(_, value)| value).next_back();
        let refused = said_plain.contains("in command \"set\"");
        let error = said.lines().find_map(|line| line.strip_prefix("pgbench: error: "));
        let result = match (debugged, error) {
            _ if refused => "refused".to_owned(),
            (Some(value), _) if success => value.to_owned(),
            (_, Some(error)) => format!("error {error}"),
            _ => panic!("{expression}: {said}"),
        };
        found.push_str(&format!("{expression}\t{result}\n"));
    }
    settle("expressions.txt", &found);
}
