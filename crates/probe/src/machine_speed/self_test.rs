//! Twice as much of each piece takes twice as long: nothing of it was left out by the compiler, and the clock tells CPU time finely.

use super::chain::Chain;
use super::pieces::{ADDITIONS, MEMORY_STEPS, MULTIPLICATIONS, add, multiply, step, timed};
use crate::Refusal;
use crate::self_test::until_all_hold;
use plimsoll_record::Check;
use std::ops::RangeInclusive;

/// Attempts; a busy machine may disturb all of one.
const TRIES: u32 = 4;
/// Of each attempt, of which the least counts.
const TIMES: usize = 5;
/// Twice as much takes so many times as long.
const ALLOWED: RangeInclusive<f64> = 1.5..=2.7;

pub(super) fn run(chain: &Chain) -> Result<Vec<Check>, Refusal> {
    let tried = until_all_hold(TRIES, || {
        let mut at = 0;
        Ok(vec![
            check("multiplications", |times| multiply(times * MULTIPLICATIONS)),
            check("additions", |times| add(times * ADDITIONS)),
            check("memory steps", |times| step(chain, &mut at, times * MEMORY_STEPS)),
        ])
    });
    tried.map_err(|refusal| {
        let remedy = "leave it out: this machine tells the CPU time of a thread too coarsely, or is too disturbed";
        Refusal::with_remedy(refusal.reason, remedy)
    })
}

fn check(name: &str, mut piece: impl FnMut(u32)) -> Check {
    let mut least = [u64::MAX; 2];
    for _ in 0..TIMES {
        for (times, least) in (1..).zip(&mut least) {
            *least = timed(|| piece(times)).min(*least);
        }
    }
    judged(name, least)
}

fn judged(name: &str, [once, twice]: [u64; 2]) -> Check {
    // A clock that stands still in between tells nothing: 0 of 0, which is in no range.
    let ratio = twice as f64 / once as f64;
    Check {
        name: format!("twice the {name}"),
        expected: format!("{} to {} times the time", ALLOWED.start(), ALLOWED.end()),
        found: format!("{ratio:.2}"),
        ok: ALLOWED.contains(&ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_no_longer_or_no_time_does_not_hold() {
        let is_held = |least| judged("steps", least).ok;
        assert_eq!([[100, 200], [100, 151], [100, 269]].map(is_held), [true; 3]);
        assert_eq!([[100, 100], [100, 280], [0, 0], [0, 100]].map(is_held), [false; 4]);
        let said = judged("steps", [100, 100]);
        assert_eq!((said.name.as_str(), said.found.as_str()), ("twice the steps", "1.00"));
        assert_eq!(said.expected, "1.5 to 2.7 times the time");
    }
}
