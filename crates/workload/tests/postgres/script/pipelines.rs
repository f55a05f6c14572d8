//! Pipelines: one request of many statements, what an error within one leaves, and what only the run can tell.

use super::open;
use crate::server::Server;
use crate::support::perform;
use plimsoll_record::Outcome;
use plimsoll_session::Ending;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::script::{NAME, Parameters, Scripts, Source};
use std::collections::BTreeMap;

const MODES: [Mode; 2] = [Mode::Prepared, Mode::Extended];

/// How `count` transactions of a script end, one after the other on one connection.
fn endings(server: &Server, text: &str, mode: Mode, count: u64) -> Vec<Ending> {
    let source = Source { name: "a.sql".to_owned(), text: text.to_owned(), weight: None };
    let parameters = Parameters {
        name: NAME.to_owned(),
        scripts: vec![source],
        variables: BTreeMap::new(),
        seed: 1,
        client_count: 1,
    };
    let scripts = Scripts::new(&parameters, mode).unwrap_or_else(|problems| panic!("{problems}"));
    let mut session = open(server, scripts, mode, 0, 1).remove(0);
    let endings = (0..count).map(|index| perform(session.as_mut(), index)).collect();
    session.close();
    endings
}

#[test]
fn a_pipeline_is_one_request_and_one_transaction() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE t (turn int, part int CHECK (part < 3))");
    let whole = "\\set turn random(1, 9)\nSELECT 1;\n\\startpipeline\nINSERT INTO t VALUES (:turn, 1);\n\
                 INSERT INTO t VALUES (:turn, 2);\nSELECT count(*) FROM t;\n\\endpipeline\nSELECT 2;\n";
    for mode in MODES {
        server.sql("TRUNCATE t");
        for ending in endings(&server, whole, mode, 2) {
            assert_eq!((ending.outcome, ending.failure), (Outcome::Done, None), "{mode:?}");
            assert_eq!((ending.statements, ending.requests), (5, 3), "{mode:?}");
        }
        // Statements without a block of their own are one transaction: all or nothing.
        assert_eq!(server.sql("SELECT count(*), count(DISTINCT xmin::text) FROM t"), "4|2");
    }
}

#[test]
fn an_error_within_a_pipeline_ends_its_transaction_and_no_other() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE t (part int CHECK (part < 3)); CREATE SEQUENCE turns");
    for (begin, end, requests) in [("", "", 1), ("BEGIN;\n", "END;\n", 2)] {
        let text = format!(
            "\\startpipeline\n{begin}INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1 + nextval('turns') % 2 * 2);\n\
             INSERT INTO t VALUES (2);\n{end}\\endpipeline\n"
        );
        for mode in MODES {
            server.sql("TRUNCATE t; ALTER SEQUENCE turns RESTART");
            let found = endings(&server, &text, mode, 4);
            let outcomes: Vec<Outcome> = found.iter().map(|ending| ending.outcome).collect();
            use Outcome::{Done, Failed};
            assert_eq!(outcomes, [Failed, Done, Failed, Done], "{mode:?} {begin}");
            let failure = found[0].failure.clone().unwrap();
            assert_eq!(failure.code, "23514");
            assert!(failure.message.contains("violates check constraint"), "{}", failure.message);
            // An open block is rolled back in a request of its own.
            assert_eq!((found[0].alive, found[0].statements, found[0].requests), (true, 3, requests));
            assert_eq!(server.sql("SELECT count(*) FROM t"), "6", "{mode:?} {begin}");
        }
    }
}

/// Where a condition decides, a wrong pipeline fails its transaction, and nothing of it is sent.
#[test]
fn a_pipeline_that_turns_out_wrong_sends_nothing() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE t (a int)");
    let begin = "\\startpipeline\nINSERT INTO t VALUES (1);\n";
    for (text, wanted) in [
        (format!("{begin}\\if true\nSELECT 1 AS a \\gset\n\\endif\n\\endpipeline\n"), "not allowed in pipeline mode"),
        (format!("{begin}\\if true\n\\startpipeline\n\\endif\n\\endpipeline\n"), "already in pipeline mode"),
        (format!("{begin}\\if false\n\\endpipeline\n\\endif\n"), "end of script reached with pipeline open"),
        ("\\if true\n\\endpipeline\n\\endif\nSELECT 1;\n".to_owned(), "not in pipeline mode"),
        (format!("{begin}\\set x 1 / 0\n\\endpipeline\n"), "division by zero"),
    ] {
        for ending in endings(&server, &text, Mode::Prepared, 2) {
            let failure = ending.failure.unwrap();
            assert_eq!((ending.outcome, ending.alive, failure.code.as_str()), (Outcome::Failed, true, "XXSCR"));
            assert!(failure.message.contains(wanted), "{text}: {}", failure.message);
        }
        assert_eq!(server.sql("SELECT count(*) FROM t"), "0", "{text}");
    }
}

/// An answer that comes during a pause would have the rest of a pipeline sent.
#[test]
fn a_pause_within_a_pipeline_sends_nothing_of_it() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE t (at timestamptz)");
    let text = "\\startpipeline\nINSERT INTO t VALUES (now());\n\\sleep 50 ms\nINSERT INTO t VALUES (clock_timestamp());\n\\endpipeline\n";
    let found = endings(&server, text, Mode::Prepared, 1);
    assert_eq!((found[0].outcome, found[0].requests), (Outcome::Done, 1));
    assert_eq!(server.sql("SELECT max(at) - min(at) < interval '40 ms' FROM t"), "t");
}
