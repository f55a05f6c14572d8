//! The threads that carry many sessions each, dealt out in turn, and the opener beside them.
//!
//! The fact that constrains it: a thread that has ended well may not get away, because the kernel holds it until an operation is
//! over which a device does not answer. So what a thread has to tell is heard from itself, and nobody waits for its end.

use crate::clock::wake_in_time;
use crate::config::EngineError;
use crate::conversation::Conversation;
use crate::cpus::stay_on;
use crate::dispatch::Dispatcher;
use crate::driver::{Carried, Member};
use crate::opening::{Open, Reopener, Reopening};
use crate::outcomes::Ended;
use crate::recording::recorder::{Recorder, RowSink};
use crate::recording::tally::Tally;
use crate::shared::Shared;
use crossbeam_channel::unbounded;
use std::sync::Arc;

type Result<T> = std::result::Result<T, EngineError>;

/// Has each of `workers` carry its share on a thread of its own, from the making of the threads to their end.
pub(crate) fn carry<S, W>(
    sessions: Vec<Box<S>>,
    open: impl Open<S>,
    workers: Vec<W>,
    shared: &Arc<Shared>,
    recorder: &Recorder,
) -> Result<Carried>
where
    S: Conversation + ?Sized + 'static,
    W: FnOnce(Dispatcher<S>) -> Result<(Tally, Ended)> + Send + 'static,
{
    let threads = workers.len();
    let (reopener, asks) = Reopener::new(threads, sessions.len())?;
    let opening = shared.config.reconnect.then(|| reopener.start(open)).transpose()?;
    let asks = opening.is_some().then_some(asks);
    let mut hands: Vec<Vec<(u32, Box<S>)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, session) in sessions.into_iter().enumerate() {
        hands[number % threads].push((number as u32, session));
    }
    let (tell, heard) = unbounded();
    let mut refused = None;
    for (number, (hand, worker)) in hands.into_iter().zip(workers).enumerate() {
        let reopening = asks.clone().map(|asks| reopener.end_of(number, asks));
        let thread =
            Thread { shared: Arc::clone(shared), number, sink: recorder.sink(shared.started_ns), hand, reopening };
        let tell = tell.clone();
        let carry = move || {
            // Who listens waits until all have told or are gone.
            let _ = tell.send((number, thread.carry(worker)));
        };
        if let Err(error) = std::thread::Builder::new().name("load".to_owned()).spawn(carry) {
            refused = Some(EngineError::System(error));
            shared.control.stop();
            break;
        }
    }
    drop((tell, asks));
    let mut told: Vec<(usize, Result<(Tally, Ended)>)> = heard.iter().collect();
    told.sort_unstable_by_key(|(number, _)| *number);
    reopener.end();
    if let Some(error) = refused {
        return Err(error);
    }
    let told = told.into_iter().map(|(_, carried)| carried).collect::<Result<Vec<_>>>()?;
    if told.len() < threads {
        return Err(EngineError::Panicked);
    }
    Ok(Carried { threads: told, opening: opening.map(|ended| reopener.late(ended)) })
}

/// What a thread begins with.
struct Thread<S: ?Sized> {
    shared: Arc<Shared>,
    number: usize,
    sink: RowSink,
    hand: Vec<(u32, Box<S>)>,
    reopening: Option<Reopening<S>>,
}

impl<S: Conversation + ?Sized> Thread<S> {
    fn carry(self, worker: impl FnOnce(Dispatcher<S>) -> Result<(Tally, Ended)>) -> Result<(Tally, Ended)> {
        let Self { shared, number, sink, hand, reopening } = self;
        let member = Member::new(&shared);
        shared.cpus.get(number).map_or(Ok(()), |&cpu| stay_on(cpu))?;
        wake_in_time()?;
        let carried = worker(Dispatcher::new(Arc::clone(&shared), number, sink, hand, reopening))?;
        member.leave();
        Ok(carried)
    }
}
