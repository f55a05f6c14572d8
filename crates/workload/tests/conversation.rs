//! A conversation with a scripted server: what is done, failed and lost, told apart by when the connection breaks.

#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use plimsoll_record::Outcome;
use plimsoll_target::postgres::{Address, Connection, put_row};
use plimsoll_workload::{Begun, Conversation, Ending, Expect, Progress, Ready, RoundTrip, Session, Workload};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A read (round trip 0) and then a commit (round trip 1).
struct ReadAndCommit;

impl Workload for ReadAndCommit {
    type Plan = ();

    fn plan(&self, _: u64) {}

    fn begun(&self, (): &()) -> Begun {
        Begun { kind: 0, skipped: false }
    }

    fn round_trip(&self, (): &(), number: u8, connection: &mut Connection) -> Option<RoundTrip> {
        let (statements, expect, commits) = match number {
            0 => (1, Expect::Row { table: 0, key: 7 }, false),
            1 => (0, Expect::Tag(b"COMMIT"), true),
            _ => return None,
        };
        connection.queue_statement(usize::from(number), 0, |_| {});
        Some(RoundTrip { statements, expect, commits })
    }

    fn expected_row(&self, _: u8, key: i64, out: &mut BytesMut) {
        put_row(out, 1, |row| row.bigint(key));
    }

    fn columns(&self, _: u8) -> (&'static str, Vec<&'static str>) {
        ("things", vec!["number"])
    }

    fn total_names(&self) -> &'static [&'static str] {
        &["done", "lost"]
    }

    fn tally(&self, (): &(), outcome: Outcome, totals: &mut [i64]) {
        totals[0] += i64::from(outcome == Outcome::Done);
        totals[1] += i64::from(outcome == Outcome::Lost);
    }
}

const NOTHING: Vec<u8> = Vec::new();

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn row(key: i64) -> Vec<u8> {
    let mut body = BytesMut::new();
    ReadAndCommit.expected_row(0, key, &mut body);
    message(b'D', &body)
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn read_answer(key: i64) -> Vec<u8> {
    [message(b'2', b""), row(key), message(b'C', b"SELECT 1\0"), ready(b'T')].concat()
}

fn tag(text: &[u8]) -> Vec<u8> {
    message(b'C', &[text, b"\0"].concat())
}

fn error(severity: &str, sqlstate: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{sqlstate}\0Mno\0\0").as_bytes())
}

/// Reads whole messages until a Sync or a simple query came, or the other side closed.
fn read_round_trip(stream: &mut UnixStream) -> bool {
    loop {
        let mut header = [0; 5];
        if stream.read_exact(&mut header).is_err() {
            return false;
        }
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4;
        stream.read_exact(&mut vec![0; length]).unwrap();
        if matches!(header[0], b'S' | b'Q') {
            return true;
        }
    }
}

/// A server that greets, answers the preparation, then reads and answers a round trip for each of `answers` (with nothing,
/// if that is empty), and closes.
fn server(folder: &std::path::Path, answers: Vec<Vec<u8>>) -> JoinHandle<()> {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.1")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
        let greeting = [message(b'R', &[0; 4]), message(b'K', &[0, 0, 0, 42, 0, 0, 0, 1]), ready(b'I')].concat();
        stream.write_all(&greeting).unwrap();
        assert!(read_round_trip(&mut stream), "the preparation");
        stream.write_all(&[message(b'1', b""), message(b'1', b""), ready(b'I')].concat()).unwrap();
        for answer in answers {
            if !read_round_trip(&mut stream) {
                return;
            }
            stream.write_all(&answer).unwrap();
        }
    })
}

