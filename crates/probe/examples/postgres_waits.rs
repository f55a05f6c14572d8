//! Prints the table of wait events of a PostgreSQL server's program, as src/postgres_waits keeps one a version:
//! `cargo run -p plimsoll-probe --example postgres_waits -- /usr/lib/postgresql/19/bin/postgres`.

#[path = "../tests/postgres_waits/server.rs"]
mod server;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(postgres) = std::env::args_os().nth(1) else {
        eprintln!("postgres_waits: name the server's program, such as /usr/lib/postgresql/19/bin/postgres");
        return ExitCode::from(2);
    };
    match server::ask(Path::new(&postgres)) {
        Ok(answers) => print!("{}", answers.table()),
        Err(why) => {
            eprintln!("postgres_waits: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
