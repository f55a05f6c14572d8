//! `plimsoll-agent VERB`: a request on standard input, JSON lines on standard output, as `schema/agent.md` has it.
//!
//! The fact that constrains it: it records and never judges, and it ends with whoever started it.

mod data;
mod failure;
mod generate;
mod load;
mod loading;
mod output;
mod plan;
mod probes;
mod refresh;
mod request;
mod sampler;
mod stop;
mod streams;
mod summary;
mod watch;
mod workload;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::io::BufRead;
use std::process::ExitCode;

/// Load and probes of Plimsoll, on the host under test or a load host. Reads one JSON document from the first line of
/// standard input.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Copy, Subcommand)]
enum Verb {
    /// Says what a workload is: kinds, tables, size, DDL and statements.
    Describe,
    /// Makes the schema and loads it.
    Populate,
    /// Performs transactions and records them.
    Load,
    /// Writes a table of decision_support as text.
    Generate,
    /// Performs refresh functions of decision_support.
    Refresh,
    /// Performs the power or the throughput test of decision_support and records it.
    Streams,
    /// Watches with probes in the kernel, without a load of its own.
    Watch,
    /// Compares the tables with what was done to them.
    Check,
    /// Removes the schema.
    Drop,
    /// Prints the queries of decision_support's streams, for clients that are other programs.
    Plan,
    /// Is the known stimulus of the breakdown's self-test, for a version of PostgreSQL; the probe starts it.
    #[cfg(feature = "bpf")]
    #[command(hide = true)]
    Stimulus { major: u32 },
    /// Is the known stimulus of the profile's self-test; the probe starts it.
    #[cfg(feature = "bpf")]
    #[command(hide = true)]
    Sampled,
}

fn main() -> ExitCode {
    let verb = Arguments::parse().verb;
    match perform(verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            eprintln!("plimsoll-agent: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn perform(verb: Verb) -> Result<(), Failure> {
    #[cfg(feature = "bpf")]
    if let Verb::Stimulus { major } = verb {
        stop::end_with_parent()?;
        let served = plimsoll_probe::breakdown::serve_stimulus(major);
        return served.map_err(|error| Failure::Request(format!("standard input: {error}")));
    }
    #[cfg(feature = "bpf")]
    if let Verb::Sampled = verb {
        stop::end_with_parent()?;
        return plimsoll_probe::profile::serve_sampled().map_err(|error| Failure::Request(format!("pipe: {error}")));
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|e| Failure::Request(format!("standard input: {e}")))?;
    stop::end_with_parent()?;
    match verb {
        Verb::Describe => data::describe(&request::parse(&line)?),
        Verb::Populate => data::populate(&request::parse(&line)?),
        Verb::Load => load::load(&request::parse(&line)?),
        Verb::Generate => generate::generate(&request::parse(&line)?),
        Verb::Refresh => refresh::refresh(&request::parse(&line)?),
        Verb::Streams => streams::streams(&request::parse(&line)?),
        Verb::Watch => watch::watch(&request::parse(&line)?),
        Verb::Check => data::check(&request::parse(&line)?),
        Verb::Drop => data::drop_data(&request::parse(&line)?),
        Verb::Plan => plan::plan(&request::parse(&line)?),
        #[cfg(feature = "bpf")]
        Verb::Stimulus { .. } | Verb::Sampled => Ok(()),
    }
}
