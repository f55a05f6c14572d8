//! An open loop's plan as one worker walks it.
//!
//! The fact that constrains it: no index may wait for a connection while another worker has a free one. So a worker claims
//! only while it has a free connection, and one index at a time: ahead of its time, that it may sleep until then.

use crate::outcomes::Ended;
use crate::shared::{Claim, Shared};
use plimsoll_schedule::Open;

#[derive(Debug)]
pub(crate) struct OpenPlan {
    plan: Open,
    claim: Option<Claim>,
    /// Why there is nothing more to claim.
    pub(crate) over: Option<Ended>,
}

impl OpenPlan {
    pub(crate) fn new(plan: Open) -> Self {
        Self { plan, claim: None, over: None }
    }

    /// Claims, if there is no claim yet or an earlier one has lost its connection, and gives the claim if it is due by `now_ns`
    /// of the plan's clock. To be called with a connection free.
    #[inline]
    pub(crate) fn due(&mut self, shared: &Shared, now_ns: i64) -> Option<Claim> {
        if let Some(claim) = &mut self.claim {
            *claim = shared.returned.exchange(*claim);
        } else if self.over.is_none() || !shared.returned.is_empty() {
            match shared.claim(&mut self.plan, now_ns) {
                Ok(claim) => self.claim = Some(claim),
                Err(reason) => self.over = Some(reason),
            }
        }
        self.claim.take_if(|claim| claim.due_ns <= now_ns)
    }

    /// When the claim is due on the plan's clock.
    pub(crate) fn due_ns(&self) -> Option<i64> {
        self.claim.map(|claim| claim.due_ns)
    }

    /// Gives the claim up.
    pub(crate) fn give_up(&mut self) -> Option<Claim> {
        self.claim.take()
    }
}
