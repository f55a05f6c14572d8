//! The known stimulus before each segment: a thread that is called as a session's is sleeps a prime number of times, and its own clock
//! says how long. What is not found is not believed.

use super::places::PAUSE;
use super::records::Wait;
use crate::Refusal;
use crate::self_test::{equal, until_all_hold};
use plimsoll_record::{Check, WaitPlace};
use std::io;
use std::time::{Duration, Instant};

const SLEEPS: u64 = 7;
const EACH: Duration = Duration::from_millis(2);
/// Of no session that a load has.
const SESSION: u32 = 999_999;
const TRIES: u32 = 10;
/// What each sleep may differ by: its way into the kernel and out of it, between two clocks.
const SLACK_EACH: Duration = Duration::from_micros(100);

/// A wait, and where it was.
pub(super) type Placed = (Wait, WaitPlace);

/// Gives how long all sleeps took by the thread's own clock.
fn stimulate() -> io::Result<Duration> {
    let sleeps = || {
        (0..SLEEPS).map(|_| {
            let began = Instant::now();
            std::thread::sleep(EACH);
            began.elapsed()
        })
    };
    let thread = std::thread::Builder::new().name(format!("load{SESSION}")).spawn(move || sleeps().sum())?;
    thread.join().map_err(|_| io::Error::other("a thread of the stimulus panicked"))
}

fn try_once(drain: &mut dyn FnMut() -> Result<Vec<Placed>, Refusal>) -> Result<Vec<Check>, Refusal> {
    drain()?;
    let lasted = stimulate().map_err(|error| Refusal::from(format!("the self-test could not run: {error}")))?;
    let ours = |(wait, place): &Placed| wait.session == SESSION && place.bucket == PAUSE;
    let sleeps: Vec<Wait> = drain()?.into_iter().filter(ours).map(|(wait, _)| wait).collect();
    let off: i64 = sleeps.iter().map(|wait| wait.back_ns - wait.left_ns).sum();
    let missed = (lasted.as_nanos() as i64 - off).max(0);
    let limit = (SLACK_EACH * SLEEPS as u32).as_nanos() as i64 + off / 50;
    Ok(vec![
        equal("sleeps", SLEEPS, sleeps.len() as u64),
        equal("of those shorter than asked for", 0, sleeps.iter().filter(|wait| off_ns(wait) < EACH).count() as u64),
        Check {
            name: "nanoseconds off a CPU that the waits miss".to_owned(),
            expected: format!("{limit} or less"),
            found: missed.to_string(),
            ok: missed <= limit,
        },
    ])
}

/// A microsecond is what a clock of the kernel may be coarser by.
fn off_ns(wait: &Wait) -> Duration {
    Duration::from_nanos((wait.back_ns - wait.left_ns + 50_000).max(0) as u64)
}

/// Makes the stimulus and compares it with what `drain` gives.
pub(super) fn run(mut drain: impl FnMut() -> Result<Vec<Placed>, Refusal>) -> Result<Vec<Check>, Refusal> {
    until_all_hold(TRIES, || try_once(&mut drain))
}
