//! The three transactions: what transaction i does, its round trips, and what it adds to the totals.

use crate::workload::{Expect, RoundTrip, Statement};
use plimsoll_keys::{KeyChooser, Words};
use plimsoll_record::Outcome;
use plimsoll_target::postgres::{Connection, Parameters};

/// What the consistency check needs to know. The amounts of lost transactions are summed apart by their sign, because any of
/// them may or may not have happened.
pub(super) const TOTALS: [&str; 10] = [
    "tpcb_like_done",
    "tpcb_like_lost",
    "tpcb_like_delta_done",
    "tpcb_like_delta_lost_negative",
    "tpcb_like_delta_lost_positive",
    "simple_update_done",
    "simple_update_lost",
    "simple_update_delta_done",
    "simple_update_delta_lost_negative",
    "simple_update_delta_lost_positive",
];

const BEGIN: usize = 0;
const END: usize = 1;
const UPDATE_ACCOUNT: usize = 2;
const SELECT_BALANCE: usize = 3;
const UPDATE_TELLER: usize = 4;
const UPDATE_BRANCH: usize = 5;
const INSERT_HISTORY: usize = 6;

/// pgbench's statements, in the order in which they are prepared.
pub(super) static STATEMENTS: [Statement; 7] = [
    Statement::fixed("begin", "BEGIN"),
    Statement::fixed("end", "END"),
    Statement::fixed("update_account", "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2"),
    Statement::fixed("select_balance", "SELECT abalance FROM pgbench_accounts WHERE aid = $1"),
    Statement::fixed("update_teller", "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2"),
    Statement::fixed("update_branch", "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2"),
    Statement::fixed(
        "insert_history",
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
    ),
];

/// A transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb_like",
            Self::SimpleUpdate => "simple_update",
            Self::SelectOnly => "select_only",
        }
    }

    /// The statements, a round trip each.
    fn steps(self) -> &'static [usize] {
        match self {
            Self::TpcbLike => {
                &[BEGIN, UPDATE_ACCOUNT, SELECT_BALANCE, UPDATE_TELLER, UPDATE_BRANCH, INSERT_HISTORY, END]
            }
            Self::SimpleUpdate => &[BEGIN, UPDATE_ACCOUNT, SELECT_BALANCE, INSERT_HISTORY, END],
            Self::SelectOnly => &[SELECT_BALANCE],
        }
    }
}

/// Transactions have words of their own, apart from those of every table.
const TRANSACTION_WORDS: u64 = 1 << 32;
const DELTA_MAX: i64 = 5_000;
const TELLERS_PER_BRANCH: u64 = 10;

/// Draws transactions.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    seed: u64,
    kinds: Vec<(Kind, u32)>,
    weight: u64,
    accounts: KeyChooser,
    branches: u64,
}

impl Draw {
    pub(super) fn new(seed: u64, kinds: Vec<(Kind, u32)>, accounts: KeyChooser, branches: u64) -> Self {
        let weight = kinds.iter().map(|(_, weight)| u64::from(*weight)).sum();
        Self { seed, kinds, weight, accounts, branches }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.kinds.iter().map(|(kind, _)| *kind)
    }

    fn kind(&self, words: &Words) -> usize {
        if self.kinds.len() == 1 {
            return 0;
        }
        let mut bucket = words.below(0, self.weight);
        for (place, (_, weight)) in self.kinds.iter().enumerate() {
            match bucket.checked_sub(u64::from(*weight)) {
                Some(rest) => bucket = rest,
                None => return place,
            }
        }
        self.kinds.len() - 1
    }

    /// Makes transaction `index` that of `client`, and gives the place of its kind.
    #[inline]
    pub(super) fn draw(&self, client: &mut Client, index: u64) -> u8 {
        let words = Words::new(self.seed, TRANSACTION_WORDS, index);
        let place = self.kind(&words);
        let kind = self.kinds[place].0;
        *client = Client { kind, aid: 1 + self.accounts.choose(&words, 1) as i64, ..Client::default() };
        if kind != Kind::SelectOnly {
            client.bid = 1 + words.below(2, self.branches) as i32;
            client.tid = 1 + words.below(3, TELLERS_PER_BRANCH * self.branches) as i32;
            client.delta = words.between(4, -DELTA_MAX, DELTA_MAX) as i32;
        }
        place as u8
    }
}

/// The transaction that a connection performs, and how far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    kind: Kind,
    aid: i64,
    tid: i32,
    bid: i32,
    delta: i32,
    next_step: u8,
}

impl Client {
    pub(super) fn start_over(&mut self) {
        self.next_step = 0;
    }

