//! Clients on the engine against a web server of the tests: every answer right, each planted fault found and counted, connections
//! as asked for.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::Config;
use plimsoll_schedule::Schedule;
use plimsoll_session::Opener;
use plimsoll_web::{Address, Trust, Web, WebOpener};
use serde_json::{Value, json};
use std::sync::Arc;
use support::load::{TRANSACTIONS, config, served};
use support::parameters;
use support::server::{Framing, Wrong, start};

/// A mix in which every kind is frequent, of small files.
fn small() -> Value {
    json!({"mix": {"static": 3, "dynamic": 1, "cgi": 1, "custom_ad": 3, "post": 2}, "classes": [30, 70, 0, 0]})
}

#[test]
fn every_answer_is_right_however_its_length_is_told() {
    for framing in [Framing::Length, Framing::Chunked, Framing::Close] {
        let server = start(framing, Wrong::Nothing, 1);
        let served = served(
            &server,
            20,
            &config(),
            json!({"classes": [35, 50, 14.9, 0.1], "mix": {"static": 6, "dynamic": 1, "cgi": 1, "custom_ad": 2, "post": 1}}),
        );
        let identity = served.outcomes.identity;
        assert_eq!(
            (identity.done, identity.failed, identity.lost),
            (TRANSACTIONS, 0, 0),
            "{framing:?} {:?}",
            served.outcomes.errors
        );
        let checked: u64 = served.outcomes.reports.iter().map(|report| report.verification.checked).sum();
        assert_eq!((checked, served.wrong()), (TRANSACTIONS, 0));
        assert_eq!(served.log_faults(&server), []);
        let of_class = [0, 1, 2, 3].map(|class| served.totals[format!("class{class}_requests").as_str()]);
        assert_eq!(of_class, served.requests_of_classes());
        assert!(served.totals["posts_acknowledged"] > 100);
        assert_eq!(served.totals["clients_conforming"], 20);
        assert_eq!(served.totals["connections_opened"] as u64, server.connections());
    }
}

#[test]
fn each_planted_fault_is_found_and_counted() {
    for (wrong, total) in [
        (Wrong::Truncated, "wrong_length"),
        (Wrong::OtherFile, "wrong_file"),
        (Wrong::StaleCookie, "wrong_cookie"),
        (Wrong::AdNotReplaced, "ads_not_replaced"),
        (Wrong::Status500, "wrong_status"),
    ] {
        let one_in = if wrong == Wrong::Status500 { 1_000 } else { 100 };
        let server = start(Framing::Length, wrong, one_in);
        let served = served(&server, 8, &config(), small());
        let found: i64 = served
            .totals
            .iter()
            .filter(|(name, _)| name.starts_with("wrong_") || **name == "ads_not_replaced")
            .map(|(_, count)| count)
            .sum();
        // Of a page that is cut the end is missing, and not a byte of the file.
        let counted = served.totals[total] + if wrong == Wrong::Truncated { served.totals["wrong_pages"] } else { 0 };
        assert!(server.wrongs() >= 3, "{wrong:?} {}", server.wrongs());
        assert_eq!((counted, found), (server.wrongs() as i64, server.wrongs() as i64), "{wrong:?} {:?}", served.totals);
        assert_eq!(served.outcomes.identity.failed, server.wrongs());
        assert_eq!(served.wrong(), if wrong == Wrong::Status500 { 0 } else { server.wrongs() });
        let code = if wrong == Wrong::Status500 { "HT500" } else { "XXVER" };
        assert!(served.outcomes.errors.iter().all(|error| error.sqlstate == code), "{:?}", served.outcomes.errors);
    }
}

#[test]
fn posts_that_are_lost_or_there_twice_are_found_in_the_log() {
    for (wrong, check) in
        [(Wrong::PostLost, "POSTs answered and not in the log"), (Wrong::PostTwice, "POSTs in the log more than once")]
    {
        let server = start(Framing::Length, wrong, 100);
        let served = served(&server, 8, &config(), small());
        let faults = served.log_faults(&server);
        assert!(server.wrongs() >= 3);
        assert_eq!((faults.len(), faults[0].0.as_str()), (1, check));
        assert!(faults[0].1.starts_with(&format!("{}: ", server.wrongs())), "{}", faults[0].1);
        assert_eq!(served.outcomes.identity.done, TRANSACTIONS, "each was answered well");
    }
}

