//! What a process of the server is doing: read from what the programs keep of it, while another CPU may be writing that.
//!
//! The fact that constrains it: nothing locks that memory. It is copied until two copies in a row are equal: then nothing was
//! written between them, or only a time that came back, which none does. What still goes wrong is one interval too many or
//! too few, until the next copy.

use crate::breakdown::buckets::{CLIENT, OTHER_WAIT};
use crate::breakdown::records::{QUEUED, Record, split};
use plimsoll_record::WaitRow;

/// Kinds of wait that have a place of their own in a record; the next one is the rest.
const KINDS: usize = 7;
/// What a backend has left to do on an answer that was sent takes less, and is of no transaction.
const REST_NS: i64 = 1_000_000;

/// `enum state`, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Runnable,
    Blocked,
    /// Woken, and since when is not known.
    Woken,
}

/// The present state of a process, and its transaction up to the begin of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) state: State,
    pub(crate) since_ns: i64,
    /// In which it blocked last.
    pub(crate) event: u32,
    pub(crate) bucket: u8,
    pub(crate) cause: u8,
    pub(crate) in_block: bool,
    pub(crate) has_client: bool,
    /// The slice of time in which it was last seen.
    pub(crate) slice: u32,
    /// What has a client: the transaction; else all that it did.
    pub(crate) record: Record,
}

impl Present {
    /// From what is kept of a process; None if it was never seen, or is not followed.
    pub(crate) fn decode(stored: &[u8]) -> Option<Self> {
        let state = match u32_at(stored, 8)? {
            1 => State::Running,
            2 => State::Runnable,
            3 => State::Blocked,
            _ => return None,
        };
        let mut record = Record::default();
        record.decode(split(stored)?.1)?;
        Some(Self {
            state,
            since_ns: i64::try_from(u64_at(stored, 0)?).ok()?,
            event: u32_at(stored, 12)?,
            bucket: *stored.get(20)?,
            cause: *stored.get(21)?,
            in_block: *stored.get(23)? != 0,
            has_client: *stored.get(29)? != 0,
            slice: u32_at(stored, 36)?,
            record,
        })
    }

    /// Blocked on `event` since then, as far as somebody knows who has not seen it run.
    pub(crate) fn blocked(since_ns: i64, event: u32, bucket: u8, in_block: bool) -> Self {
        let mut record = Record::default();
        record.row.arrived_ns = since_ns;
        let (state, cause, has_client, slice) = (State::Blocked, 0, false, 0);
        Self { state, since_ns, event, bucket, cause, in_block, has_client, slice, record }
    }

    /// On a CPU since then.
    pub(crate) fn running(since_ns: i64) -> Self {
        Self { state: State::Running, ..Self::blocked(since_ns, 0, 0, false) }
    }

    /// What it is blocked on.
    pub(crate) fn blocked_on(&self) -> Option<(u32, u8)> {
        (self.state == State::Blocked).then_some((self.event, self.bucket))
    }

    /// It waits for its client's next transaction.
    fn is_idle(&self) -> bool {
        self.state == State::Blocked && self.bucket == CLIENT && !self.in_block
    }

    /// It was woken with its client's next transaction.
    fn is_beginning(&self) -> bool {
        self.state == State::Woken && self.bucket == CLIENT && !self.in_block
    }

    /// An answer was sent, and nothing tells that there is more to do than to wait again.
    fn is_at_rest(&self, now_ns: i64) -> bool {
        let row = &self.record.row;
        let untold = row.flags & QUEUED != 0 && row.requests == 0 && !self.in_block;
        untold && self.blocked_on().is_none() && now_ns - row.arrived_ns < REST_NS
    }

    /// The transaction up to `now_ns`, the present state included; None if there is none under way.
    pub(crate) fn under_way(&self, now_ns: i64) -> Option<Record> {
        if self.is_idle() || self.is_beginning() || self.is_at_rest(now_ns) {
            return None;
        }
        let mut record = self.record.clone();
        let lasts = self.lasts_ns(now_ns);
        match self.state {
            State::Running => record.row.cpu_ns += lasts,
            State::Runnable => record.row.run_queue_ns += lasts,
            // Most of it was a wait; how much of it not, its next arrival on a CPU tells.
            State::Blocked | State::Woken => self.charge(&mut record.waits, lasts),
        }
        Some(record)
    }

    /// For how long the state lasts at `now_ns`; it may have begun since.
    fn lasts_ns(&self, now_ns: i64) -> i64 {
        (now_ns - self.since_ns).max(0)
    }

    /// The same for the eyes, at least.
    pub(crate) fn age_ns(&self, now_ns: i64) -> i64 {
        if self.state == State::Woken { 0 } else { self.lasts_ns(now_ns) }
    }

    /// Whether something is to be shown: a transaction, or work without a client.
    pub(crate) fn is_at_work(&self, now_ns: i64) -> bool {
        !self.is_idle() && !self.is_at_rest(now_ns)
    }

