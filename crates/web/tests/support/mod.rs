//! What the tests of this crate share: mixes, and answers as a server that is right gives them.

#![allow(clippy::unwrap_used, dead_code, reason = "each test uses some of it")]

pub(crate) mod load;
pub(crate) mod server;

use plimsoll_web::ads::Chosen;
use plimsoll_web::{Contents, Kind, Mix, PAGE_TAIL, PRE, Parameters, Request, TITLE, post_log};
use serde_json::{Value, json};

pub(crate) const SEED: u64 = 20;
pub(crate) const DIRECTORIES: u32 = 12;

pub(crate) fn parameters(more: Value) -> Parameters {
    let mut value = json!({"name": "web", "seed": SEED, "directories": DIRECTORIES});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

pub(crate) fn mix(more: Value) -> Mix {
    Mix::new(&parameters(more), DIRECTORIES).unwrap()
}

/// The first request of a kind from `index` on.
pub(crate) fn request_of(mix: &Mix, kind: Kind, index: u64) -> Request {
    (index..).map(|index| mix.request(index)).find(|request| request.kind == kind).unwrap()
}

/// The cookie and the body of a right answer.
pub(crate) fn right(mix: &Mix, contents: &Contents, request: &Request) -> (Option<String>, Vec<u8>) {
    let file = contents.file(request.place);
    let path = request.place.path();
    match request.kind {
        Kind::Static => (None, file),
        Kind::Dynamic | Kind::Cgi => (None, page(&path, &file)),
        Kind::CustomAd => {
            let found = mix.advertisement(request);
            let file = found.map_or(file, |(_, picture)| contents.with_ads(request.place, picture));
            (Some(Chosen::cookie(found.map(|(chosen, _)| chosen))), page(&path, &file))
        }
        Kind::Post => (Some(format!("my_cookie={}", post_log::number(request.index))), page("", &file)),
    }
}

pub(crate) fn page(query: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "<html>\n<head>{TITLE}</head>\n<body>\n<p>SERVER_SOFTWARE = test\n<p>REMOTE_ADDR = 127.0.0.1\n\
         <p>SCRIPT_NAME = /web/dynamic\n<p>QUERY_STRING = {query}\n{PRE}"
    );
    [head.as_bytes(), file, PAGE_TAIL.as_bytes()].concat()
}
