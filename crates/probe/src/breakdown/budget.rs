//! Keeps what the programs take within a budget, by watching less of the time.
//!
//! The fact that constrains it: a program that has nothing to do costs a little, too. So a budget can be too small for any
//! share of the time; the record then says what was taken, and nothing is stopped.

use crate::bpf::online_cpus;
use plimsoll_record::Sampling;

/// Less is no sample of a segment of some seconds.
const ONE_IN_MAX: u32 = 64;

/// The budget and where it has led.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Budget {
    /// Of the machine's CPU time; None: no limit.
    share: Option<f64>,
    cpus: f64,
    one_in: u32,
}

impl Budget {
    pub(crate) fn of_this_machine(share: Option<f64>) -> Self {
        Self { share, cpus: online_cpus().map_or(1.0, |cpus| cpus.len() as f64), one_in: 1 }
    }

    /// Whether there is a limit.
    pub(crate) fn is_set(&self) -> bool {
        self.share.is_some()
    }

    /// One slice of time in so many is watched.
    pub(crate) fn one_in(&self) -> u32 {
        self.one_in
    }

    /// The programs ran for `cpus` CPU seconds a second. True if less of the time is to be watched from now on.
    pub(crate) fn spent(&mut self, cpus: f64) -> bool {
        let Some(share) = self.share else { return false };
        let times = cpus / self.cpus / share;
        if times <= 1.0 || self.one_in >= ONE_IN_MAX {
            return false;
        }
        let fewer = (times.ceil().min(f64::from(ONE_IN_MAX)) as u32).next_power_of_two();
        self.one_in = self.one_in.saturating_mul(fewer).min(ONE_IN_MAX);
        true
    }

    /// For the record, when the programs ran for `cpus` CPU seconds a second over the whole segment.
    pub(crate) fn report(&self, cpus: Option<f64>, cut: u64) -> Sampling {
        Sampling { budget_share: self.share, share: cpus.map(|cpus| cpus / self.cpus), one_in_max: self.one_in, cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_watched_until_the_budget_holds() {
        let mut budget = Budget { share: Some(0.01), cpus: 2.0, one_in: 1 };
        assert!(!budget.spent(0.02), "within");
        assert!(budget.spent(0.05));
        assert_eq!(budget.one_in(), 4, "two and a half times too much");
        assert!(budget.spent(0.021));
        assert_eq!(budget.one_in(), 8);
        assert!(!budget.spent(0.001), "never more again: it would go up and down");
        assert_eq!(budget.one_in(), 8);
        assert!(budget.spent(1000.0));
        assert_eq!(budget.one_in(), ONE_IN_MAX);
        assert!(!budget.spent(1000.0), "looking at nothing costs, too");
        let said = Sampling { budget_share: Some(0.01), share: Some(0.25), one_in_max: ONE_IN_MAX, cut: 3 };
        assert_eq!(budget.report(Some(0.5), 3), said);
    }

    #[test]
    fn without_a_budget_all_of_the_time_is_watched() {
        let mut budget = Budget { share: None, cpus: 1.0, one_in: 1 };
        assert!(!budget.spent(1.0));
        assert_eq!(budget.one_in(), 1);
    }
}
