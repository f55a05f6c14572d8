//! `file_serving`: what a file server does to its file system for clients of an office, as dbench has it.
//!
//! A script says line by line what a client asks for; each client performs it in a folder of its own, over and over.
//! The script is the user's load file of dbench (which is never shipped: Debian's package of that name installs one),
//! or one of our own, which is made from a seed and has the same mix, sizes, share of errors, life of handles and shape
//! of directories. Results of it are dbench-like, not dbench's.
//!
//! The fact that constrains it: a client's files are its own, so a script says of every read what it finds. That is
//! worked out once, before anything is performed; what a client does is the call and one comparison.
//!
//! - [`FileServing`]: the workload.
//! - `load_file` and `synthetic` make a `script` by way of the `builder`, which asks a `world` what each line leaves.
//! - `client` performs it: `player` has the calls of each line, `ending` judges how it ended.
//! - `check` compares what is there at the end with the world of where each client was.

mod arguments;
mod builder;
mod calls;
mod check;
mod client;
mod ending;
mod load_file;
mod operation;
mod options;
mod pattern;
mod place;
mod player;
mod profile;
mod script;
mod state;
mod synthetic;
mod workload;
mod world;

pub use workload::{FileServing, Parameters};