    /// As the program does when the wait ends.
    fn charge(&self, waits: &mut Vec<WaitRow>, ns: i64) {
        let same = |wait: &WaitRow| (wait.wait, wait.bucket, wait.cause) == (self.event, self.bucket, self.cause);
        let full = waits.len() >= KINDS;
        let place = waits.iter().take(KINDS).position(same).or((waits.len() > KINDS).then_some(KINDS));
        let place = place.unwrap_or_else(|| {
            let kind = WaitRow { wait: self.event, bucket: self.bucket, cause: self.cause, ..WaitRow::default() };
            waits.push(if full { WaitRow { bucket: OTHER_WAIT, ..WaitRow::default() } } else { kind });
            waits.len() - 1
        });
        waits[place].ns += ns;
        waits[place].count += 1;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::records::tests::kept;
    use plimsoll_record::BreakdownRow;

    const LOCK: u8 = 3;
    const EVENT: u32 = 0x0300_0004;

    fn waits(present: &Present, now_ns: i64) -> Vec<(u32, u8, u32, i64)> {
        let record = present.under_way(now_ns).unwrap();
        record.waits.iter().map(|wait| (wait.wait, wait.bucket, wait.count, wait.ns)).collect()
    }

    #[test]
    fn the_head_of_what_is_kept_tells_the_state() {
        let mut bytes = kept(&[]);
        bytes[0..8].copy_from_slice(&77_u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&EVENT.to_ne_bytes());
        (bytes[20], bytes[21], bytes[23], bytes[29]) = (LOCK, 2, 1, 1);
        bytes[36..40].copy_from_slice(&5_u32.to_ne_bytes());
        let present = Present::decode(&bytes).unwrap();
        assert_eq!((present.state, present.since_ns, present.slice), (State::Blocked, 77, 5));
        assert_eq!((present.event, present.bucket, present.cause), (EVENT, LOCK, 2));
        assert!(present.in_block && present.has_client);
        for state in [0_u32, 4, 5] {
            bytes[8..12].copy_from_slice(&state.to_ne_bytes());
            assert_eq!(Present::decode(&bytes), None, "unseen, resumed, passed over");
        }
        assert_eq!(Present::decode(&bytes[..20]), None);
    }

    #[test]
    fn the_present_state_counts_up_to_now() {
        let running = Present::running(100);
        assert_eq!(running.under_way(130).unwrap().row.cpu_ns, 30);
        assert_eq!(running.under_way(90).unwrap().row.cpu_ns, 0, "it began after the clock was read");
        let runnable = Present { state: State::Runnable, ..Present::running(100) };
        assert_eq!(runnable.under_way(130).unwrap().row.run_queue_ns, 30);
        let blocked = Present::blocked(100, EVENT, LOCK, false);
        assert_eq!(waits(&blocked, 130), [(EVENT, LOCK, 1, 30)]);
        let woken = Present { state: State::Woken, ..blocked };
        assert_eq!(waits(&woken, 130), [(EVENT, LOCK, 1, 30)]);
        assert_eq!((woken.age_ns(130), woken.blocked_on()), (0, None), "since when is not known");
    }

    #[test]
    fn a_wait_goes_on_where_the_program_would_charge_it() {
        let mut blocked = Present::blocked(100, EVENT, LOCK, false);
        let kind = |wait, cause| WaitRow { wait, bucket: LOCK, cause, count: 1, ns: 5, ..WaitRow::default() };
        blocked.record.waits = vec![kind(EVENT, 1), kind(EVENT, 0)];
        assert_eq!(waits(&blocked, 110), [(EVENT, LOCK, 1, 5), (EVENT, LOCK, 2, 15)], "the cause tells them apart");
        blocked.record.waits = (1..=7).map(|wait| kind(wait, 0)).collect();
        assert_eq!(waits(&blocked, 110)[7], (0, OTHER_WAIT, 1, 10), "no room for one more kind");
        blocked.record.waits.push(WaitRow { bucket: OTHER_WAIT, count: 4, ns: 9, ..WaitRow::default() });
        assert_eq!(waits(&blocked, 110)[7], (0, OTHER_WAIT, 5, 19));
        assert_eq!(waits(&blocked, 110).len(), 8);
    }

    #[test]
    fn waiting_for_the_client_outside_of_a_block_is_no_transaction() {
        let idle = Present::blocked(100, 0x0600_0000, CLIENT, false);
        assert!(idle.under_way(130).is_none() && !idle.is_at_work(130));
        let within = Present { in_block: true, ..idle.clone() };
        assert_eq!(waits(&within, 130), [(0x0600_0000, CLIENT, 1, 30)]);
        let woken = Present { state: State::Woken, ..idle };
        assert!(woken.under_way(130).is_none() && woken.is_at_work(130), "it begins, and when is not known yet");
    }

    #[test]
    fn the_rest_of_an_answer_is_no_transaction() {
        let row = BreakdownRow { flags: QUEUED, arrived_ns: 100, ..BreakdownRow::default() };
        let mut after = Present::running(100);
        after.record.row = row;
        assert!(after.under_way(100 + REST_NS - 1).is_none());
        assert!(after.under_way(100 + REST_NS).is_some(), "so long takes only a message that was there");
        after.record.row.requests = 1;
        assert!(after.under_way(101).is_some());
    }
}