#[test]
fn a_connection_that_ends_within_an_answer_fails_that_one_alone() {
    let server = start(Framing::Length, Wrong::Cut, 100);
    let served = served(&server, 8, &config(), small());
    let identity = served.outcomes.identity;
    assert_eq!((identity.failed + identity.lost, identity.planned), (server.wrongs(), TRANSACTIONS));
    assert!(identity.failed > 0 && served.outcomes.errors.iter().all(|error| error.sqlstate == "08006"));
    assert_eq!(served.outcomes.connections_lost, 0, "the client goes on, on a new connection");
    assert_eq!(served.wrong(), 0);
}

#[test]
fn a_kept_connection_that_the_server_has_ended_is_no_failure() {
    let server = start(Framing::Length, Wrong::ClosesUntold, 3);
    let gets =
        json!({"mix": {"static": 1}, "classes": [1, 0, 0, 0], "persistent": 1, "requests_a_connection": [50, 50]});
    let served = served(&server, 8, &config(), gets);
    assert_eq!(served.outcomes.identity.done, TRANSACTIONS, "{:?}", served.outcomes.errors);
    assert!(server.connections() > TRANSACTIONS / 4, "{}", server.connections());
}

#[test]
fn what_is_not_answered_in_time_is_lost_and_the_client_goes_on() {
    let server = start(Framing::Length, Wrong::Silent, 100);
    let config = Config { transactions: Some(500), ..config() };
    let mut more = small();
    more["deadline_ms"] = json!(2_000);
    let served = served(&server, 8, &config, more);
    let identity = served.outcomes.identity;
    assert_eq!(
        (identity.lost, identity.done),
        (server.wrongs(), 500 - server.wrongs()),
        "{:?}",
        served.outcomes.errors
    );
    assert_eq!((server.wrongs() >= 5, served.outcomes.connections_lost), (true, 0));
    assert!(served.outcomes.errors.iter().all(|error| error.message.contains("no answer within 2000 ms")));
}

#[test]
fn connections_carry_as_many_requests_as_asked_for_in_both_versions() {
    let server = start(Framing::Length, Wrong::Nothing, 1);
    let served = served(
        &server,
        10,
        &config(),
        json!({"mix": {"static": 1}, "classes": [1, 0, 0, 0], "http_1_0": 0.5, "persistent": 0.7}),
    );
    assert_eq!(served.outcomes.identity.done, TRANSACTIONS);
    let (old, new) = (server.requests("HTTP/1.0"), server.requests("HTTP/1.1"));
    assert_eq!(old + new, TRANSACTIONS);
    // Kept connections are about a hundred and ninety, each of a version: within five standard deviations of half.
    assert!((old as f64 / TRANSACTIONS as f64 - 0.5).abs() < 0.2, "{old} of {TRANSACTIONS} in HTTP/1.0");
    // 0.3 of the requests alone, 0.7 in tens: one connection for each 2.7 requests.
    let mean = TRANSACTIONS as f64 / server.connections() as f64;
    assert!((2.3..3.1).contains(&mean), "{mean} requests a connection");
    assert!(
        server.requests("last") + 10 >= server.connections(),
        "the last request of each says so, but for those at the end"
    );
}

#[test]
fn an_open_loop_serves_its_plan() {
    let server = start(Framing::Length, Wrong::Nothing, 1);
    let schedule = Schedule::Poisson { rate: 500.0, seed: 3, late_limit_ms: None };
    let config = Config { transactions: None, duration_ns: Some(2_000_000_000), schedule, ..config() };
    let served = served(&server, 50, &config, small());
    let identity = served.outcomes.identity;
    assert!(identity.planned > 800 && identity.done == identity.planned, "{identity:?} {:?}", served.outcomes.errors);
    assert_eq!(served.log_faults(&server), []);
}

#[test]
fn without_a_server_nothing_begins() {
    let web = Arc::new(Web::new(parameters(json!({}))).unwrap());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let opener =
        WebOpener::new(web, Address::of_url(&format!("http://{free}"), &Trust::default()).unwrap(), folder.path())
            .unwrap();
    let failure = opener.open(0).err().unwrap();
    assert_eq!(failure.code, "08006");
    assert!(failure.message.contains("cannot be reached"), "{}", failure.message);
}
