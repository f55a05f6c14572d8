//! The driver of sessions that tell when they are ready: a thread carries any number of them, dealt out in turn.

use crate::config::EngineError;
use crate::cpus::stay_on;
use crate::driver::{Carried, StopsAtFault};
use crate::opening::{Reopener, Reopening};
use crate::outcomes::Ended;
use crate::recorder::{Lane, Recorder};
use crate::shared::Shared;
use crate::tally::{Counts, Tally};
use crate::worker::Worker;
use plimsoll_session::{Opener, Session};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;

/// How much later than asked the kernel may wake a thread that carries load.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// The workers, from their making to their end, and the opener beside them.
pub(crate) fn carry(
    sessions: Vec<Box<dyn Session>>,
    opener: &Arc<dyn Opener>,
    shared: &Shared,
    recorder: &Recorder,
) -> Result<Carried, EngineError> {
    let threads = shared.control.counts.len();
    let (reopener, asks) = Reopener::new(threads, sessions.len())?;
    let opening = shared.config.reconnect.then(|| reopener.start(opener)).transpose()?;
    let asks = opening.is_some().then_some(asks);
    let mut dealt: Vec<Vec<(u32, Box<dyn Session>)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, session) in sessions.into_iter().enumerate() {
        dealt[number % threads].push((number as u32, session));
    }
    let joined = std::thread::scope(|scope| {
        let start = |(number, (hand, counts))| {
            let reopening = asks.clone().map(|asks| reopener.end_of(number, asks));
            let lane = recorder.lane(shared.started_ns);
            let cpu = shared.cpus.get(number).copied();
            let carry = move || one_thread(shared, cpu, counts, lane, hand, reopening);
            std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, carry)
        };
        let workers: Vec<_> = dealt.into_iter().zip(&shared.control.counts).enumerate().map(start).collect();
        let joined = workers.into_iter().map(|worker| worker?.join().map_err(|_| EngineError::Panicked)?);
        joined.collect::<Vec<Result<_, EngineError>>>()
    });
    drop(asks);
    reopener.end();
    let threads = joined.into_iter().collect::<Result<_, _>>()?;
    Ok(Carried { threads, opening: opening.map(|ended| (reopener, ended)) })
}

fn one_thread(
    shared: &Shared,
    cpu: Option<usize>,
    counts: &Counts,
    lane: Lane,
    hand: Vec<(u32, Box<dyn Session>)>,
    reopening: Option<Reopening<'_>>,
) -> Result<(Tally, Ended), EngineError> {
    let fault = StopsAtFault::new(shared);
    cpu.map_or(Ok(()), stay_on)?;
    rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS)).map_err(io::Error::from)?;
    let result = Worker::new(shared, counts, lane, hand, reopening)?.run()?;
    fault.disarm();
    Ok(result)
}
