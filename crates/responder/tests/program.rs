//! The program's answers are those that the client's check wants, and its log is whole however many write to it.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_responder::{Answered, Asked, Program, reset};
use plimsoll_web::post_log::{COUNT_BYTES, RECORD_BYTES};
use plimsoll_web::{Fault, KINDS, Kind, Mix, Request};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{NOW_S, SEED, Site, cookie_and_body, request_of, web};

const USERS: u32 = 2_000;

fn program(site: &Site) -> Program {
    Program::new(&site.root(), site.place.path())
}

fn ask(program: &Program, request: &Request) -> Answered {
    let (query, (cookie, body)) = (request.place.path(), cookie_and_body(request));
    let query = if body.is_some() { "" } else { query.as_str() };
    program.answer(
        &Asked { script: "/web/x", query, cookie: &cookie, body: body.as_deref(), ..Asked::default() },
        NOW_S,
        7,
    )
}

fn judged(site: &Site, mix: &Mix, request: &Request, answered: &Answered) -> Result<(), Fault> {
    site.judged(mix, request, answered.status, answered.cookie.as_deref(), &answered.body)
}

#[test]
fn every_kind_is_answered_as_the_check_wants_it() {
    let site = Site::new();
    let (program, mix) = (program(&site), site.web.mix());
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
    let (program, mix) = (program(&site), site.web.mix());
    let other = web(json!({"seed": 77}));
    let request = request_of(mix, Kind::CustomAd, 0);
    assert_eq!(judged(&site, mix, &request, &ask(&program, &request)), Ok(()));
    // At once: a file system tells times no finer than its clock's ticks.
    reset(site.place.path(), 77, USERS, NOW_S).unwrap();
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
                let program = program(site);
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
    let program = program(&site);
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

#[test]
fn commands_make_the_files_anew_and_give_the_log() {
    let site = Site::new();
    let program = program(&site);
    let command = |query| {
        let answered = program.answer(&Asked { script: "/a/web/command", query, ..Asked::default() }, NOW_S, 7);
        (answered.status, String::from_utf8(answered.body).unwrap())
    };
    let post = request_of(site.web.mix(), Kind::Post, 0);
    assert_eq!(ask(&program, &post).status, 200);
    let (status, log) = command("Fetch");
    assert_eq!((status, log.as_bytes()), (200, &std::fs::read(site.place.path().join("post.log")).unwrap()[..]));
    assert!(log.starts_with("         1\n") && log.len() == 150, "{log}");
    assert_eq!(command("Reset&seed=77&users=500"), (200, "reset\n".to_owned()));
    assert_eq!(command("Fetch"), (200, "         0\n".to_owned()));
    let other = web(json!({"seed": 77, "users": 500}));
    let request = request_of(other.mix(), Kind::CustomAd, 0);
    assert_eq!(judged(&site, other.mix(), &request, &ask(&program, &request)), Ok(()));
    for wrong in [
        "",
        "Reset",
        "Reset&seed=1",
        "Reset&seed=x&users=1",
        "Reset&seed=1&users=0",
        "Reset&seed=1&user=1",
        "Fetch&x=1",
    ] {
        let (status, why) = command(wrong);
        assert!(status == 400 && !why.is_empty(), "{wrong}: {status} {why}");
    }
    std::fs::remove_dir_all(site.root()).unwrap();
    std::fs::remove_file(site.place.path().join("post.log")).unwrap();
    let (status, why) = command("Fetch");
    assert!(status == 500 && why.contains("post.log: No such file"), "{why}");
}

#[test]
fn a_post_without_room_in_the_log_is_refused_and_leaves_nothing() {
    let site = Site::new();
    let Some(_mounted) = Mounted::small(site.place.path()) else { return };
    let (program, mix) = (Program::new(&site.root(), site.place.path()), site.web.mix());
    site.web.files().lay_out(&site.root(), &mut |_| {}).unwrap();
    reset(site.place.path(), SEED, USERS, NOW_S).unwrap();
    let filler = site.place.path().join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let mut posts = (0..).map(|index| mix.request(index)).filter(|request| request.kind == Kind::Post);
    let (mut logged, mut refused) = (Vec::new(), None);
    for request in posts.by_ref().take(100) {
        let answered = ask(&program, &request);
        if answered.status != 200 {
            refused = Some((request, answered));
            break;
        }
        logged.push(request.index);
    }
    let (request, answered) = refused.unwrap();
    let why = String::from_utf8(answered.body).unwrap();
    assert!(answered.status == 500 && why.contains("post.log: No space left on device"), "{why}");
    // As many as a page has room for beside the count; the one that goes beyond it is not there in part.
    assert_eq!((logged.len(), site.log_faults(&logged)), ((4096 - COUNT_BYTES) / RECORD_BYTES, vec![]));
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(ask(&program, &request).status, 200);
    logged.push(request.index);
    assert_eq!(site.log_faults(&logged), [""; 0]);
}

/// A small file system over a folder, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, with the reason on standard error, where nothing can be mounted.
    fn small(folder: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m,huge=never", "tmpfs"]).arg(folder);
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("skipped: a file system of a test's own cannot be mounted here (that takes root)");
            return None;
        }
        std::fs::create_dir(folder.join("root")).unwrap();
        Some(Self(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
