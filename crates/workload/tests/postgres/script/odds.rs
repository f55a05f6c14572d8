//! Odd scripts: pgbench either leaves the same rows or ends in an error where we refuse the script or fail the
//! transaction.

use super::open;
use crate::server::Server;
use crate::support::perform;
use plimsoll_record::Outcome;
use plimsoll_target::postgres::Mode;
use plimsoll_workload::script::{Definition, NAME, Parameters, Scripts, Source};

const WIDE: &str =
    "\\set a 1.0\n\\set b 1e20\n\\set c -1e-7\n\\set d true\nINSERT INTO x VALUES (:a, concat(:b, :c, :d));";

/// A script, its mode and the variables that it is given.
type Case = (&'static str, Mode, &'static [(&'static str, &'static str)]);

const CASES: [Case; 44] = [
    ("\\set a NULL\nINSERT INTO x VALUES (:a, :undefined);", Mode::Extended, &[]),
    ("\\set a NULL\nINSERT INTO x VALUES (:a, :undefined);", Mode::Prepared, &[]),
    ("\\set a NULL\nINSERT INTO x VALUES (:a, 1);", Mode::Simple, &[]),
    ("INSERT INTO x VALUES (1, :undefined);", Mode::Simple, &[]),
    ("INSERT INTO x VALUES (':client_id /* :scale */', 'a:b::c:scale:scale');", Mode::Simple, &[]),
    ("INSERT INTO x VALUES (1, ':scale');", Mode::Extended, &[]),
    ("INSERT INTO x VALUES (:a, '12:30:00'); -- :b", Mode::Prepared, &[("a", "007")]),
    ("INSERT INTO x VALUES (:a, 1);", Mode::Simple, &[("a", "007")]),
    ("INSERT INTO x VALUES (1, 2) /* :b */;", Mode::Prepared, &[("b", "1")]),
    ("SELECT 1 \\; SELECT 2;", Mode::Prepared, &[]),
    ("SELECT 1 \\; INSERT INTO x VALUES (1, '\\:scale'); INSERT INTO x VALUES (2, \\:scale)", Mode::Simple, &[]),
    ("\\set 1x 5\nSELECT 1;", Mode::Simple, &[]),
    ("\\sleep :a\nSELECT 1;", Mode::Simple, &[("a", "abc")]),
    ("\\sleep :a us\nINSERT INTO x VALUES (1, 1);", Mode::Simple, &[("a", "5abc")]),
    ("\\sleep -5 us\nINSERT INTO x VALUES (1, 1);", Mode::Simple, &[]),
    ("\\sleep 1h\nSELECT 1;", Mode::Simple, &[]),
    ("\\sleep 1us us\nSELECT 1;", Mode::Simple, &[]),
    ("\\sleep :undefined us\nSELECT 1;", Mode::Simple, &[]),
    ("\\sleep 1.5 us\nSELECT 1;", Mode::Simple, &[]),
    ("SELECT NULL AS e \\gset\n\\set y :e", Mode::Simple, &[]),
    ("SELECT NULL AS e \\gset\nINSERT INTO x VALUES (':e', 1);", Mode::Simple, &[]),
    ("SELECT NULL AS e \\gset\nINSERT INTO x VALUES (:e, 1);", Mode::Prepared, &[]),
    ("SELECT 1 \\gset", Mode::Simple, &[]),
    ("SELECT 1 AS a, 2 AS \"b c\" \\gset", Mode::Extended, &[]),
    ("SELECT 1 AS a WHERE false \\gset", Mode::Prepared, &[]),
    ("SELECT 1 AS a UNION ALL SELECT 2 \\gset", Mode::Simple, &[]),
    ("SELECT 1 AS a \\; UPDATE x SET a = 1 \\gset", Mode::Simple, &[]),
    ("SELECT 1 AS a \\; SELECT 2 AS b \\gset\nINSERT INTO x VALUES (':a', ':b');", Mode::Simple, &[]),
    ("INSERT INTO x VALUES (1, 2) RETURNING a, b \\gset r_\nINSERT INTO x VALUES (:r_b, :r_a);", Mode::Extended, &[]),
    ("SELECT 1 AS a;\n\\gset\nINSERT INTO x VALUES (1, :a);", Mode::Simple, &[]),
    ("\\if 1\nSELECT 1 AS a;\n\\endif\n\\gset", Mode::Simple, &[]),
    ("BEGIN;\nINSERT INTO x VALUES (1, 1);", Mode::Simple, &[]),
    ("\\\n/* a comment */\n\\set a 1\nINSERT INTO x VALUES (:a, 1)", Mode::Simple, &[]),
    ("SELECT 1; \\set a 5 \r\n\\set b :a \\\r\n+ 1\r\nINSERT INTO x VALUES (:a, :b)", Mode::Simple, &[]),
    ("SELECT 'abc", Mode::Simple, &[]),
    ("\\set a 1/0\nINSERT INTO x VALUES (1, 1);", Mode::Simple, &[]),
    ("\\SET a 1\n\\SLEEP 1 US\n\\If 1\nINSERT INTO x VALUES (1, 1);\n\\EndIf", Mode::Simple, &[]),
    ("\\set a null\n\\if :a\nSELECT 1/0;\n\\elif :a is null\nINSERT INTO x VALUES (2, 2);\n\\endif", Mode::Simple, &[]),
    (
        "\\if 0\n\\set y 1/0\n\\if 1/0\nSELECT 1;\n\\endif\n\\elif 1\nINSERT INTO x VALUES (1, 1);\n\\elif 1/0\n\\else\n\\set y 1/0\n\\endif",
        Mode::Simple,
        &[],
    ),
    ("\\set a 5\\\nSELECT :a;", Mode::Simple, &[]),
    ("\\set a hash(5)\nINSERT INTO x VALUES (:a, :default_seed);", Mode::Simple, &[("default_seed", "12")]),
    ("\\set a hash(5)\nSELECT 1;", Mode::Simple, &[("default_seed", "abc")]),
    (WIDE, Mode::Simple, &[]),
    ("COPY x FROM stdin;", Mode::Simple, &[]),
];

