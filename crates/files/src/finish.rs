//! The end of a segment by its sessions.

use std::fmt;
use std::sync::Arc;

/// Ends the segment, as a stop from outside does: transactions under way end, none is begun. For work that has an end of its own
/// (a pass over files), and where the first session that is through with its part stops the others.
#[derive(Clone)]
pub struct Finish(Arc<dyn Fn() + Send + Sync>);

impl Finish {
    /// One that calls `end`, perhaps more than once and from any thread.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(end))
    }

    /// There is nothing more to do.
    pub fn finish(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Finish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Finish")
    }
}
