//! The refresh functions: RF1 inserts one order in a thousand with its lines, RF2 deletes as many of those loaded.
//!
//! The fact that constrains it: a refresh set is used once on a database. Which was taken last stands in the database itself, in
//! `refresh_sets`, and is written in the transaction that does the function's work: so whatever is killed, a set was taken
//! if and only if its rows are there (or gone).

mod functions;
mod left;
mod sets;

pub use super::function::Function;
pub(super) use functions::taken;
pub use functions::{Prepared, Refreshed, prepare};
pub use left::{Left, asks_beside};
pub use sets::{RefreshSet, SETS_MAX, SetPart};
pub(super) use sets::{deleted_lines, inserted_lines, sparse_key};