fn parameters(text: &str, variables: &[(&str, &str)], seed: u64) -> Parameters {
    let define = |(name, text): &(&str, &str)| ((*name).to_owned(), Definition::Text((*text).to_owned()));
    Parameters {
        name: NAME.to_owned(),
        scripts: vec![Source { name: "odd.sql".to_owned(), text: text.to_owned(), weight: None }],
        variables: variables.iter().map(define).collect(),
        seed,
        client_count: 1,
    }
}

/// The rows that a transaction left, or "failed".
fn by_us(server: &Server, (text, mode, variables): Case) -> String {
    let Ok(scripts) = Scripts::new(&parameters(text, variables, 1), mode) else { return "failed".to_owned() };
    let mut conversation = open(server, scripts, mode, 0, 1).remove(0);
    let outcome = perform(conversation.as_mut(), 0).outcome;
    conversation.close();
    rows(server, outcome == Outcome::Done)
}

fn rows(server: &Server, is_done: bool) -> String {
    if is_done { server.sql("SELECT a, coalesce(b, 'NULL') FROM x") } else { "failed".to_owned() }
}

fn by_pgbench(server: &Server, (text, mode, variables): Case) -> String {
    let file = server.file("odd.sql", text);
    let mode = format!("-M{mode:?}").to_lowercase().replace("-m", "-M");
    let definitions: Vec<String> = variables.iter().map(|(name, text)| format!("-D{name}={text}")).collect();
    let mut arguments = vec!["-n", "-t1", "--random-seed=1", &mode, "-f", &file];
    arguments.extend(definitions.iter().map(String::as_str));
    let (success, _) = server.try_pgbench(&arguments);
    rows(server, success)
}

#[test]
fn odd_scripts_do_what_they_do_in_pgbench() {
    let Some(server) = Server::start("") else { return };
    if !server.has_pgbench_15() {
        return eprintln!("skipped: pgbench is not of version 15");
    }
    server.sql("CREATE TABLE x (a text, b text)");
    for case in CASES {
        server.sql("TRUNCATE x");
        let expected = by_pgbench(&server, case);
        server.sql("TRUNCATE x");
        assert_eq!(by_us(&server, case), expected, "{case:?}");
    }
}

