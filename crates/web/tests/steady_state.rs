//! What a request costs a client beside its system calls: no allocation, whatever its kind.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_record::Outcome;
use plimsoll_session::{Opener, Progress, Ready, Session};
use plimsoll_web::{Address, Trust, Web, WebOpener};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use support::{parameters, right};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WARM: u64 = 500;
const COUNTED: u64 = 1_000;

/// Performs request `index`, waiting as the engine would.
fn perform(session: &mut dyn Session, index: u64) {
    session.begin(index);
    let mut ready = Ready::Nothing;
    loop {
        match session.advance(ready) {
            Progress::Ended(ending) => return assert_eq!(ending.outcome, Outcome::Done, "{:?}", ending.failure),
            Progress::Waiting { .. } | Progress::Moved { .. } => {
                poll(&mut [PollFd::new(&session, PollFlags::IN)], None).unwrap();
                ready = Ready::Readable;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn requests_cost_no_allocation() {
    // On one connection: another one is memory of the kernel alone.
    let more = json!({
        "mix": {"static": 3, "dynamic": 1, "cgi": 1, "custom_ad": 3, "post": 2}, "classes": [40, 60, 0, 0],
        "persistent": 1, "requests_a_connection": [100_000, 100_000],
    });
    let web = Arc::new(Web::new(parameters(more)).unwrap());
    let answers: Vec<Vec<u8>> = (0..WARM + COUNTED)
        .map(|index| {
            let (cookie, body) = right(web.mix(), web.files().contents(), &web.mix().request(index));
            let cookie = cookie.map_or_else(String::new, |cookie| format!("Set-Cookie: {cookie}; Path=/\r\n"));
            let keeps = if web.mix().connection(0).old { "Connection: keep-alive\r\n" } else { "" };
            let head =
                format!("HTTP/1.1 200 OK\r\nServer: test\r\nContent-Length: {}\r\n{keeps}{cookie}\r\n", body.len());
            [head.as_bytes(), &body].concat()
        })
        .collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // The opener's look comes first.
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        for answer in &answers {
            // A request is one write, and nothing follows before its answer.
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer).unwrap();
        }
        answers
    });
    let folder = tempfile::tempdir().unwrap();
    let address = Address::of_url(&url, &Trust::default()).unwrap();
    let opener = WebOpener::new(web, address, folder.path()).unwrap();
    let mut session = opener.open(0).unwrap();
    (0..WARM).for_each(|index| perform(session.as_mut(), index));
    let region = Region::new(ALLOCATOR);
    (WARM..WARM + COUNTED).for_each(|index| perform(session.as_mut(), index));
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "in {COUNTED} requests: {change:?}");
    drop(server.join().unwrap());
    assert_eq!(session.close().verification.wrong, 0);
}
