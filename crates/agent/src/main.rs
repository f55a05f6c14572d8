//! `plimsoll-agent VERB`: a request on standard input, JSON lines on standard output, as `schema/agent.md` has it.
//!
//! The fact that constrains it: it records and never judges, and it ends with whoever started it.

mod data;
mod failure;
#[cfg(test)]
mod files_load;
mod generate;
mod import;
mod load;
mod loading;
mod output;
mod plan;
mod probes;
mod process;
mod refresh;
mod request;
mod respond;
mod sampler;
mod segment;
mod stop;
mod streams;
mod summary;
mod target;
mod watch;
mod windows;
mod workload;

use failure::Failure;
use std::io::BufRead;
use std::process::ExitCode;

/// What it can be asked for. Help names those with a word about them; the others a probe starts for its self-test.
#[derive(Clone, Copy)]
enum Verb {
    Describe,
    Populate,
    Load,
    Generate,
    Import,
    Refresh,
    Streams,
    Watch,
    Check,
    Drop,
    Plan,
    Respond,
    /// The known stimulus of the breakdown's self-test, for a version of PostgreSQL.
    #[cfg(feature = "bpf")]
    Stimulus {
        major: u32,
    },
    /// The known stimulus of the profile's self-test.
    #[cfg(feature = "bpf")]
    Sampled,
}

const VERBS: [(&str, Verb, &str); 12] = [
    ("describe", Verb::Describe, "Says what a workload is: kinds, tables, size, DDL and statements"),
    ("populate", Verb::Populate, "Makes the schema and loads it"),
    ("load", Verb::Load, "Performs transactions and records them"),
    ("generate", Verb::Generate, "Writes a table of decision_support as text"),
    ("import", Verb::Import, "Reads a packet capture of NFS and records its calls"),
    ("refresh", Verb::Refresh, "Performs refresh functions of decision_support"),
    ("streams", Verb::Streams, "Performs the power or the throughput test of decision_support and records it"),
    ("watch", Verb::Watch, "Watches with probes in the kernel, without a load of its own"),
    ("check", Verb::Check, "Compares the tables with what was done to them"),
    ("drop", Verb::Drop, "Removes the schema"),
    ("plan", Verb::Plan, "Prints the queries of decision_support's streams, for clients that are other programs"),
    (
        "respond",
        Verb::Respond,
        "Answers, behind a web server, what is no plain file (FastCGI; started as a CGI program: CGI)",
    ),
];

/// What the arguments after the program's name ask for; else what is to be said of them.
fn asked(arguments: &[String]) -> Result<Verb, String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        #[cfg(feature = "bpf")]
        ["stimulus", major] => {
            major.parse().map(|major| Verb::Stimulus { major }).map_err(|_| format!("stimulus {major}: not a version"))
        }
        #[cfg(feature = "bpf")]
        ["sampled"] => Ok(Verb::Sampled),
        [name] => VERBS.iter().find(|verb| verb.0 == name).map(|verb| verb.1).ok_or(format!("{name}: not a verb")),
        [] => Err("no verb is given".to_owned()),
        _ => Err("more than one verb is given".to_owned()),
    }
}

fn usage() -> String {
    let verbs: String = VERBS.iter().map(|(name, _, about)| format!("  {name:<9} {about}\n")).collect();
    format!(
        "Load and probes of Plimsoll, on the host under test or a load host. Reads one JSON document from the first line\n\
         of standard input.\n\nUsage: plimsoll-agent VERB | --help | --version\n\n{verbs}"
    )
}

fn main() -> ExitCode {
    if respond::is_cgi() {
        return respond::once();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [only] = &arguments[..] {
        match only.as_str() {
            "--help" | "-h" => {
                print!("{}", usage());
                return ExitCode::SUCCESS;
            }
            "--version" | "-V" => {
                println!("plimsoll-agent {}", env!("CARGO_PKG_VERSION"));
                return ExitCode::SUCCESS;
            }
            _ => {}
        }
    }
    let verb = match asked(&arguments) {
        Ok(verb) => verb,
        Err(said) => {
            eprintln!("plimsoll-agent: {said}\n\n{}", usage());
            return ExitCode::from(2);
        }
    };
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
        Verb::Import => import::import(&request::parse(&line)?),
        Verb::Refresh => refresh::refresh(&request::parse(&line)?),
        Verb::Streams => streams::streams(&request::parse(&line)?),
        Verb::Watch => watch::watch(&request::parse(&line)?),
        Verb::Check => data::check(&request::parse(&line)?),
        Verb::Drop => data::drop_data(&request::parse(&line)?),
        Verb::Plan => plan::plan(&request::parse(&line)?),
        Verb::Respond => respond::respond(&request::parse(&line)?),
        #[cfg(feature = "bpf")]
        Verb::Stimulus { .. } | Verb::Sampled => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn asked_with(arguments: &[&str]) -> Result<Verb, String> {
        asked(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_verb_of_the_help_is_one() {
        for (name, verb, about) in VERBS {
            let found = asked_with(&[name]).unwrap();
            assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&verb), "{name}");
            assert!(usage().contains(&format!("  {name:<9} {about}\n")));
        }
    }

    #[test]
    fn anything_else_is_refused_and_said() {
        let said = |arguments: &[&str]| asked_with(arguments).err().unwrap();
        assert_eq!(said(&[]), "no verb is given");
        assert_eq!(said(&["dream"]), "dream: not a verb");
        assert_eq!(said(&["--verbose"]), "--verbose: not a verb");
        assert_eq!(said(&["load", "--help"]), "more than one verb is given");
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn a_self_test_starts_its_own_verbs() {
        assert!(matches!(asked_with(&["stimulus", "15"]), Ok(Verb::Stimulus { major: 15 })));
        assert!(asked_with(&["stimulus", "fifteen"]).is_err());
        assert!(asked_with(&["stimulus"]).is_err());
        assert!(matches!(asked_with(&["sampled"]), Ok(Verb::Sampled)));
    }
}
