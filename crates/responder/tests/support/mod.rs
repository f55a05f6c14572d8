//! A file set, the program's files, and requests as a server hands them on.

#![allow(clippy::unwrap_used, dead_code, reason = "each test uses some of it")]

pub(crate) mod fastcgi;

use plimsoll_responder::reset;
use plimsoll_web::post_log::{self, Sent};
use plimsoll_web::{Answer, Fault, Kind, Mix, Request, Verify, Web};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) const SEED: u64 = 20;
pub(crate) const NOW_S: i64 = 1_700_000_000;
pub(crate) const DIRECTORIES: u32 = 3;

pub(crate) fn web(more: Value) -> Web {
    let mut value = json!({"name": "web", "seed": SEED, "directories": DIRECTORIES});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Web::new(serde_json::from_value(value).unwrap()).unwrap()
}

/// The first request of a kind from `index` on.
pub(crate) fn request_of(mix: &Mix, kind: Kind, index: u64) -> Request {
    (index..).map(|index| mix.request(index)).find(|request| request.kind == kind).unwrap()
}

pub(crate) struct Site {
    pub(crate) place: tempfile::TempDir,
    pub(crate) web: Web,
}

impl Site {
    pub(crate) fn new() -> Self {
        let (place, web) = (tempfile::tempdir().unwrap(), web(json!({})));
        std::fs::create_dir(place.path().join("root")).unwrap();
        web.files().lay_out(&place.path().join("root"), &mut |_| {}).unwrap();
        reset(place.path(), SEED, web.parameters().users, NOW_S).unwrap();
        Self { place, web }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    /// What the check of the log finds, where these POSTs were answered.
    pub(crate) fn log_faults(&self, answered: &[u64]) -> Vec<String> {
        let log = std::fs::read(self.place.path().join("post.log")).unwrap();
        let request = |index| self.web.mix().request(index);
        let taken = 0..1_000_000;
        let sent = Sent { taken: std::slice::from_ref(&taken), acknowledged: answered, request: &request };
        post_log::check(&log, &sent).into_iter().filter(|check| !check.ok).map(|check| check.name).collect()
    }

    pub(crate) fn judged(
        &self,
        mix: &Mix,
        request: &Request,
        status: u16,
        cookie: Option<&str>,
        body: &[u8],
    ) -> Result<(), Fault> {
        let mut answer = Answer::new(mix, request, Verify::Whole);
        answer.head(status, cookie.iter().map(|cookie| cookie.as_bytes()));
        answer.body(self.web.files().contents(), body);
        answer.end()
    }
}

/// The cookie of a request, and its body if it is a POST.
pub(crate) fn cookie_and_body(request: &Request) -> (String, Option<String>) {
    let cookie = match request.kind {
        Kind::CustomAd => format!("my_cookie=user_id={}&last_ad={}", request.user_number(), request.last_ad),
        Kind::Post => format!("my_cookie={}", post_log::number(request.index)),
        _ => String::new(),
    };
    (cookie, (request.kind == Kind::Post).then(|| post_log::body(request)))
}
