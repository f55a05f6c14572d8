//! What the programs in the kernel count beside transactions: the places of their counters.

/// `enum counter`.
pub(super) const COUNTERS: [&str; 4] = ["unknown_waits", "arrivals_unseen", "wrong_guesses", "unread_answers"];
/// Those after them: calls by what was synced.
pub(super) const SYNCS: [&str; 3] = ["wal", "data", "other"];
/// The place of the count of busy backends, which is the last.
pub(super) const BUSY: usize = COUNTERS.len() + SYNCS.len();
/// `enum lost`.
pub(super) const LOST: [&str; 3] = ["no_room", "no_storage", "files"];
