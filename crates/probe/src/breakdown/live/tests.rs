//! Growth from line to line, drawn as what is found at each moment.

use super::*;
use plimsoll_record::{BreakdownRow, WaitRow};

const PID: u32 = 7;
const LOCK: u8 = 3;
const EVENT: u32 = 0x0300_0004;

/// A backend on a CPU since `since_ns`, in a transaction that arrived and has run so far.
fn running(arrived_ns: i64, cpu_ns: i64, since_ns: i64) -> Present {
    let mut present = Present { has_client: true, ..Present::running(since_ns) };
    present.record.row = BreakdownRow { flags: OPEN, arrived_ns, cpu_ns, ..BreakdownRow::default() };
    present
}

fn blocked(arrived_ns: i64, cpu_ns: i64, since_ns: i64) -> Present {
    let state = Present { has_client: true, ..Present::blocked(since_ns, EVENT, LOCK, false) };
    Present { record: running(arrived_ns, cpu_ns, since_ns).record, ..state }
}

fn idle(since_ns: i64) -> Present {
    Present { has_client: true, ..Present::blocked(since_ns, 0x0600_0000, 14, false) }
}

fn found(present: Present) -> Vec<Found> {
    vec![Found { pid: PID, present: Some(present), stored: None }]
}

fn row(arrived_ns: i64, cpu_ns: i64, waited_ns: i64) -> Record {
    let row = BreakdownRow { backend_pid: PID, arrived_ns, cpu_ns, requests: 1, ..BreakdownRow::default() };
    let wait = WaitRow { wait: EVENT, bucket: LOCK, count: 1, ns: waited_ns, ..WaitRow::default() };
    Record { row, waits: if waited_ns > 0 { vec![wait] } else { Vec::new() } }
}

fn begin(found: &[Found]) -> Lives {
    Lives::begin(found, BTreeMap::new(), false, 0, 0)
}

fn line(lives: &mut Lives, found: &[Found], now_ns: i64) -> LiveLine {
    let name = |event| format!("event {event}");
    lives.line(found, &Moment { now_ns, watched_ns: now_ns, server_ended: false, name: &name })
}

/// CPU time, waits, and transactions of the one process; zeros if it is left out.
fn told(line: &LiveLine) -> (u64, u64, u64) {
    let sums =
        |process: &LiveProcess| (process.cpu_ns, process.waits.iter().map(|wait| wait.ns).sum(), process.transactions);
    line.processes.first().map(sums).unwrap_or_default()
}

#[test]
fn a_long_transaction_is_in_every_line_and_its_row_only_with_the_rest() {
    let mut lives = begin(&found(running(-40, 40, 0)));
    let first = line(&mut lives, &found(running(-40, 40, 0)), 100);
    assert_eq!((told(&first), first.lasted_ns), ((100, 0, 0), 100), "not what was before the begin");
    let second = line(&mut lives, &found(blocked(-40, 160, 120)), 200);
    assert_eq!(told(&second), (20, 80, 0));
    let now = second.processes[0].now.as_ref().unwrap();
    assert_eq!((now.state, now.event, now.bucket), ("blocked", Some(EVENT), Some("lock")));
    assert_eq!((now.since_ns, now.transaction_ns), (80, Some(240)));
    lives.ended(&mut row(-40, 170, 100));
    assert_eq!(told(&line(&mut lives, &found(idle(230)), 300)), (10, 20, 1));
    assert_eq!(line(&mut lives, &found(idle(230)), 400).processes, [], "nothing happened");
}

#[test]
fn what_ended_while_it_was_read_counts_once() {
    let mut lives = begin(&[]);
    // It was found under way, and its row was there before the line was made.
    lives.ended(&mut row(10, 30, 0));
    assert_eq!(told(&line(&mut lives, &found(running(10, 20, 30)), 50)), (30, 0, 1));
    lives.ended(&mut row(60, 5, 0));
    lives.ended(&mut row(70, 6, 0));
    assert_eq!(told(&line(&mut lives, &found(running(80, 0, 80)), 100)), (31, 0, 2));
}

#[test]
fn a_guess_that_was_too_high_is_made_up_for_and_never_negative() {
    let mut lives = begin(&[]);
    assert_eq!(told(&line(&mut lives, &found(blocked(0, 0, 0)), 100)), (0, 100, 0));
    // It had been woken at 90 and waited for a CPU since.
    let mut arrived = running(0, 10, 110);
    arrived.record.row.run_queue_ns = 10;
    arrived.record.waits = row(0, 0, 90).waits;
    let second = line(&mut lives, &found(arrived.clone()), 120);
    assert_eq!((told(&second), second.processes[0].run_queue_ns), ((20, 0, 0), 10));
    let again = Present { record: arrived.record, ..blocked(0, 0, 120) };
    assert_eq!(told(&line(&mut lives, &found(again), 150)), (0, 20, 0), "30 but for the 10 that were told already");
}

#[test]
fn the_rest_of_an_answer_is_taken_back() {
    let mut lives = begin(&[]);
    assert_eq!(told(&line(&mut lives, &found(running(0, 0, 0)), 10)), (10, 0, 0));
    // No row: it was no transaction.
    assert_eq!(told(&line(&mut lives, &found(idle(12)), 100)), (0, 0, 0));
    lives.ended(&mut row(120, 15, 0));
    assert_eq!(told(&line(&mut lives, &found(idle(140)), 200)), (5, 0, 1));
}

