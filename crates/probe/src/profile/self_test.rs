//! The known stimulus before each segment: a known time on a CPU in a known function has to get its share of samples.

use super::clock::Clock;
use super::contention::Locks;
use super::kernel_names::KernelNames;
use super::locked;
use super::program::{PROGRAM, aim};
use super::sampling::drain;
use super::stacks::{Named, Stacks};
use super::stimulus::{Ask, KERNEL_FUNCTION, LENGTH, USER_FUNCTION};
use crate::Refusal;
use crate::bpf::Programs;
use crate::self_test::{equal, until_all_hold};
use libbpf_rs::MapHandle;
use plimsoll_record::{Check, Contended, Contention};
use std::cell::RefCell;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

/// A prime, so that it keeps no step with anything; many, so that the test is short.
const HZ: u32 = 1_999;
const HZ_MAX: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
/// A busy machine may disturb one.
const TRIES: u32 = 5;
/// Of the samples of a stimulus, in hundredths: the others are on the way there.
const PERCENT_MIN: u64 = 90;
/// Of the system call around a wait, and of the way to a CPU on a busy machine.
const LOCK_SLACK_NS: u64 = 400_000;

struct Stimulus(Child);

impl Drop for Stimulus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stimulus {
    fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("sampled").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// Gives how long it took, by its own clock.
    fn ask(&mut self, what: Ask) -> io::Result<u64> {
        let mut lasted = [0; 8];
        let gone = || io::Error::other("the stimulus has no pipes");
        self.0.stdin.as_mut().ok_or_else(gone)?.write_all(&[what as u8])?;
        self.0.stdout.as_mut().ok_or_else(gone)?.read_exact(&mut lasted)?;
        Ok(u64::from_ne_bytes(lasted))
    }
}

fn rate() -> u32 {
    let most = fs::read_to_string(HZ_MAX).ok().and_then(|text| text.trim().parse().ok());
    most.map_or(HZ, |most: u32| most.min(HZ))
}

/// Samples whose stack `holds`.
fn with(named: &Named, holds: impl Fn(&str) -> bool) -> u64 {
    named.folded.iter().filter(|(stack, _)| holds(stack)).map(|(_, count)| count).sum()
}

/// Three standard deviations of a count, which is more than a timer's ticks scatter.
fn about(name: &str, expected: u64, found: u64) -> Check {
    let slack = 3 * expected.isqrt() + 2;
    let text = format!("{expected} give or take {slack}");
    Check { name: name.to_owned(), expected: text, found: found.to_string(), ok: found.abs_diff(expected) <= slack }
}

fn most_of(name: &str, all: u64, found: u64) -> Check {
    let least = all * PERCENT_MIN / 100;
    Check {
        name: name.to_owned(),
        expected: format!("{least} or more"),
        found: found.to_string(),
        ok: all > 0 && found >= least,
    }
}

fn judge(user: &Named, kernel: &Named, hz: u32) -> Vec<Check> {
    let expected = (LENGTH.as_secs_f64() * f64::from(hz)).round() as u64;
    let of = |named: &Named| with(named, |_| true);
    let innermost = |stack: &str| stack.rsplit(';').next().unwrap_or_default().to_owned();
    let mut checks = vec![
        about("samples of a known time on a CPU", expected, of(user)),
        about("samples of the same time in the kernel", expected, of(kernel)),
        most_of("of those, inside the kernel", of(kernel), kernel.samples.in_kernel),
        most_of("of the former, outside of it", of(user), of(user) - user.samples.in_kernel),
    ];
    // Where names are not to be had the report says so; where they are, they have to be right.
    if user.samples.named_outside > 0 {
        let right = with(user, |stack| innermost(stack).contains(USER_FUNCTION));
        checks.push(most_of("samples in the function that was run", of(user), right));
        checks.push(most_of("whose stack goes down to where the process began", of(user), user.samples.complete));
    }
    if kernel.samples.kernel_has_names {
        let right = with(kernel, |stack| {
            stack.split(';').any(|frame| frame.ends_with("_[k]") && frame.contains(KERNEL_FUNCTION))
        });
        checks.push(most_of("samples in the system call that was made", of(kernel), right));
    }
    checks
}

/// What is sampled while the stimulus does what it is asked.
fn sampled(stimulus: &mut Stimulus, what: Ask, samples: &MapHandle) -> io::Result<Named> {
    let stacks = Rc::new(RefCell::new(Stacks::new(std::process::id())));
    drain(samples, |_| {})?;
    stimulus.ask(what)?;
    let into = Rc::clone(&stacks);
    drain(samples, move |bytes| into.borrow_mut().take(bytes))?;
    let named = stacks.borrow().named();
    Ok(named)
}

/// Waits for a lock whose time is known have to be counted, each, and with that time.
fn judge_locks(waits: &Contention, names: &KernelNames, lasted_ns: u64) -> Vec<Check> {
    let is_known = |site: &&Contended| names.is_empty() || site.stack.contains(locked::FUNCTION);
    let (mut count, mut total_ns) = (0, 0);
    for site in waits.sites.iter().filter(is_known).filter(|site| site.kind.contains("mutex")) {
        count += site.count;
        total_ns += site.total_ns;
    }
    let counted = equal("waits for a known lock", locked::ROUNDS, count);
    let slack = lasted_ns / 50 + locked::ROUNDS * LOCK_SLACK_NS;
    let long = Check {
        name: "nanoseconds in them".to_owned(),
        expected: format!("{lasted_ns} give or take {slack}"),
        found: total_ns.to_string(),
        ok: total_ns.abs_diff(lasted_ns) <= slack,
    };
    vec![counted, long]
}

fn try_locks(stimulus: &mut Stimulus, locks: &Locks) -> Result<Vec<Check>, Refusal> {
    locks.forget();
    let lasted =
        stimulus.ask(Ask::Lock).map_err(|error| Refusal::from(format!("the self-test could not run: {error}")))?;
    let names = KernelNames::read();
    Ok(judge_locks(&locks.report(&names), &names, lasted))
}

fn try_once(stimulus: &mut Stimulus, programs: &Programs, samples: &MapHandle) -> Result<Vec<Check>, Refusal> {
    let failed = |error: io::Error| Refusal::from(format!("the self-test could not run: {error}"));
    let hz = rate();
    let clock = Clock::start(programs, PROGRAM, hz)?;
    let user = sampled(stimulus, Ask::User, samples).map_err(failed)?;
    let kernel = sampled(stimulus, Ask::Kernel, samples).map_err(failed)?;
    drop(clock);
    Ok(judge(&user, &kernel, hz))
}

/// Starts `program` with the word "sampled", and compares what it did with what was sampled.
pub(crate) fn run(
    program: &Path,
    programs: &Programs,
    samples: &MapHandle,
    locks: Option<&Locks>,
) -> Result<Vec<Check>, Refusal> {
    aim(programs, std::process::id(), false)?;
    let mut stimulus =
        Stimulus::start(program).map_err(|error| Refusal::from(format!("{}: {error}", program.display())))?;
    until_all_hold(TRIES, || {
        let mut checks = try_once(&mut stimulus, programs, samples)?;
        if let Some(locks) = locks {
            checks.extend(try_locks(&mut stimulus, locks)?);
        }
        Ok(checks)
    })
}
