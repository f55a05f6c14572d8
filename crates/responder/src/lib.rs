//! What stands behind a web server: it answers, by FastCGI or CGI, the requests that are no plain file.
//!
//! The fact that constrains it: it is a part of the server under test. What it may take of processes, threads and memory is bounded by
//! those who start it, and it waits for no client: a page that a slow one has yet to take keeps memory and no thread.
//!
//! - [`Program`]: pages, advertisements, the log of POSTs, and the commands that make its files anew or give the log.
//! - [`fastcgi`]: records to requests and answers to records, without I/O.
//! - [`cgi`]: a request by the environment of a process, and the process that is started for one.
//! - [`Responder`]: the connections of a server, shared by a few threads.

pub mod cgi;
mod connection;
pub mod fastcgi;
mod listener;
mod program;
mod responder;

pub use listener::Listen;
pub use program::{Answered, Asked, Program, reset};
pub use responder::{Limits, Responder, Stopper, Totals};
