//! Compounds of NFS 4.0 to 4.2: which operations, which is the main one, what they read, write and name.
//!
//! The fact that constrains it: an operation says its kind and not its length, so that one can be read only when the length
//! of every one before it is known. What is not known ends the reading, and the call is marked as partial.

mod compound;
mod grammar;
mod operations;

pub(crate) use compound::{Step, answered, asked, callback_answered, callback_asked};
pub(crate) use operations::{callback_name, name};
