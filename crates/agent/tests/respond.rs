//! The agent behind a web server: by FastCGI until it is told to end, and as a CGI program.

#![allow(clippy::unwrap_used)]

#[path = "../../responder/tests/support/mod.rs"]
mod responder;
mod support;

use plimsoll_web::{Fault, Kind, Request};
use responder::fastcgi::{connected, heard, parsed, sent};
use responder::{Site, request_of};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use support::{Agent, agent};

struct Responding {
    site: Site,
    agent: Agent,
}

impl Responding {
    fn start() -> Self {
        let site = Site::new();
        let request = json!({
            "listen": site.place.path().join("sock"), "folder": site.root(), "program": site.place.path(), "threads": 2,
        });
        let mut agent = Agent::start("respond", &request);
        assert_eq!(agent.line()["event"], "responding");
        Self { site, agent }
    }

    fn socket(&self) -> PathBuf {
        self.site.place.path().join("sock")
    }

    fn ask(&self, script: &str, request: &Request) -> Result<(), Fault> {
        let mut stream = connected(&self.socket());
        stream.write_all(&sent(script, request, false)).unwrap();
        let (answer, errors) = heard(&mut stream);
        assert!(errors.is_empty(), "{}", String::from_utf8_lossy(&errors));
        let (status, cookie, body) = parsed(&answer);
        self.site.judged(self.site.web.mix(), request, status, cookie.as_deref(), body)
    }

    /// The exit code and what was said last; its socket is gone.
    fn end(self) -> (Option<i32>, Value) {
        let socket = self.socket();
        let said = self.agent.end();
        assert!(!socket.exists());
        (said.code, said.result().clone())
    }
}

#[test]
fn it_answers_until_it_is_told_to_end() {
    let mut responding = Responding::start();
    let mix = responding.site.web.mix();
    let post = request_of(mix, Kind::Post, 0);
    for (script, request) in [
        ("/web/dynamic", request_of(mix, Kind::Dynamic, 0)),
        ("/web/custom_ad", request_of(mix, Kind::CustomAd, 0)),
        ("/web/cgi", request_of(mix, Kind::Cgi, 0)),
        ("/web/cgi", request_of(mix, Kind::Cgi, 5_000)),
        ("/web/post", post),
    ] {
        assert_eq!(responding.ask(script, &request), Ok(()), "{request:?}");
    }
    assert_eq!(responding.site.log_faults(&[post.index]), [""; 0]);
    responding.agent.tell("stop");
    let (code, totals) = responding.end();
    let expected = json!({
        "event": "responded", "requests": 5, "refused": 0, "processes": 2, "connections": 5,
        "connections_max": totals["connections_max"],
    });
    assert_eq!((code, totals), (Some(0), expected));
}

#[test]
fn it_ends_with_its_input() {
    let mut responding = Responding::start();
    responding.agent.close_input();
    let (code, totals) = responding.end();
    assert_eq!((code, &totals["requests"]), (Some(4), &json!(0)));
}

#[test]
fn wrong_requests_name_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let request = json!({"listen": "127.0.0.1:0", "folder": folder.path(), "program": folder.path()});
    for (key, value) in [
        ("listen", json!("0.0.0.0:9000")),
        ("folder", json!("/nowhere")),
        ("threads", json!(0)),
        ("connections", json!(1 << 20)),
        ("port", json!(1)),
    ] {
        let mut wrong = request.clone();
        wrong[key] = value;
        let said = agent("respond", &wrong);
        assert!(said.code == Some(2) && said.errors.contains(key), "{key}: {said:?}");
    }
}

/// The agent as a server starts it for a request.
fn as_cgi(site: &Site, request: &Request, unset: &str) -> Output {
    let (cookie, body) = responder::cookie_and_body(request);
    let body = body.unwrap_or_default();
    let (query, length) = (request.place.path(), body.len().to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-agent"));
    // A query without "=" comes as an argument, too.
    command.arg(&query).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let folder = site.place.path().to_owned();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1".into()),
        ("REQUEST_METHOD", if body.is_empty() { "GET" } else { "POST" }.into()),
        ("SCRIPT_NAME", "/web/cgi".into()),
        ("QUERY_STRING", query.clone().into()),
        ("HTTP_COOKIE", cookie.into()),
        ("CONTENT_LENGTH", length.into()),
        ("PLIMSOLL_WEB_ROOT", site.root().into_os_string()),
        ("PLIMSOLL_WEB_PROGRAM", folder.into_os_string()),
    ] {
        if name != unset {
            command.env(name, value);
        }
    }
    let mut child = command.spawn().unwrap();
    // The pipe stays open: a program that waits for its end would hang.
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(body.as_bytes());
    let output = child.wait_with_output().unwrap();
    drop(input);
    output
}

#[test]
fn as_a_cgi_program_it_answers_one_request() {
    let site = Site::new();
    let mix = site.web.mix();
    for kind in [Kind::Cgi, Kind::CustomAd, Kind::Post] {
        let request = request_of(mix, kind, 0);
        let output = as_cgi(&site, &request, "");
        assert!(output.status.success() && output.stderr.is_empty());
        let (status, cookie, body) = parsed(&output.stdout);
        assert_eq!(site.judged(mix, &request, status, cookie.as_deref(), body), Ok(()));
    }
    let output = as_cgi(&site, &request_of(mix, Kind::Cgi, 0), "PLIMSOLL_WEB_ROOT");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && said.contains("PLIMSOLL_WEB_ROOT: not set"), "{said}");
}
