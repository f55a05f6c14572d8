//! What is heard of tables while they are made.

use plimsoll_target::postgres::bulk::Progress;

/// What loading says while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A phase begins: tables, rows, vacuum, indexes, foreign_keys, in this order; the last one ends with the loading. The
    /// indexes of a table may begin while another table is vacuumed.
    Phase(&'static str),
    /// Work on a table goes on; several connections may be at the same table, and one at it several times.
    Table {
        /// The phase, which has begun.
        phase: &'static str,
        /// Its name.
        table: &'a str,
        /// How it goes on.
        progress: Progress,
    },
}

/// Hears of events, from any of the connections.
pub type Listener<'a> = dyn Fn(Event<'_>) + Sync + 'a;
