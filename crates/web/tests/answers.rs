//! Answers that are right pass in whatever pieces they come; each planted fault is found, and called what it is.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_web::{Answer, Contents, FAULTS, Fault, KINDS, Kind, LINE_BYTES, Mix, Place, Request, Verify};
use serde_json::json;
use support::{mix, request_of, right};

fn judged(
    mix: &Mix,
    contents: &Contents,
    request: &Request,
    status: u16,
    cookie: Option<&str>,
    pieces: &[&[u8]],
) -> Result<(), Fault> {
    judged_by(Verify::Whole, mix, contents, request, status, cookie, pieces)
}

fn judged_by(
    verify: Verify,
    mix: &Mix,
    contents: &Contents,
    request: &Request,
    status: u16,
    cookie: Option<&str>,
    pieces: &[&[u8]],
) -> Result<(), Fault> {
    let mut answer = Answer::new(mix, request, verify);
    answer.head(status, cookie.iter().map(|cookie| cookie.as_bytes()));
    pieces.iter().for_each(|piece| answer.body(contents, piece));
    answer.end()
}

/// A request of a kind for a file of class 1, which has advertisements.
fn with_ads(mix: &Mix, kind: Kind) -> Request {
    (0..).map(|index| request_of(mix, kind, index)).find(|request| request.place.class == 1).unwrap()
}

#[test]
fn right_answers_pass_in_any_pieces() {
    let (mix, contents) = (mix(json!({})), Contents::new(256));
    for (kind, _) in KINDS {
        for index in (0..400).step_by(20) {
            let request = request_of(&mix, kind, index);
            let (cookie, body) = right(&mix, &contents, &request);
            for size in [1, 7, 64, 1460, body.len()] {
                if body.len() / size > 100_000 {
                    continue;
                }
                let pieces: Vec<&[u8]> = body.chunks(size).collect();
                for verify in [Verify::Whole, Verify::Marks] {
                    let judged = judged_by(verify, &mix, &contents, &request, 200, cookie.as_deref(), &pieces);
                    assert_eq!(judged, Ok(()), "{request:?} in pieces of {size}");
                }
            }
        }
    }
}

#[test]
fn a_body_that_is_cut_or_goes_on_is_found() {
    let (mix, contents) = (mix(json!({})), Contents::new(1024));
    let request = request_of(&mix, Kind::Static, 0);
    let (_, body) = right(&mix, &contents, &request);
    let size = body.len();
    for cut in [0, 1, LINE_BYTES, size - 1] {
        let expected = Fault::Length { expected: size, found: cut };
        assert_eq!(judged(&mix, &contents, &request, 200, None, &[&body[..cut]]), Err(expected));
    }
    assert_eq!(judged(&mix, &contents, &request, 200, None, &[&body, b"\n"]), Err(Fault::TooLong));
    let request = request_of(&mix, Kind::Dynamic, 0);
    let (_, page) = right(&mix, &contents, &request);
    for (end, expected) in
        [(page.len() - 1, "it has no end"), (page.len() - 22, "it ends with the file"), (100, "it has no file")]
    {
        assert_eq!(judged(&mix, &contents, &request, 200, None, &[&page[..end]]), Err(Fault::Page(expected)));
    }
    assert_eq!(judged(&mix, &contents, &request, 200, None, &[&page, b"x"]), Err(Fault::TooLong));
    assert!(matches!(
        judged(&mix, &contents, &request, 200, None, &[&page[..page.len() - 40]]),
        Err(Fault::Length { .. })
    ));
}

#[test]
fn the_file_of_another_place_is_found() {
    let (mix, contents) = (mix(json!({})), Contents::new(1024));
    let request = request_of(&mix, Kind::Static, 0);
    let other = contents.file(Place { directory: (request.place.directory + 1) % 12, ..request.place });
    let found = judged(&mix, &contents, &request, 200, None, &[&other]);
    assert_eq!(found, Err(Fault::WrongFile(request.place.path())));
    let request = request_of(&mix, Kind::Dynamic, 0);
    let page = support::page("/file_set/dir00011/class3_8", &contents.file(request.place));
    let found = judged(&mix, &contents, &request, 200, None, &[&page]);
    assert_eq!(found, Err(Fault::Page("it is the answer to something else")));
}