/// A try again draws the same but does not put variables back; a transaction that failed keeps what it drew. All as
/// pgbench 15.18 was seen to do.
#[test]
fn tries_and_failures_keep_what_pgbench_keeps() {
    const TEXT: &str = "\\set n :n + 1\n\\set r random(1, 1000000)\nSELECT fail(:n);\nINSERT INTO log VALUES (:n, :r);";
    let Some(server) = Server::start("") else { return };
    server.sql(
        "CREATE SEQUENCE tries; CREATE TABLE log (n int, r int); CREATE FUNCTION fail(x int) RETURNS int LANGUAGE plpgsql AS \
         $$ BEGIN IF nextval('tries') % 2 = 1 THEN RAISE SQLSTATE '40001'; END IF; RETURN x; END $$",
    );
    let perform_five = |retries_max: u32| {
        server.sql("TRUNCATE log; SELECT setval('tries', 1, false)");
        let scripts = Scripts::new(&parameters(TEXT, &[("n", "0")], 7), Mode::Prepared).unwrap();
        let mut conversation = open(&server, scripts, Mode::Prepared, retries_max, 1).remove(0);
        let endings: Vec<_> = (0..5).map(|index| perform(conversation.as_mut(), index)).collect();
        conversation.close();
        (endings, server.sql("SELECT string_agg(n || ':' || r, ' ' ORDER BY n) FROM log"))
    };
    let (endings, log) = perform_five(3);
    assert!(endings.iter().all(|ending| ending.outcome == Outcome::Done && ending.retries == 1), "{endings:?}");
    assert_eq!(log, "2:869439 4:372040 6:23551 8:960650 10:889600");
    let (endings, log) = perform_five(0);
    assert_eq!(endings.iter().filter(|ending| ending.outcome == Outcome::Failed).count(), 3);
    assert_eq!(log, "2:372040 4:960650");
}

#[test]
fn an_expression_that_fails_fails_its_transaction_alone() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE x (a text, b text)");
    let text = "\\set n :n + 1\nBEGIN;\nINSERT INTO x VALUES (:n, 1);\n\\set y 6 / (:n - 2)\nCOMMIT;";
    let scripts = Scripts::new(&parameters(text, &[("n", "0")], 7), Mode::Prepared).unwrap();
    let mut conversation = open(&server, scripts, Mode::Prepared, 0, 1).remove(0);
    let endings: Vec<_> = (0..3).map(|index| perform(conversation.as_mut(), index)).collect();
    let outcomes = [Outcome::Done, Outcome::Failed, Outcome::Done];
    assert_eq!(endings.iter().map(|ending| ending.outcome).collect::<Vec<_>>(), outcomes);
    let failure = endings[1].failure.clone().unwrap();
    let told = ("XXSCR", "script odd.sql, line 4: division by zero");
    assert_eq!((failure.code.as_str(), failure.message.as_str()), told);
    assert_eq!(server.sql("SELECT string_agg(a, ' ' ORDER BY a) FROM x"), "1 3");
}

/// pgbench aborts the client with "expected one row, got N"; here the transaction fails alone, saying the same.
#[test]
fn gset_without_exactly_one_row_is_an_error_of_the_script() {
    let Some(server) = Server::start("") else { return };
    server.sql("CREATE TABLE x (a text, b text)");
    let cases = [
        ("SELECT 1 AS a WHERE false", 0),
        ("SELECT 1 AS a UNION ALL SELECT 2", 2),
        ("UPDATE x SET a = b", 0),
        ("SELECT i AS a FROM generate_series(1, 300) AS i", 300),
    ];
    for (text, rows) in cases {
        let text = format!("SELECT 1;\n{text} \\gset\nINSERT INTO x VALUES (1, 1);");
        for mode in [Mode::Simple, Mode::Extended, Mode::Prepared] {
            let scripts = Scripts::new(&parameters(&text, &[], 1), mode).unwrap();
            let mut conversation = open(&server, scripts, mode, 0, 1).remove(0);
            let ending = perform(conversation.as_mut(), 0);
            let failure = ending.failure.unwrap();
            let told = format!("script odd.sql, line 2: gset: expected one row, got {rows}");
            assert_eq!((failure.code.as_str(), failure.message), ("XXSCR", told), "{mode:?}");
            assert_eq!((ending.outcome, conversation.close().verification.wrong), (Outcome::Failed, 0));
        }
        if server.has_pgbench_15() {
            let (success, said) = server.try_pgbench(&["-n", "-t1", "-f", &server.file("gset.sql", &text)]);
            assert!(!success && said.contains(&format!("expected one row, got {rows}")), "{said}");
        }
    }
    assert_eq!(server.sql("SELECT count(*) FROM x"), "0");
}
