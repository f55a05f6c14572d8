//! Web serving, like SPECweb99 and not comparable to it: a set of files, requests for it, and the check of every answer.
//!
//! The fact that constrains it: what transaction i asks for, and so what must be answered, follows from the seed and i. No answer
//! is believed that was not compared with that.
//!
//! - [`FileSet`]: how many directories there are, what is in their files, how they are written and found again.
//! - [`Mix`]: which request comes with which index, on what kind of connection.
//! - [`ads`]: who the users are, which advertisement they are shown, and the two files that say so to the server.
//! - [`Answer`]: the check of one body while it arrives.
//! - [`post_log`]: the check of what the server kept of the POSTs.
//! - [`Web`] and [`WebOpener`]: the workload, and the sessions that perform it over HTTP.

pub mod ads;
mod answer;
mod file_set;
mod http;
mod mix;
pub mod post_log;
mod session;
mod text;
mod web;

pub use answer::{Answer, FAULTS, Fault, PAGE_TAIL, PRE, TITLE, Verify};
pub use file_set::{
    CLASSES, Contents, DIRECTORY_BYTES, FILES_A_CLASS, FileSet, FileSetError, LINE_BYTES, PATH_BYTES, PLACEHOLDER,
    Part, Place, directories_for,
};
pub use mix::{Connection, KINDS, Kind, Mix, Parameters, Request, Shares};
pub use session::{Address, LEDGER, Trust, WebOpener, acknowledged};
pub use web::Web;
