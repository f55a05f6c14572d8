//! The engine: a schedule and sessions in, recorded operations out. Names no database.
//!
//! The fact that constrains it: it shares CPUs with the server it measures. In the steady state a worker does not lock, does
//! not allocate, and makes three system calls a round trip (send, wait, receive). One thread carries any number of
//! connections; threads share only the counter of indexes and the channel to the writer.

mod clock;
mod engine;
pub mod mock;
mod recorder;
mod tally;
mod worker;

pub use clock::{epoch_minus_monotonic_ns, monotonic_ns};
pub use engine::{Config, Control, Ended, EngineError, Outcomes, run};
pub use tally::Counts;
