//! FastCGI 1.0 as an application in the role of a responder speaks it, without I/O.

mod incoming;
mod records;
mod variables;

pub use incoming::{Incoming, Next, Request, Wrong};
pub use records::answer;
