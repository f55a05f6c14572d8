//! Seeded keys, permutations and field values.
//!
//! The fact that constrains it: a row is a pure function of (seed, table, key) and a transaction of (seed, index), so that
//! loaders on any number of connections write the same data and readers can check any answer without having stored it.
//! Every value is therefore addressed (counter-based), never drawn from a generator that was advanced before.

mod choice;
mod permutation;
mod words;

pub use choice::{Choice, KeyChooser};
pub use permutation::Permutation;
pub use words::{Words, mixed, word_text};
