//! A server's side of FastCGI against the responder: every answer right over connections that are kept or not, on few threads, however
//! slowly some are read.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_responder::{Limits, Listen, Responder, Stopper, Totals};
use plimsoll_web::{KINDS, Kind, Request};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use support::fastcgi::{connected, heard, parsed, sent};
use support::{Site, request_of};

fn ask(site: &Site, stream: &mut UnixStream, request: &Request, keeps: bool) {
    stream.write_all(&sent("/web/x", request, keeps)).unwrap();
    let (answer, errors) = heard(stream);
    let (status, cookie, body) = parsed(&answer);
    assert_eq!(site.judged(site.web.mix(), request, status, cookie.as_deref(), body), Ok(()), "{request:?}");
    assert!(errors.is_empty());
}

/// Ends the responder also where an assertion fails.
struct Stopped(Stopper);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn responding(site: &Site, limits: Limits, with: impl FnOnce(&Path)) -> Totals {
    let path = site.place.path().join("program.sock");
    let listen = Listen::Unix(path.clone());
    let responder =
        Responder::new(&listen, (&site.root(), site.place.path()), PathBuf::from("/nowhere"), limits).unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| responder.run().unwrap());
        let stopped = Stopped(responder.stopper());
        with(&path);
        drop(stopped);
        running.join().unwrap()
    })
}

#[test]
fn every_kind_is_answered_on_connections_that_are_kept_or_not() {
    let site = Site::new();
    let totals = responding(&site, Limits { threads: 3, connections: 100 }, |path| {
        std::thread::scope(|scope| {
            for part in 0..4 {
                let site = &site;
                scope.spawn(move || {
                    let mut kept = connected(path);
                    for (kind, _) in KINDS.into_iter().skip(1) {
                        let request = request_of(site.web.mix(), kind, part * 1_000);
                        ask(site, &mut kept, &request, true);
                        let mut once = connected(path);
                        ask(site, &mut once, &request_of(site.web.mix(), kind, part * 1_000 + 500), false);
                        assert_eq!(once.read(&mut [0]).unwrap(), 0, "it is closed after its answer");
                    }
                });
            }
        });
    });
    assert_eq!((totals.requests, totals.refused, totals.connections), (32, 0, 20));
    assert!((4..=8).contains(&totals.connections_max));
    let answered: Vec<u64> = (0..8).map(|part| request_of(site.web.mix(), Kind::Post, part * 500).index).collect();
    assert_eq!(site.log_faults(&answered), [""; 0]);
    assert!(!site.place.path().join("program.sock").exists());
}

#[test]
fn who_reads_slowly_takes_no_thread() {
    let site = Site::new();
    let mix = site.web.mix();
    let large = (0..).map(|index| request_of(mix, Kind::Dynamic, index)).find(|it| it.place.class == 3).unwrap();
    let totals = responding(&site, Limits { threads: 1, connections: 100 }, |path| {
        let mut slow: Vec<UnixStream> = (0..20).map(|_| connected(path)).collect();
        // More than a socket's buffer holds.
        slow.iter_mut().for_each(|stream| stream.write_all(&sent("/web/x", &large, false)).unwrap());
        for index in 0..50 {
            ask(&site, &mut connected(path), &request_of(mix, Kind::Dynamic, index), false);
        }
        for stream in &mut slow {
            let (answer, _) = heard(stream);
            assert_eq!(site.judged(mix, &large, 200, None, parsed(&answer).2), Ok(()));
        }
    });
    assert_eq!(totals.requests, 70);
    assert!(totals.connections_max >= 20);
}

#[test]
fn connections_beyond_the_limit_wait_for_one_that_closes() {
    let site = Site::new();
    let mix = site.web.mix();
    let totals = responding(&site, Limits { threads: 2, connections: 2 }, |path| {
        let mut open: Vec<UnixStream> = (0..5).map(|_| connected(path)).collect();
        for (index, stream) in (0..).zip(open.drain(..)) {
            let mut stream = stream;
            ask(&site, &mut stream, &request_of(mix, Kind::Dynamic, index), true);
        }
    });
    assert_eq!((totals.connections, totals.connections_max, totals.requests), (5, 2, 5));
}

#[test]
fn what_goes_wrong_has_its_status_and_is_told_to_the_log_of_errors() {
    let site = Site::new();
    let mix = site.web.mix();
    let totals = responding(&site, Limits { threads: 1, connections: 10 }, |path| {
        let mut stream = connected(path);
        let request = request_of(mix, Kind::Dynamic, 0);
        std::fs::remove_file(site.root().join(&request.place.path()[1..])).unwrap();
        stream.write_all(&sent("/web/dynamic", &request, true)).unwrap();
        assert_eq!(parsed(&heard(&mut stream).0).0, 404);
        // There is no program that could be started.
        stream.write_all(&sent("/web/cgi", &request, true)).unwrap();
        let (answer, errors) = heard(&mut stream);
        assert!(answer.starts_with(b"Status: 500 ") && errors.starts_with(b"/nowhere: "));
        std::fs::write(site.place.path().join("post.log"), "damaged").unwrap();
        stream.write_all(&sent("/web/post", &request_of(mix, Kind::Post, 0), true)).unwrap();
        let (answer, errors) = heard(&mut stream);
        assert_eq!((parsed(&answer).0, errors.as_slice()), (500, parsed(&answer).2));
        // Another protocol is hung up on, and the others are not.
        let mut other = connected(path);
        other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(other.read(&mut [0]).unwrap_or(0), 0);
        ask(
            &site,
            &mut stream,
            &(0..).map(|index| request_of(mix, Kind::Dynamic, index)).find(|it| it.place != request.place).unwrap(),
            true,
        );
    });
    assert_eq!((totals.requests, totals.refused, totals.processes), (4, 3, 1));
}
