//! Verb `respond`: what stands behind a web server, until it is told to end; and the same as a CGI program, for one request.

use crate::failure::Failure;
use crate::stop::Cause;
use crate::{output, stop};
use plimsoll_load::raise_descriptor_limit;
use plimsoll_responder::{Limits, Listen, Responder, Totals, cgi};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::channel;

const THREADS_MAX: u32 = 1_024;
const CONNECTIONS_MAX: u32 = 65_536;
/// Descriptors of a thread: the pipes of a process, and a file.
const DESCRIPTORS_A_THREAD: u32 = 8;

/// What the verb is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RespondRequest {
    listen: String,
    folder: PathBuf,
    program: PathBuf,
    #[serde(default = "threads")]
    threads: u32,
    #[serde(default = "connections")]
    connections: u32,
}

fn threads() -> u32 {
    8
}

fn connections() -> u32 {
    1_024
}

impl RespondRequest {
    fn limits(&self) -> Result<Limits, Failure> {
        let &Self { threads, connections, .. } = self;
        let within = |name: &str, value, max| match (1..=max).contains(&value) {
            true => Ok(()),
            false => Err(Failure::Request(format!("{name}: {value} is not between 1 and {max}"))),
        };
        within("threads", threads, THREADS_MAX)?;
        within("connections", connections, CONNECTIONS_MAX)?;
        Ok(Limits { threads, connections })
    }
}

/// Answers until it is told to end.
pub(crate) fn respond(request: &RespondRequest) -> Result<(), Failure> {
    let limits = request.limits()?;
    let listen: Listen = request.listen.parse().map_err(|why| Failure::Request(format!("listen: {why}")))?;
    for (name, folder) in [("folder", &request.folder), ("program", &request.program)] {
        if !folder.is_dir() {
            return Err(Failure::Request(format!("{name}: {} is no folder", folder.display())));
        }
    }
    let refused = |error: std::io::Error| Failure::Target(format!("listen: {error}"));
    let descriptors = limits.connections.saturating_add(limits.threads * DESCRIPTORS_A_THREAD);
    raise_descriptor_limit(descriptors).map_err(|error| Failure::Target(error.to_string()))?;
    let executable = std::env::current_exe().map_err(refused)?;
    let responder =
        Responder::new(&listen, (&request.folder, &request.program), executable, limits).map_err(refused)?;
    let (heard, causes) = channel();
    stop::watch(&heard, |cause| cause, |_| None)?;
    output::event("responding", json!({"listen": request.listen}));
    let stopper = responder.stopper();
    let until = std::thread::spawn(move || {
        let cause = causes.recv();
        stopper.stop();
        cause
    });
    let totals = responder.run().map_err(refused)?;
    let Totals { requests, refused, processes, connections, connections_max } = totals;
    output::event(
        "responded",
        json!({
            "requests": requests, "refused": refused, "processes": processes, "connections": connections,
            "connections_max": connections_max,
        }),
    );
    drop(responder);
    match until.join() {
        Ok(Ok(Cause::Told)) => Ok(()),
        Ok(Ok(Cause::InputClosed)) => Err(Failure::Ended("the end of standard input")),
        _ => Err(Failure::Ended("a signal")),
    }
}

/// Whether a web server has started this process to answer one request.
pub(crate) fn is_cgi() -> bool {
    std::env::var_os(cgi::INTERFACE).is_some()
}

/// Answers that request.
pub(crate) fn once() -> ExitCode {
    // Without who started it nobody wants the answer; a server that does not let it ask has its own ways to end it.
    let _ = stop::end_with_parent();
    match cgi::serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plimsoll-agent as a CGI program: {error}");
            ExitCode::from(3)
        }
    }
}