    /// Queues the next round trip; `None` if all have been.
    #[inline]
    pub(super) fn step(&mut self, aid_is_bigint: bool, to: &mut Connection) -> Option<RoundTrip> {
        let statement = *self.kind.steps().get(usize::from(self.next_step))?;
        self.next_step += 1;
        let Self { aid, tid, bid, delta, .. } = *self;
        let put_aid = |values: &mut Parameters<'_>| {
            if aid_is_bigint { values.bigint(aid) } else { values.integer(aid as i32) }
        };
        to.queue_statement(statement, |values| match statement {
            UPDATE_ACCOUNT => {
                values.integer(delta);
                put_aid(values);
            }
            SELECT_BALANCE => put_aid(values),
            UPDATE_TELLER => {
                values.integer(delta);
                values.integer(tid);
            }
            UPDATE_BRANCH => {
                values.integer(delta);
                values.integer(bid);
            }
            INSERT_HISTORY => {
                values.integer(tid);
                values.integer(bid);
                put_aid(values);
                values.integer(delta);
            }
            _ => {}
        });
        Some(match statement {
            BEGIN => RoundTrip { statements: 0, expect: Expect::Tag(b"BEGIN"), commits: false },
            END => RoundTrip { statements: 0, expect: Expect::Tag(b"COMMIT"), commits: true },
            SELECT_BALANCE => RoundTrip { statements: 1, expect: Expect::OneRow, commits: false },
            INSERT_HISTORY => RoundTrip { statements: 1, expect: Expect::Tag(b"INSERT 0 1"), commits: false },
            _ => RoundTrip { statements: 1, expect: Expect::Tag(b"UPDATE 1"), commits: false },
        })
    }

    /// Adds the transaction, which ended, to `totals`.
    pub(super) fn tally(&self, outcome: Outcome, totals: &mut [i64]) {
        let first = match self.kind {
            Kind::TpcbLike => 0,
            Kind::SimpleUpdate => 5,
            Kind::SelectOnly => return,
        };
        let delta = i64::from(self.delta);
        match outcome {
            Outcome::Done => {
                totals[first] += 1;
                totals[first + 2] += delta;
            }
            Outcome::Lost => {
                totals[first + 1] += 1;
                totals[first + 3] += delta.min(0);
                totals[first + 4] += delta.max(0);
            }
            Outcome::Failed | Outcome::Skipped => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_keys::Choice;

    fn draw(kinds: &[(Kind, u32)]) -> Draw {
        Draw::new(3, kinds.to_vec(), KeyChooser::new(Choice::Uniform, 3, 0, 200_000).unwrap(), 2)
    }

    fn drawn(draw: &Draw, index: u64) -> Client {
        let mut client = Client::default();
        draw.draw(&mut client, index);
        client
    }

    #[test]
    fn transactions_are_pure_and_within_bounds() {
        let draw = draw(&[(Kind::TpcbLike, 1)]);
        let clients: Vec<Client> = (0..20_000).map(|index| drawn(&draw, index)).collect();
        assert_eq!(clients[77], drawn(&draw, 77));
        let range = |of: fn(&Client) -> i64| {
            let values = clients.iter().map(of);
            (values.clone().min().unwrap(), values.max().unwrap())
        };
        assert_eq!(range(|client| client.bid.into()), (1, 2));
        assert_eq!(range(|client| client.tid.into()), (1, 20));
        assert_eq!(range(|client| client.delta.into()), (-5000, 5000));
        let (low, high) = range(|client| client.aid);
        assert!((1..100).contains(&low) && (199_900..=200_000).contains(&high));
        let sum: i64 = clients.iter().map(|client| i64::from(client.delta)).sum();
        // The standard deviation of the sum is 5000 / sqrt(3) * sqrt(20,000).
        assert!(sum.abs() < 4 * 408_000, "{sum}");
    }

    #[test]
    fn a_mix_has_its_weights() {
        let draw = draw(&[(Kind::TpcbLike, 1), (Kind::SelectOnly, 3)]);
        let selects = (0..40_000).filter(|&index| drawn(&draw, index).kind == Kind::SelectOnly).count();
        assert!(selects.abs_diff(30_000) < 400, "{selects}");
    }

    #[test]
    fn lost_amounts_are_kept_apart_by_sign() {
        let mut totals = [0; TOTALS.len()];
        for (delta, outcome) in [(7, Outcome::Lost), (-5, Outcome::Lost), (-2, Outcome::Done), (9, Outcome::Failed)] {
            Client { kind: Kind::SimpleUpdate, delta, ..Client::default() }.tally(outcome, &mut totals);
        }
        assert_eq!(totals, [0, 0, 0, 0, 0, 1, 2, -2, -5, 7]);
    }
}
