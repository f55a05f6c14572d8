//! The known stimulus before each segment: a prime number of statfs(2) on a mount, each of which the client has to ask the server
//! for, and whose moments this program notes itself. What is not found is not believed.

use super::records::Record;
use crate::Refusal;
use crate::bpf::now_ns;
use crate::self_test::{equal, until_all_hold};
use plimsoll_record::{ABSENT_SAMPLE, Check};
use rustix::fs::statfs;
use std::path::Path;

const ASKED: usize = 7;
/// What the client calls it, of version 3 and of version 4.
const NAMES: [&str; 2] = ["FSSTAT", "STATFS"];
const TRIES: u32 = 5;

/// Gives between which moments each was asked.
fn stimulate(mount: &Path) -> rustix::io::Result<Vec<[i64; 2]>> {
    let ask = |_| {
        let from_ns = now_ns();
        statfs(mount)?;
        Ok([from_ns, now_ns()])
    };
    (0..ASKED).map(ask).collect()
}

/// What of the calls that a process made agrees with what it noted.
fn compare(asked: &[[i64; 2]], records: &[Record], process: u32) -> Vec<Check> {
    let own = |record: &&Record| record.row.pid == process && NAMES.contains(&record.operation.name().as_str());
    let mut own: Vec<&Record> = records.iter().filter(own).collect();
    own.sort_by_key(|record| record.row.ended_ns);
    let is_within = |(asked, record): &(&[i64; 2], &&Record)| {
        let row = record.row;
        row.ended_ns <= asked[1] && row.ended_ns - row.execute_ns >= asked[0]
    };
    let adds_up = |record: &&&Record| {
        let row = record.row;
        row.rtt_ns != ABSENT_SAMPLE
            && row.rtt_ns > 0
            && row.backlog_ns >= 0
            && row.backlog_ns + row.rtt_ns <= row.execute_ns
    };
    vec![
        equal("calls", asked.len() as u64, own.len() as u64),
        equal(
            "of those within the system call that made it",
            asked.len() as u64,
            asked.iter().zip(&own).filter(is_within).count() as u64,
        ),
        equal(
            "of those with a reply, whose parts are no more than the whole",
            asked.len() as u64,
            own.iter().filter(adds_up).count() as u64,
        ),
    ]
}

fn try_once(mount: &Path, drain: &dyn Fn() -> Result<Vec<Option<Record>>, Refusal>) -> Result<Vec<Check>, Refusal> {
    drain()?;
    let asked = stimulate(mount)
        .map_err(|error| Refusal::from(format!("the self-test on {} could not run: {error}", mount.display())))?;
    let records: Vec<Record> = drain()?.into_iter().flatten().collect();
    Ok(compare(&asked, &records, std::process::id()))
}

/// Asks `mount`, and compares with what `drain` gives.
pub(super) fn run(
    mount: &Path,
    drain: &dyn Fn() -> Result<Vec<Option<Record>>, Refusal>,
) -> Result<Vec<Check>, Refusal> {
    until_all_hold(TRIES, || try_once(mount, drain))
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::bytes_of;
    use super::*;

    fn record(pid: u32, name: &[u8], ended: i64, times: [i64; 3]) -> Record {
        Record::decode(&bytes_of(ended, times, pid, name)).unwrap()
    }

    fn held(records: &[Record]) -> Vec<bool> {
        let asked: Vec<[i64; 2]> = vec![[100, 200], [300, 400]];
        compare(&asked, records, 7).into_iter().map(|check| check.ok).collect()
    }

    #[test]
    fn own_calls_lie_within_what_made_them_and_add_up() {
        let right = [record(7, b"STATFS", 390, [10, 50, 70]), record(7, b"STATFS", 190, [10, 50, 70])];
        let others = [record(8, b"STATFS", 190, [10, 50, 70]), record(7, b"READ", 190, [10, 50, 70])];
        assert_eq!(held(&[&right[..], &others].concat()), [true, true, true]);
        assert_eq!(held(&right[..1]), [false, false, false]);
        let began_before = record(7, b"STATFS", 190, [10, 50, 91]);
        assert_eq!(held(&[right[0].clone(), began_before]), [true, false, true]);
        let too_much = record(7, b"STATFS", 190, [30, 50, 70]);
        assert_eq!(held(&[right[0].clone(), too_much]), [true, true, false]);
        let unanswered = record(7, b"STATFS", 190, [10, 0, 70]);
        assert_eq!(held(&[right[0].clone(), unanswered]), [true, true, false]);
    }
}
