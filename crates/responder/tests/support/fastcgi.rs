//! A server's side of FastCGI.

use super::cookie_and_body;
use plimsoll_web::Request;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) fn connected(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, 1, length[0], length[1], 0, 0], content].concat()
}

/// A request as a server sends it.
pub(crate) fn sent(script: &str, request: &Request, keeps: bool) -> Vec<u8> {
    let (query, (cookie, body)) = (request.place.path(), cookie_and_body(request));
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut variables = Vec::new();
    for (name, value) in [
        ("REQUEST_METHOD", method),
        ("SCRIPT_NAME", script),
        ("QUERY_STRING", if body.is_some() { "" } else { &query }),
        ("HTTP_COOKIE", &cookie),
        ("SERVER_SOFTWARE", "test"),
    ] {
        variables.extend_from_slice(&[name.len() as u8, value.len() as u8]);
        variables.extend_from_slice([name, value].concat().as_bytes());
    }
    let body = body.unwrap_or_default();
    [
        record(1, &[0, 1, keeps.into(), 0, 0, 0, 0, 0]),
        record(4, &variables),
        record(4, b""),
        if body.is_empty() { Vec::new() } else { record(5, body.as_bytes()) },
        record(5, b""),
    ]
    .concat()
}

/// What a program has written, and what it had to say to the log of errors.
pub(crate) fn heard(stream: &mut impl Read) -> (Vec<u8>, Vec<u8>) {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[4], header[5]]))];
        stream.read_exact(&mut content).unwrap();
        assert_eq!((header[0], u16::from_be_bytes([header[2], header[3]]), header[6]), (1, 1, 0));
        match header[1] {
            6 => out.extend_from_slice(&content),
            7 => errors.extend_from_slice(&content),
            3 => {
                assert_eq!(content[4], 0, "the request is complete");
                return (out, errors);
            }
            other => panic!("a record of type {other}"),
        }
    }
}

/// Status, cookie and body.
pub(crate) fn parsed(answer: &[u8]) -> (u16, Option<String>, &[u8]) {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = str::from_utf8(&answer[..end]).unwrap();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let (status, body) = (field("Status: ").unwrap(), &answer[end + 4..]);
    assert_eq!(field("Content-Length: ").unwrap(), body.len().to_string());
    (status[..3].parse().unwrap(), field("Set-Cookie: "), body)
}
