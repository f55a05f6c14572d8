//! Workloads on a folder: files that are written, read, made and removed, on any mounted file system.
//!
//! The fact that constrains it: what was written is what is read. Every block says of which file, place and version it is
//! ([`stamp`]), so that a block that is torn, stale or another's is found when it is read, whatever wrote it.
//!
//! - [`FileWorkload`]: what the agent asks of each; its sessions block or complete, and the engine drives them.
//! - [`Tree`]: the folder that a workload has for itself. Nothing outside of it is ever opened.
//! - [`Finish`]: how a session tells that there is nothing more to do.

pub mod file_serving;
mod finish;
mod mix;
mod passes;
mod raw_storage;
mod sequential_io;
pub mod stamp;
mod tree;
mod workload;

pub use file_serving::FileServing;
pub use finish::Finish;
pub use mix::{Mix, Parameters as MixParameters};
pub use raw_storage::{Parameters as RawStorageParameters, RawStorage};
pub use sequential_io::{Parameters as SequentialIoParameters, SequentialIo};
pub use tree::{Tree, TreeError};
pub use workload::{FileWorkload, FilesError, Sessions};
