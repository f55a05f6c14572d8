//! A conversation with a scripted server: what is done, failed and lost, told apart by when the connection breaks; what is
//! tried again; and which messages are sent.

#![allow(clippy::unwrap_used)]

mod server;
mod steps;

use plimsoll_record::Outcome;
use plimsoll_session::Ending;
use plimsoll_target::postgres::{Mode, Protocol};
use server::{PREPARED, error, message, perform, read_answer, ready, row, tag};
use steps::{Step, Steps, read_and_commit};

const NOTHING: Vec<u8> = Vec::new();

fn ending(answers: Vec<Vec<u8>>) -> (Ending, Vec<(&'static str, i64)>) {
    let told = perform(read_and_commit(), PREPARED, 0, answers);
    (told.ending, told.totals)
}

fn outcome(answers: Vec<Vec<u8>>) -> (Outcome, bool, Option<String>) {
    let (ending, totals) = ending(answers);
    let counted = (i64::from(ending.outcome == Outcome::Done), i64::from(ending.outcome == Outcome::Lost));
    assert_eq!(totals, [("done", counted.0), ("lost", counted.1)]);
    (ending.outcome, ending.alive, ending.failure.map(|failure| failure.code))
}

fn broken(outcome: Outcome, sqlstate: &str) -> (Outcome, bool, Option<String>) {
    (outcome, false, Some(sqlstate.to_owned()))
}

#[test]
fn a_committed_transaction_is_done() {
    let (ending, _) = ending(vec![read_answer(7), [tag(b"COMMIT"), ready(b'I')].concat()]);
    assert_eq!(
        ending,
        Ending { outcome: Outcome::Done, statements: 1, retries: 0, requests: 2, bytes: 0, failure: None, alive: true }
    );
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

fn refused(sqlstate: &str, status: u8) -> Vec<u8> {
    [error("ERROR", sqlstate), ready(status)].concat()
}

fn committed() -> Vec<u8> {
    [tag(b"COMMIT"), ready(b'I')].concat()
}

fn rolled_back() -> Vec<u8> {
    [tag(b"ROLLBACK"), ready(b'I')].concat()
}

#[test]
fn what_is_worth_another_try_is_tried_again() {
    let answers = || {
        vec![
            refused("40001", b'E'),
            rolled_back(),
            read_answer(7),
            // A refused COMMIT leaves no block open.
            refused("40P01", b'I'),
            read_answer(7),
            committed(),
        ]
    };
    let told = perform(read_and_commit(), PREPARED, 2, answers());
    let ending = told.ending;
    assert_eq!((ending.outcome, ending.retries, ending.statements, ending.failure), (Outcome::Done, 2, 3, None));
    assert_eq!(told.totals, [("done", 1), ("lost", 0)]);

    let ending = perform(read_and_commit(), PREPARED, 1, answers()).ending;
    assert_eq!((ending.outcome, ending.retries, ending.alive), (Outcome::Failed, 1, true));
    assert_eq!(ending.failure.unwrap().code, "40P01");

    let ending = perform(read_and_commit(), PREPARED, 9, vec![refused("23505", b'E'), rolled_back()]).ending;
    assert_eq!((ending.outcome, ending.retries), (Outcome::Failed, 0), "other errors are not");
}

#[test]
fn a_break_in_a_later_try_is_judged_by_that_try() {
    let answers = vec![read_answer(7), refused("40001", b'I'), NOTHING];
    let ending = perform(read_and_commit(), PREPARED, 1, answers).ending;
    assert_eq!((ending.outcome, ending.alive, ending.retries), (Outcome::Failed, false, 1), "its commit was not sent");
    let answers = vec![refused("40001", b'E'), NOTHING];
    let ending = perform(read_and_commit(), PREPARED, 1, answers).ending;
    assert_eq!((ending.outcome, ending.failure.unwrap().code.as_str()), (Outcome::Failed, "40001"));
}

#[test]
fn it_rests_as_told_and_goes_on() {
    let steps = vec![Step::Rest, Step::Read, Step::Rest, Step::Commit];
    let told = perform(Steps { steps, at_first_use: false }, PREPARED, 0, vec![read_answer(7), committed()]);
    assert_eq!((told.ending.outcome, told.rests), (Outcome::Done, 2));
}

#[test]
fn a_workload_may_fail_of_its_own() {
    let failing = |steps: Vec<Step>| Steps { steps, at_first_use: false };
    let told = perform(failing(vec![Step::Fail]), PREPARED, 3, vec![]);
    assert_eq!((told.ending.outcome, told.ending.failure.unwrap().code.as_str()), (Outcome::Failed, "XXSCR"));
    let told = perform(failing(vec![Step::Read, Step::Fail]), PREPARED, 3, vec![read_answer(7), rolled_back()]);
    assert_eq!((told.ending.outcome, told.read.len()), (Outcome::Failed, 2), "rolled back");
    let told = perform(failing(vec![Step::Read]), PREPARED, 3, vec![read_answer(7), rolled_back()]);
    assert_eq!(told.ending.failure.unwrap().code, "25001", "its block was left open");
}

#[test]
fn copy_from_the_client_ends_the_connection() {
    let told = perform(read_and_commit(), PREPARED, 0, vec![message(b'G', &[0; 3])]);
    assert_eq!((told.ending.alive, told.ending.failure.unwrap().code.as_str()), (false, "0A000"));
}

/// The tags of a round trip's messages.
fn tags(mut read: &[u8]) -> String {
    let mut tags = String::new();
    while let [tag, a, b, c, d, ..] = *read {
        tags.push(char::from(tag));
        read = &read[u32::from_be_bytes([a, b, c, d]) as usize + 1..];
    }
    tags
}

fn written(protocol: Protocol, at_first_use: bool) -> Vec<Vec<u8>> {
    let steps = vec![Step::Write, Step::Write];
    let answer = || [message(b'1', b""), tag(b"OK"), ready(b'I')].concat();
    perform(Steps { steps, at_first_use }, protocol, 0, vec![answer(), answer()]).read
}

#[test]
fn each_mode_sends_its_messages() {
    for (mode, describe, at_first_use, expected) in [
        (Mode::Prepared, false, false, ["BES", "BES"]),
        (Mode::Prepared, true, false, ["BDES", "BDES"]),
        (Mode::Prepared, true, true, ["PBDES", "BDES"]),
        (Mode::Extended, false, false, ["PBES", "PBES"]),
        (Mode::Extended, true, false, ["PBDES", "PBDES"]),
        (Mode::Simple, true, false, ["Q", "Q"]),
    ] {
        let read = written(Protocol { mode, describe }, at_first_use);
        assert_eq!(read.iter().map(|read| tags(read)).collect::<Vec<_>>(), expected, "{mode:?} {describe}");
    }
}

#[test]
fn messages_are_those_of_the_protocol() {
    let values = b"\0\x02\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfb\0\0\0\x04it's";
    let bind =
        |name: &str| message(b'B', &[b"\0", name.as_bytes(), b"\0\0\x01\0\x01", &values[..], b"\0\x01\0\x01"].concat());
    let (describe, execute, sync) = (message(b'D', b"P\0"), message(b'E', &[0; 5]), message(b'S', b""));
    let prepared = written(Protocol { mode: Mode::Prepared, describe: true }, false);
    assert_eq!(prepared[0], [bind("s2"), describe, execute.clone(), sync.clone()].concat());
    let extended = written(Protocol { mode: Mode::Extended, describe: false }, false);
    let parse = message(b'P', b"\0write $2, $1;\0\0\0");
    assert_eq!(extended[0], [parse, bind(""), execute, sync].concat());
    let simple = written(Protocol { mode: Mode::Simple, describe: false }, false);
    assert_eq!(simple[0], message(b'Q', b"write 'it''s', -5;\0"));
}

#[test]
fn a_refused_preparation_is_tried_again() {
    let steps = || Steps { steps: vec![Step::Write], at_first_use: true };
    let answers = vec![refused("40001", b'I'), [message(b'1', b""), tag(b"OK"), ready(b'I')].concat()];
    let told = perform(steps(), PREPARED, 1, answers);
    assert_eq!(told.read.iter().map(|read| tags(read)).collect::<Vec<_>>(), ["PBES", "PBES"]);
    let answers = vec![[message(b'1', b""), refused("40001", b'I')].concat(), [tag(b"OK"), ready(b'I')].concat()];
    let told = perform(steps(), PREPARED, 1, answers);
    assert_eq!(told.read.iter().map(|read| tags(read)).collect::<Vec<_>>(), ["PBES", "BES"], "it was prepared");
}

#[test]
fn rows_are_compared_as_text_in_simple_mode() {
    let row = |text: &[u8]| message(b'D', &[b"\0\x01\0\0\0\x01", text].concat());
    let answer = |text: &[u8]| [message(b'T', b"\0\0"), row(text), tag(b"SELECT 1"), ready(b'T')].concat();
    let simple = Protocol { mode: Mode::Simple, describe: false };
    let ending = perform(read_and_commit(), simple, 0, vec![answer(b"7"), committed()]).ending;
    assert_eq!(ending.outcome, Outcome::Done);
    let ending = perform(read_and_commit(), simple, 0, vec![answer(b"8"), rolled_back()]).ending;
    assert_eq!(ending.failure.unwrap().message, "things 7: number differs");
}

#[test]
fn a_statement_that_cannot_be_prepared_is_named() {
    let answer = [message(b'1', b""), error("ERROR", "42725"), ready(b'I')].concat();
    let refused = server::refused_opening(read_and_commit(), answer);
    assert_eq!(refused.code, "42725");
    assert_eq!(refused.message, "commit: the server says no (SQLSTATE 42725)");
    let refused = server::refused_opening(read_and_commit(), error("FATAL", "57P03"));
    assert_eq!(refused.message, "the connection broke: the server closed it", "it was never ready again");
}
