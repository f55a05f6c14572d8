//! The engine: a schedule and sessions in, recorded operations out. Names no database.
//!
//! The fact that constrains it: it shares CPUs with the server it measures. Three drivers wait for sessions, over the same
//! schedule, claims, rows, histograms and identity:
//! - `readiness`, of sessions that tell when they are ready. In the steady state a worker does not lock, does not allocate, and makes
//!   at most three system calls a round trip (send, wait, receive). One thread carries any number of connections; threads share
//!   only the counter of indexes and the channels to the writer.
//! - `completion`, of sessions that hand out operations and are told when the kernel has performed them: as many on a thread,
//!   which has an io_uring; it waits and hands over what is next in one system call.
//! - `blocking`, of sessions whose calls block: a thread each.
//!
//! - [`run`], [`run_completion`], [`run_blocking`]: one segment, from its start to its identity.
//! - [`Control::windowed`]: one that begins with its gate closed, and starts transactions in windows only.
//! - [`open_all`]: the connections of a load, side by side.
//! - [`mock`]: sessions without a server.

mod blocking;
mod clock;
mod completion;
mod config;
mod control;
mod conversation;
mod cpus;
mod dispatch;
mod driver;
mod engine;
mod gate;
pub mod mock;
mod open_plan;
mod opening;
mod outcomes;
mod readiness;
mod recording;
mod settle;
mod shared;
mod slots;
mod threads;
mod under_way;
mod window;

pub use clock::{epoch_minus_monotonic_ns, monotonic_ns, thread_cpu_ns};
pub use config::{Config, EngineError};
pub use control::Control;
pub use engine::{run, run_blocking, run_completion};
pub use gate::WindowTimes;
pub use opening::{open_all, raise_descriptor_limit};
pub use outcomes::{CpuNs, Ended, Outcomes};
pub use recording::recorder::{Seconds, Tables};
pub use recording::tally::Counts;
