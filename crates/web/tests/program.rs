//! The program's answers are those that the client's check wants, and its log is whole however many write to it.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_web::ads::{write_ads, write_personalities};
use plimsoll_web::post_log::{self, Sent, count_line};
use plimsoll_web::program::{Answered, Asked, Program};
use plimsoll_web::{Answer, KINDS, Kind, Mix, Request, Verify, Web};
use serde_json::json;
use std::path::Path;
use support::{SEED, parameters, request_of};

const NOW_S: i64 = 1_700_000_000;
const USERS: u32 = 2_000;

struct Site {
    place: tempfile::TempDir,
    web: Web,
}

impl Site {
    fn new() -> Self {
        let (place, web) = (tempfile::tempdir().unwrap(), Web::new(parameters(json!({"directories": 3}))).unwrap());
        std::fs::create_dir(place.path().join("root")).unwrap();
        web.files().lay_out(&place.path().join("root"), &mut |_| {}).unwrap();
        reset(place.path(), SEED);
        Self { place, web }
    }

    fn program(&self) -> Program {
        Program::new(&self.place.path().join("root"), self.place.path())
    }

    fn log_faults(&self, answered: &[u64]) -> Vec<String> {
        let log = std::fs::read(self.place.path().join("post.log")).unwrap();
        let request = |index| self.web.mix().request(index);
        let taken = 0..1_000_000;
        let sent = Sent { taken: std::slice::from_ref(&taken), acknowledged: answered, request: &request };
        post_log::check(&log, &sent).into_iter().filter(|check| !check.ok).map(|check| check.name).collect()
    }
}

fn reset(folder: &Path, seed: u64) {
    std::fs::write(folder.join("User.Personality"), write_personalities(seed, USERS)).unwrap();
    std::fs::write(folder.join("Custom.Ads"), write_ads(seed, NOW_S)).unwrap();
    std::fs::write(folder.join("post.log"), count_line(0)).unwrap();
}

fn ask(program: &Program, request: &Request) -> Answered {
    let (query, body) = (request.place.path(), post_log::body(request));
    let cookie = match request.kind {
        Kind::CustomAd => format!("my_cookie=user_id={}&last_ad={}", request.user_number(), request.last_ad),
        Kind::Post => format!("my_cookie={}", post_log::number(request.index)),
        _ => String::new(),
    };
    let is_post = request.kind == Kind::Post;
    let query = if is_post { "" } else { query.as_str() };
    let body = is_post.then_some(body.as_str());
    program.answer(&Asked { script: "/web/x", query, cookie: &cookie, body, ..Asked::default() }, NOW_S, 7)
}

fn judged(site: &Site, mix: &Mix, request: &Request, answered: &Answered) -> Result<(), plimsoll_web::Fault> {
    let mut answer = Answer::new(mix, request, Verify::Whole);
    answer.head(answered.status, answered.cookie.iter().map(String::as_bytes));
    answer.body(site.web.files().contents(), &answered.body);
    answer.end()
}

#[test]
fn every_kind_is_answered_as_the_check_wants_it() {
    let site = Site::new();
    let (program, mix) = (site.program(), site.web.mix());
    let mut posts = Vec::new();
    for (kind, _) in KINDS.into_iter().skip(1) {
        let mut index = 0;
        for _ in 0..100 {
            let request = request_of(mix, kind, index);
            index = request.index + 1;
            assert_eq!(judged(&site, mix, &request, &ask(&program, &request)), Ok(()), "{request:?}");
            posts.extend((kind == Kind::Post).then_some(request.index));
        }
    }
    assert_eq!(site.log_faults(&posts), [""; 0]);
}

#[test]
fn data_files_that_were_made_anew_are_read_anew() {
    let site = Site::new();
    let (program, mix) = (site.program(), site.web.mix());
    let other = Web::new(parameters(json!({"directories": 3, "seed": 77}))).unwrap();
    let request = request_of(mix, Kind::CustomAd, 0);
    assert_eq!(judged(&site, mix, &request, &ask(&program, &request)), Ok(()));
    // A file system may tell times no finer than its clock's ticks.
    std::thread::sleep(std::time::Duration::from_millis(20));
    reset(site.place.path(), 77);
    let request = request_of(other.mix(), Kind::CustomAd, 0);
    assert_eq!(judged(&site, other.mix(), &request, &ask(&program, &request)), Ok(()));
}

#[test]
fn posts_of_several_at_once_are_each_in_the_log_once() {
    let site = Site::new();
    let posts: Vec<u64> =
        (0..20_000).filter(|&index| site.web.mix().request(index).kind == Kind::Post).take(400).collect();
    std::thread::scope(|scope| {
        for part in posts.chunks(100) {
            let site = &site;
            // As another process would be: a program of its own.
            scope.spawn(move || {
                let program = site.program();
                for &index in part {
                    assert_eq!(ask(&program, &site.web.mix().request(index)).status, 200);
                }
            });
        }
    });
    assert_eq!(site.log_faults(&posts), [""; 0]);
}

#[test]
fn what_cannot_be_answered_has_its_status() {
    let site = Site::new();
    let program = site.program();
    let status = |asked: Asked<'_>| program.answer(&asked, NOW_S, 7).status;
    let query = "/file_set/dir00000/class1_0";
    assert_eq!(status(Asked { query: "/etc/passwd", ..Asked::default() }), 404);
    assert_eq!(status(Asked { query: "/file_set/dir00009/class0_0", ..Asked::default() }), 404);
    assert_eq!(
        status(Asked { body: Some("dir=0&class=9&num=0&client=1"), cookie: "my_cookie=1", ..Asked::default() }),
        400
    );
    assert_eq!(status(Asked { body: Some("dir=0&class=1&num=0&client=1"), ..Asked::default() }), 400);
    let unknown =
        program.answer(&Asked { query, cookie: "my_cookie=user_id=99&last_ad=1", ..Asked::default() }, NOW_S, 7);
    assert_eq!(unknown.cookie.as_deref(), Some("found_cookie=Ad_id=-1&Ad_weight=0&Expired=1"));
    let post = Asked { body: Some("dir=0&class=1&num=0&client=1"), cookie: "my_cookie=5", ..Asked::default() };
    std::fs::write(site.place.path().join("post.log"), "no count").unwrap();
    assert_eq!(status(post), 500);
    std::fs::write(site.place.path().join("Custom.Ads"), "x").unwrap();
    assert_eq!(status(Asked { query, cookie: "my_cookie=user_id=10001&last_ad=1", ..Asked::default() }), 500);
}
