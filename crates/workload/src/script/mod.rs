//! `script`: users' pgbench script files, run unchanged.
//!
//! A transaction is one run of one script; its kind is the script's name. Commands, expressions and random numbers are
//! those of pgbench 15: with the same seed, number of clients and order of scripts, a client draws what pgbench's
//! client of that number draws. Which connection takes which transaction is up to the engine, so draws are a function
//! of the client and of how many transactions it has begun, not of the transaction's index; with one client the whole
//! run is determined. Scripts are chosen from a stream of the client's own, as by pgbench with a thread for every
//! client (`-j` equal to `-c`).
//!
//! A client's variables live as long as its connection. As in pgbench, another try of a transaction draws the same
//! numbers but does not put variables back, and what a failed transaction drew stays drawn.
//!
//! What differs from pgbench:
//!
//! - An error of the server, or of an expression, ends the transaction as failed (SQLSTATE `XXSCR` for an expression),
//!   and the client goes on with its next one; pgbench ends the client.
//! - In mode prepared all statements are prepared when a connection is opened, so a wrong one is refused before the
//!   run.
//! - What certainly fails is refused before the run: open quotes, and in modes extended and prepared `\;` and variables
//!   in quotes or comments.
//! - `debug()` gives its argument and prints nothing. `\sleep` does not wrap beyond 2147 s. `abs(true)` is an
//!   error, and so is a distribution's parameter that is no number.
//! - What is between `\startpipeline` and `\endpipeline` is sent when the pipeline ends, as one request; libpq sends it
//!   sooner where it is long. A pipeline that is certainly wrong is refused before the run, as in mode simple all are.
//! - `\setshell`, `\shell`, `\aset`, `\syncpipeline` (of pgbench 17), and two scripts of one name are refused.

mod client;
mod columns;
mod definitions;
mod expression;
mod hash;
mod names;
mod parse;
mod random;
mod sleep;
mod source;
mod sql;
mod statement;
#[cfg(test)]
mod tests;
mod value;
mod variables;
mod workload;

pub use client::ScriptClient;
pub use definitions::Definition;

use names::{DEFAULT_SEED, Names, is_valid};
use parse::{Reading, Step};
use plimsoll_target::postgres::Mode;
use random::Seeds;
use serde::Deserialize;
use statement::Command;
use std::collections::BTreeMap;
use variables::Variables;

/// The workload's name.
pub const NAME: &str = "script";

/// As many as pgbench allows.
const SCRIPTS_MAX: usize = 128;
const WEIGHTS_MAX: u64 = i64::MAX as u64;

/// One script.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What it is called; its file's name. `@` and a number at the end is its weight, as in pgbench's `-f`.
    pub name: String,
    /// What the file holds.
    pub text: String,
    /// How often it is chosen, relative to the others; 1 if it is given nowhere.
    #[serde(default)]
    pub weight: Option<u32>,
}

/// The workload's own part of a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Always [`NAME`].
    pub name: String,
    /// The scripts, in the order of pgbench's `-f`.
    pub scripts: Vec<Source>,
    /// As pgbench's `-D`; `scale` is 1 if it is not given.
    #[serde(default)]
    pub variables: BTreeMap<String, Definition>,
    /// As pgbench's `--random-seed`.
    pub seed: u64,
    /// As pgbench's `-c`; how many clients take their seeds before anything else does.
    pub client_count: u32,
}

#[derive(Clone, Debug)]
struct Script {
    name: String,
    weight: u32,
    steps: Vec<Step>,
}

/// Scripts, ready to run.
#[derive(Debug)]
pub struct Scripts {
    mode: Mode,
    scripts: Vec<Script>,
    commands: Vec<Command>,
    names: Names,
    /// What every client begins with; its number is set where it is kept.
    variables: Variables,
    client_id: Option<usize>,
    seeds: Seeds,
}

impl Scripts {
    /// Reads the scripts, to be run in `mode`.
    ///
    /// # Errors
    /// All that is wrong, a line each, with script and line.
    pub fn new(parameters: &Parameters, mode: Mode) -> Result<Self, String> {
        let mut reading = Reading { mode, script: String::new(), names: Names::default(), commands: Vec::new() };
        let mut problems = Vec::new();
        let mut scripts: Vec<Script> = Vec::new();
        for source in &parameters.scripts {
            let (name, weight) = name_and_weight(source);
            name.clone_into(&mut reading.script);
            match parse::parse(&source.text, &mut reading) {
                Ok(_) if scripts.iter().any(|script| script.name == name) => {
                    problems.push(format!("script {name}: two scripts have this name"));
                }
                Ok(steps) if steps.is_empty() => problems.push(format!("script {name}: it holds no command")),
                Ok(steps) => scripts.push(Script { name: name.to_owned(), weight, steps }),
                Err(found) => {
                    problems
                        .extend(found.iter().map(|(line, message)| format!("script {name}, line {line}: {message}")));
                }
            }
        }
        problems.extend(wrong_as_a_whole(parameters));
        if !problems.is_empty() {
            return Err(problems.join("\n"));
        }
        let Reading { mut names, commands, .. } = reading;
        let draws_default = !parameters.variables.contains_key(DEFAULT_SEED);
        let seeds = Seeds::new(parameters.seed, parameters.client_count, draws_default);
        let (variables, client_id) =
            definitions::first_variables(&parameters.variables, parameters.seed, &seeds, &mut names);
        Ok(Self { mode, scripts, commands, names, variables, client_id, seeds })
    }
}

/// A script's name and weight; a weight in the name counts unless there is another.
fn name_and_weight(source: &Source) -> (&str, u32) {
    let in_name = source.name.rsplit_once('@').and_then(|(name, weight)| Some((name, weight.parse().ok()?)));
    match in_name {
        Some((name, weight)) => (name, source.weight.unwrap_or(weight)),
        None => (&source.name, source.weight.unwrap_or(1)),
    }
}

fn wrong_as_a_whole(parameters: &Parameters) -> Vec<String> {
    let mut problems = Vec::new();
    let count = parameters.scripts.len();
    if !(1..=SCRIPTS_MAX).contains(&count) {
        problems.push(format!("workload.scripts: {count} scripts; allowed: 1 to {SCRIPTS_MAX}"));
    }
    let total: u64 = parameters.scripts.iter().map(|source| u64::from(name_and_weight(source).1)).sum();
    if total == 0 || total > WEIGHTS_MAX {
        problems.push(format!("workload.scripts: the weights add up to {total}; allowed: 1 to {WEIGHTS_MAX}"));
    }
    for name in parameters.variables.keys().filter(|name| !is_valid(name)) {
        problems.push(format!("workload.variables: {name} is not a name: letters, digits and _, no digit first"));
    }
    let is_empty = |definition: &Definition| matches!(definition, Definition::Text(text) if text.is_empty());
    for (name, _) in parameters.variables.iter().filter(|(_, definition)| is_empty(definition)) {
        problems.push(format!("workload.variables: {name} has an empty text"));
    }
    if parameters.client_count == 0 {
        problems.push("workload.client_count: must be 1 or more".to_owned());
    }
    problems
}