fn ending(answers: Vec<Vec<u8>>) -> (Ending, Vec<(&'static str, i64)>) {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), answers);
    let address = Address {
        host: folder.path().display().to_string(),
        port: 1,
        user: "u".to_owned(),
        password: None,
        database: "d".to_owned(),
        settings: Vec::new(),
    };
    let mut conversation = Conversation::open(&address, Arc::new(ReadAndCommit), &["read", "commit"]).unwrap();
    assert_eq!(conversation.backend_pid(), 42);
    conversation.begin(0);
    let started = Instant::now();
    let mut progress = conversation.advance(Ready::Nothing);
    while !matches!(progress, Progress::Ended(_)) {
        assert!(started.elapsed() < Duration::from_secs(10) && progress != Progress::Closed);
        std::thread::sleep(Duration::from_millis(1));
        progress = conversation.advance(Ready::Closing);
    }
    let Progress::Ended(ending) = progress else { unreachable!() };
    let totals = conversation.close().totals;
    server.join().unwrap();
    (ending, totals)
}

fn outcome(answers: Vec<Vec<u8>>) -> (Outcome, bool, Option<String>) {
    let (ending, totals) = ending(answers);
    let counted = (i64::from(ending.outcome == Outcome::Done), i64::from(ending.outcome == Outcome::Lost));
    assert_eq!(totals, [("done", counted.0), ("lost", counted.1)]);
    (ending.outcome, ending.alive, ending.failure.map(|failure| failure.sqlstate))
}

fn broken(outcome: Outcome, sqlstate: &str) -> (Outcome, bool, Option<String>) {
    (outcome, false, Some(sqlstate.to_owned()))
}

#[test]
fn a_committed_transaction_is_done() {
    let (ending, _) = ending(vec![read_answer(7), [tag(b"COMMIT"), ready(b'I')].concat()]);
    assert_eq!(ending, Ending { outcome: Outcome::Done, statements: 1, failure: None, alive: true });
}

#[test]
fn before_the_commit_a_break_is_a_failure() {
    assert_eq!(outcome(vec![NOTHING]), broken(Outcome::Failed, "08006"));
    assert_eq!(outcome(vec![error("FATAL", "57P01")]), broken(Outcome::Failed, "57P01"));
}

#[test]
fn after_the_commit_was_handed_over_a_break_is_a_loss() {
    assert_eq!(outcome(vec![read_answer(7), NOTHING]), broken(Outcome::Lost, "08006"));
    assert_eq!(outcome(vec![read_answer(7), error("FATAL", "57P02")]), broken(Outcome::Lost, "57P02"));
    // COMMIT without ReadyForQuery: the answer is not complete.
    assert_eq!(outcome(vec![read_answer(7), tag(b"COMMIT")]), broken(Outcome::Lost, "08006"));
}

#[test]
fn refusals_are_rolled_back_and_the_session_lives() {
    let rollback = || [tag(b"ROLLBACK"), ready(b'I')].concat();
    let failed = |sqlstate: &str| (Outcome::Failed, true, Some(sqlstate.to_owned()));
    let refused = [error("ERROR", "40001"), ready(b'E')].concat();
    assert_eq!(outcome(vec![refused, rollback()]), failed("40001"));
    // A refused COMMIT leaves no block open; a COMMIT that answers ROLLBACK did not commit.
    assert_eq!(outcome(vec![read_answer(7), [error("ERROR", "23503"), ready(b'I')].concat()]), failed("23503"));
    assert_eq!(outcome(vec![read_answer(7), rollback()]), failed("XXVER"));
    // A wrong answer, two rows, none.
    assert_eq!(outcome(vec![read_answer(8), rollback()]), failed("XXVER"));
    assert_eq!(outcome(vec![[row(7), row(7), tag(b"SELECT 2"), ready(b'T')].concat(), rollback()]), failed("XXVER"));
    assert_eq!(outcome(vec![[tag(b"SELECT 0"), ready(b'T')].concat(), rollback()]), failed("XXVER"));
}

#[test]
fn a_break_while_rolling_back_keeps_the_first_reason() {
    let refused = [error("ERROR", "40001"), ready(b'E')].concat();
    assert_eq!(outcome(vec![refused, NOTHING]), broken(Outcome::Failed, "40001"));
}

#[test]
fn a_wrong_answer_is_told_in_words() {
    let (ending, _) = ending(vec![read_answer(8), [tag(b"ROLLBACK"), ready(b'I')].concat()]);
    assert_eq!(ending.failure.unwrap().message, "things 7: number differs");
}