#[test]
fn who_comes_and_goes_between_two_lines_is_told_of() {
    let mut lives = begin(&[]);
    lives.ended(&mut row(10, 30, 4));
    let first = line(&mut lives, &[], 100);
    assert_eq!((told(&first), first.processes[0].what, &first.processes[0].now), ((30, 4, 1), None, &None));
    assert_eq!(first.names, [(EVENT, format!("event {EVENT}"))].into());
    lives.ended(&mut row(110, 30, 4));
    assert_eq!(line(&mut lives, &[], 200).names, BTreeMap::new(), "each name once");
    let mut worker = row(205, 8, 0);
    worker.row.flags = PROCESS_ENDED;
    lives.meet(vec![PID], &|_| Some("parallel worker"));
    lives.ended(&mut worker);
    let third = line(&mut lives, &[], 300);
    assert_eq!((told(&third), third.processes[0].what), ((8, 0, 0), Some("parallel worker")));
    assert_eq!(lives.known().count(), 0, "nobody is kept who has gone");
}

#[test]
fn one_without_a_client_is_told_by_its_growth() {
    let walwriter = |cpu_ns, since_ns| Present { has_client: false, ..blocked(-100, cpu_ns, since_ns) };
    let mut lives = begin(&found(walwriter(50, -10)));
    lives.meet(vec![PID], &|_| Some("walwriter"));
    let first = line(&mut lives, &found(walwriter(50, -10)), 100);
    assert_eq!((told(&first), first.processes[0].what), ((0, 100, 0), Some("walwriter")));
    assert_eq!(first.processes[0].waits[0].count, 0, "it began before");
    assert_eq!(first.processes[0].now.as_ref().unwrap().transaction_ns, None);
    assert_eq!(lives.open(&found(walwriter(50, -10)), 120).len(), 0);
}

#[test]
fn one_that_nobody_saw_goes_on_until_it_is_seen() {
    let unseen = [(PID, Present::blocked(0, EVENT, LOCK, false))].into();
    let not_seen = || vec![Found { pid: PID, present: None, stored: None }];
    let mut lives = Lives::begin(&not_seen(), unseen, false, 0, 0);
    lives.meet(vec![PID], &|_| None);
    assert_eq!(told(&line(&mut lives, &not_seen(), 100)), (0, 100, 0));
    let open = lives.open(&not_seen(), 120);
    assert_eq!((open[0].row.backend_pid, open[0].row.arrived_ns, open[0].row.ended_ns), (PID, 0, 120));
    assert_eq!((open[0].row.flags & OPEN, open[0].waits[0].ns), (OPEN, 120));
    // It runs from 130 on.
    let seen = line(&mut lives, &found(running(130, 0, 130)), 200);
    assert_eq!(told(&seen), (70, 30, 0));
    assert_eq!(seen.processes[0].now.as_ref().unwrap().transaction_ns, Some(200), "as old as the watch");
    let mut first = row(130, 90, 0);
    lives.ended(&mut first);
    assert_eq!((first.row.flags & HEADLESS, first.row.arrived_ns, first.waits[0].ns), (HEADLESS, 0, 130));
    assert_eq!(told(&line(&mut lives, &found(idle(220)), 300)), (20, 0, 1));
}

#[test]
fn what_is_under_way_at_the_end_has_a_row() {
    let mut lives = begin(&[]);
    line(&mut lives, &found(blocked(10, 20, 30)), 100);
    let open = lives.open(&found(blocked(10, 20, 30)), 110);
    let row = &open[0].row;
    assert_eq!((row.arrived_ns, row.ended_ns, row.cpu_ns, row.flags), (10, 110, 20, OPEN));
    assert_eq!(open[0].waits[0].ns, 80);
    assert!(lives.open(&found(idle(30)), 110).is_empty());
    lives.ended(&mut self::row(10, 20, 0));
    assert!(lives.open(&found(blocked(10, 20, 30)), 110).is_empty(), "its row was there already");
}

#[test]
fn between_slices_sums_stand_still() {
    let mut lives = Lives::begin(&[], BTreeMap::new(), true, 0, 0);
    let cut = || vec![Found { pid: PID, present: None, stored: None }];
    assert_eq!(told(&line(&mut lives, &found(running(0, 0, 0)), 50)), (50, 0, 0));
    assert_eq!(told(&line(&mut lives, &cut(), 100)), (0, 0, 0));
    assert_eq!(
        told(&line(&mut lives, &found(running(120, 0, 120)), 150)),
        (30, 0, 0),
        "what was cut is not made up for"
    );
    let worker = |cpu_ns, since_ns| Present { has_client: false, ..running(0, cpu_ns, since_ns) };
    let mut lives = Lives::begin(&[], BTreeMap::new(), true, 0, 0);
    lives.meet(vec![PID], &|_| Some("walwriter"));
    assert_eq!(told(&line(&mut lives, &found(worker(0, 0)), 50)), (50, 0, 0));
    assert_eq!(told(&line(&mut lives, &cut(), 100)), (0, 0, 0));
    assert_eq!(told(&line(&mut lives, &found(worker(50, 150)), 160)), (10, 0, 0));
}
