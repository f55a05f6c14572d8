//! What is sent for a request.

use crate::mix::{Kind, Request};
use crate::post_log;
use crate::text::Text;
use std::io::Write;

const BODY_BYTES_MAX: usize = 96;

/// Who is asked.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Host and port, as the request names them.
    pub(super) host: String,
    /// What stands before every path.
    pub(super) prefix: String,
}

/// How the connection goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// HTTP/1.0.
    pub(super) old: bool,
    /// No request follows on it.
    pub(super) last: bool,
}

/// Writes the request into `out`, which is emptied.
pub(super) fn write(out: &mut Vec<u8>, origin: &Origin, request: &Request, manner: Manner) {
    out.clear();
    let path = request.place.path_bytes();
    let (method, before, query): (&str, &str, &[u8]) = match request.kind {
        Kind::Static => ("GET ", "", &path),
        Kind::Dynamic => ("GET ", "/web/dynamic?", &path),
        Kind::Cgi => ("GET ", "/web/cgi?", &path),
        Kind::CustomAd => ("GET ", "/web/custom_ad?", &path),
        Kind::Post => ("POST ", "/web/post", b""),
    };
    let version = if manner.old { " HTTP/1.0\r\nHost: " } else { " HTTP/1.1\r\nHost: " };
    let connection = match (manner.old, manner.last) {
        (true, false) => "\r\nUser-Agent: plimsoll\r\nConnection: keep-alive\r\n",
        (false, true) => "\r\nUser-Agent: plimsoll\r\nConnection: close\r\n",
        (true, true) | (false, false) => "\r\nUser-Agent: plimsoll\r\n",
    };
    for part in [method, &origin.prefix, before].map(str::as_bytes).into_iter().chain([query]) {
        out.extend_from_slice(part);
    }
    for part in [version, &origin.host, connection] {
        out.extend_from_slice(part.as_bytes());
    }
    // Writing to memory cannot fail.
    let _ = match request.kind {
        Kind::CustomAd => {
            write!(out, "Cookie: my_cookie=user_id={}&last_ad={}\r\n\r\n", request.user_number(), request.last_ad)
        }
        Kind::Post => {
            let (mut body, number) = (Text::<BODY_BYTES_MAX>::default(), post_log::number(request.index));
            let _ = post_log::write_body(request, &mut body);
            let length = body.bytes().len();
            let written = write!(
                out,
                "Cookie: my_cookie={number}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            out.extend_from_slice(body.bytes());
            written
        }
        Kind::Static | Kind::Dynamic | Kind::Cgi => out.write_all(b"\r\n"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_set::Place;

    fn written(kind: Kind, manner: Manner) -> String {
        let origin = Origin { host: "h:81".to_owned(), prefix: "/p".to_owned() };
        let place = Place { directory: 3, class: 1, file: 2 };
        let mut out = b"before".to_vec();
        write(&mut out, &origin, &Request { index: 10_000_000_042, kind, place, user: 5, last_ad: 9 }, manner);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_kind_is_asked_for_in_its_way() {
        let next = Manner { old: false, last: false };
        assert_eq!(
            written(Kind::Static, next),
            "GET /p/file_set/dir00003/class1_2 HTTP/1.1\r\nHost: h:81\r\nUser-Agent: plimsoll\r\n\r\n"
        );
        assert!(written(Kind::Cgi, next).starts_with("GET /p/web/cgi?/file_set/dir00003/class1_2 HTTP/1.1\r\n"));
        assert!(written(Kind::CustomAd, next).ends_with("\r\nCookie: my_cookie=user_id=10005&last_ad=9\r\n\r\n"));
        let post = written(Kind::Post, next);
        let (head, body) = post.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "urlroot=/web&dir=3&class=1&num=2&client=10005");
        assert!(head.starts_with("POST /p/web/post HTTP/1.1\r\n") && head.contains("Cookie: my_cookie=42\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn a_connection_says_how_it_goes_on() {
        for (old, last, expected) in [
            (true, false, Some("Connection: keep-alive")),
            (true, true, None),
            (false, true, Some("Connection: close")),
            (false, false, None),
        ] {
            let text = written(Kind::Static, Manner { old, last });
            assert_eq!(text.lines().find(|line| line.starts_with("Connection")), expected);
            assert!(text.contains(if old { " HTTP/1.0\r\n" } else { " HTTP/1.1\r\n" }));
        }
    }
}
