//! What ends the agent from outside: a line, a signal, the end of standard input, the end of the parent.

use crate::failure::Failure;
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::BufRead;
use std::sync::mpsc::Sender;

/// Why a segment is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A line `stop`.
    Told,
    /// SIGTERM or SIGINT.
    Signal,
    /// Standard input closed.
    InputClosed,
    /// A line that asks for a window and cannot be followed.
    Misunderstood,
}

/// Asks the kernel for SIGTERM when the parent dies. (The parent thread, to be exact: whoever starts the agent from a thread
/// that ends before the agent does must expect the signal then.)
pub(crate) fn end_with_parent() -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Failure::Record(format!("cannot ask for a signal at the parent's death: {error}")))
}

fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT]).map_err(|error| Failure::Record(format!("cannot watch signals: {error}")))
}

/// Sends each cause that occurs to `heard`, from threads that live as long as the process; and what other lines of standard input
/// say to `other`.
pub(crate) fn watch<T: Send + 'static>(
    heard: &Sender<T>,
    wrap: fn(Cause) -> T,
    other: fn(&str) -> Option<T>,
) -> Result<(), Failure> {
    let mut signals = signals()?;
    let from_signals = heard.clone();
    std::thread::spawn(move || signals.forever().for_each(|_| drop(from_signals.send(wrap(Cause::Signal)))));
    let from_input = heard.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                Ok(line) if line.trim() == "stop" => drop(from_input.send(wrap(Cause::Told))),
                Ok(line) => drop(other(&line).map(|said| from_input.send(said))),
                Err(_) => break,
            }
        }
        let _ = from_input.send(wrap(Cause::InputClosed));
    });
    Ok(())
}

/// Ends the process with code 4 at a signal, for verbs that keep nothing open: the server rolls back what is under way.
pub(crate) fn exit_on_signal(advice: &'static str) -> Result<(), Failure> {
    let mut signals = signals()?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let failure = Failure::Ended("a signal");
            eprintln!("plimsoll-agent: {failure}; {advice}");
            std::process::exit(i32::from(failure.exit_code()));
        }
    });
    Ok(())
}