#[test]
fn a_byte_that_differs_is_found_where_it_is() {
    let (mix, contents) = (mix(json!({})), Contents::new(1024));
    let request = with_ads(&mix, Kind::Static);
    let (_, body) = right(&mix, &contents, &request);
    for at in [LINE_BYTES, 500, body.len() - 1] {
        let mut wrong = body.clone();
        wrong[at] ^= 1;
        let found = judged(&mix, &contents, &request, 200, None, &[&wrong[..at / 2], &wrong[at / 2..]]);
        assert_eq!(found, Err(Fault::Content(at)));
        let marks = judged_by(Verify::Marks, &mix, &contents, &request, 200, None, &[&wrong]);
        assert!(marks.is_ok(), "only the marks were asked for");
    }
}

#[test]
fn a_stale_cookie_or_none_is_found() {
    let (mix, contents) = (mix(json!({})), Contents::new(1024));
    for kind in [Kind::CustomAd, Kind::Post] {
        let request = request_of(&mix, kind, 0);
        let (cookie, body) = right(&mix, &contents, &request);
        let (stale, _) = right(&mix, &contents, &request_of(&mix, kind, request.index + 1));
        assert_ne!(cookie, stale);
        for found in [stale.as_deref(), None] {
            let fault = judged(&mix, &contents, &request, 200, found, &[&body]).unwrap_err();
            let (expected, found) = (cookie.clone().unwrap(), found.unwrap_or_default().to_owned());
            assert_eq!(fault, Fault::Cookie { expected, found });
        }
    }
}

#[test]
fn an_advertisement_that_was_not_replaced_or_is_another_is_found() {
    let (mix, contents) = (mix(json!({})), Contents::new(256));
    let request = with_ads(&mix, Kind::CustomAd);
    let (cookie, _) = right(&mix, &contents, &request);
    let (path, ads) = (request.place.path(), contents.ad_paths(request.place).collect::<Vec<_>>());
    let (_, picture) = mix.advertisement(&request).unwrap();
    let plain = support::page(&path, &contents.file(request.place));
    for verify in [Verify::Whole, Verify::Marks] {
        for size in [plain.len(), 5] {
            let pieces: Vec<&[u8]> = plain.chunks(size).collect();
            let found = judged_by(verify, &mix, &contents, &request, 200, cookie.as_deref(), &pieces);
            assert!(matches!(found, Err(Fault::AdNotReplaced(at)) if at == ads[0]), "{found:?} in pieces of {size}");
        }
    }
    let mut last = contents.with_ads(request.place, picture);
    let at = ads[ads.len() - 1];
    last[at..at + 27].copy_from_slice(Place { class: 3 - picture.class, ..picture }.path().as_bytes());
    let found =
        judged_by(Verify::Marks, &mix, &contents, &request, 200, cookie.as_deref(), &[&support::page(&path, &last)]);
    assert_eq!(found, Err(Fault::WrongAd(at)), "the last of {} only", ads.len());
    let request = with_ads(&mix, Kind::Dynamic);
    let replaced = support::page(&request.place.path(), &contents.with_ads(request.place, picture));
    let found = judged(&mix, &contents, &request, 200, None, &[&replaced]);
    assert_eq!(found.unwrap_err().number(), 3, "where none was to be replaced it is content");
}

#[test]
fn an_error_in_a_thousand_is_found_and_counted() {
    let (mix, contents) = (mix(json!({})), Contents::new(1024));
    let mut counts = [0u64; FAULTS.len()];
    for index in 0..5_000 {
        let request = mix.request(index);
        let (cookie, body) = right(&mix, &contents, &request);
        let (status, body) = if index % 1_000 == 17 { (500, b"oops".to_vec()) } else { (200, body) };
        if let Err(fault) = judged(&mix, &contents, &request, status, cookie.as_deref(), &[&body]) {
            counts[fault.number()] += 1;
            assert_eq!((fault.to_string().as_str(), index % 1_000), ("status 500", 17));
        }
    }
    assert_eq!((counts[0], counts.iter().sum::<u64>()), (5, 5));
}
