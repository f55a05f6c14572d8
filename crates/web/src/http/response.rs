//! One response: its head, and its body by length, in chunks, or up to the end of the connection.

use super::chunks::Chunks;

const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 65_536;

/// Why this is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    /// The head.
    #[error("the head of the response cannot be read: {0}")]
    Head(String),
    /// The chunks.
    #[error("the chunks of the response cannot be read")]
    Chunks,
    /// The connection ended within it.
    #[error("the connection ended within the response, after {0} bytes of its body")]
    Cut(u64),
}

/// Who hears of a response.
pub(crate) trait Sink {
    /// The status and the values of the cookies that are set, without what follows them.
    fn head<'a>(&mut self, status: u16, cookies: impl Iterator<Item = &'a [u8]>);

    /// The next bytes of the body.
    fn body(&mut self, bytes: &[u8]);
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// All bytes were taken, and there are more to come.
    More,
    /// The response is over; of the bytes so many were its.
    Over(usize),
}

#[derive(Clone, Copy, Debug)]
enum At {
    Head,
    Length(u64),
    Chunks(Chunks),
    /// Up to the end of the connection.
    Rest,
    Over,
}

/// A response that is being read.
#[derive(Debug)]
pub(crate) struct Response {
    at: At,
    /// The part of a head that has arrived, if it is not whole.
    head: Vec<u8>,
    body_bytes: u64,
    keeps: bool,
}

impl Default for Response {
    fn default() -> Self {
        Self { at: At::Head, head: Vec::new(), body_bytes: 0, keeps: false }
    }
}

/// What a head says.
struct Head {
    length: usize,
    keeps: bool,
    at: At,
    is_interim: bool,
}

impl Response {
    /// Begins with the next one.
    pub(crate) fn begin(&mut self) {
        self.head.clear();
        (self.at, self.body_bytes, self.keeps) = (At::Head, 0, false);
    }

    /// Whether any of it has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.at, At::Head) || !self.head.is_empty()
    }

    /// Bytes of the body so far.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Whether the server leaves the connection open after it.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Takes bytes that have arrived.
    ///
    /// # Errors
    /// When they are no response.
    pub(crate) fn take(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<Taken, HttpError> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            at += match &mut self.at {
                At::Head if rest.is_empty() => return Ok(Taken::More),
                At::Head => self.take_head(rest, sink)?,
                At::Length(left) => {
                    let length = (*left).min(rest.len() as u64);
                    *left -= length;
                    if *left == 0 {
                        self.at = At::Over;
                    }
                    self.hand_on(&rest[..length as usize], sink)
                }
                At::Chunks(chunks) => {
                    let mut data = 0;
                    let hand_on = |bytes: &[u8]| {
                        data += bytes.len() as u64;
                        sink.body(bytes);
                    };
                    let taken = chunks.take(rest, hand_on).ok_or(HttpError::Chunks)?;
                    if chunks.is_over() {
                        self.at = At::Over;
                    }
                    self.body_bytes += data;
                    taken
                }
                At::Rest => self.hand_on(rest, sink),
                At::Over => return Ok(Taken::Over(at)),
            };
            if at == bytes.len() && !matches!(self.at, At::Over) {
                return Ok(Taken::More);
            }
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// When there was to be more of it.
    pub(crate) fn cut(&mut self) -> Result<(), HttpError> {
        match self.at {
            At::Rest | At::Over => Ok(()),
            At::Head | At::Length(_) | At::Chunks(_) => Err(HttpError::Cut(self.body_bytes)),
        }
    }

    fn hand_on(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        self.body_bytes += bytes.len() as u64;
        if !bytes.is_empty() {
            sink.body(bytes);
        }
        bytes.len()
    }

    /// Reads the head from what is kept of it and `bytes`, and gives how many of these were its.
    fn take_head(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, HttpError> {
        let kept = self.head.len();
        let whole = if kept == 0 {
            read_head(bytes, sink)?
        } else {
            self.head.extend_from_slice(bytes);
            read_head(&self.head, sink)?
        };
        let Some(Head { length, keeps, at, is_interim }) = whole else {
            if kept == 0 {
                self.head.extend_from_slice(bytes);
            }
            let is_long = self.head.len() > HEAD_BYTES_MAX;
            return if is_long { Err(HttpError::Head("it is too long".to_owned())) } else { Ok(bytes.len()) };
        };
        self.head.clear();
        if !is_interim {
            (self.at, self.keeps) = (at, keeps);
        }
        Ok(length - kept)
    }
}

/// `None` if it is not whole.
fn read_head(bytes: &[u8], sink: &mut impl Sink) -> Result<Option<Head>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(HttpError::Head(error.to_string())),
    };
    let (status, is_new) = (response.code.unwrap_or(0), response.version == Some(1));
    // 101 is not interim, and was not asked for.
    if (100..200).contains(&status) && status != 101 {
        return Ok(Some(Head { length, keeps: true, at: At::Head, is_interim: true }));
    }
    let (mut length_said, mut is_chunked, mut closes, mut keeps) = (None, false, false, false);
    for httparse::Header { name, value } in response.headers.iter() {
        if name.eq_ignore_ascii_case("content-length") {
            length_said = length_said.or(Some(*value));
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            is_chunked |= has_word(value, "chunked");
        } else if name.eq_ignore_ascii_case("connection") {
            closes |= has_word(value, "close");
            keeps |= has_word(value, "keep-alive");
        }
    }
    let at = if matches!(status, 204 | 304) {
        At::Over
    } else if is_chunked {
        At::Chunks(Chunks::new())
    } else {
        match length_said {
            None => At::Rest,
            Some(value) => match str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok()) {
                None => return Err(HttpError::Head("its Content-Length is no number".to_owned())),
                Some(0) => At::Over,
                Some(bytes) => At::Length(bytes),
            },
        }
    };
    let wants = if is_new { !closes } else { keeps };
    let cookies = response.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("set-cookie"));
    sink.head(status, cookies.map(|header| value_of_cookie(header.value)));
    Ok(Some(Head { length, keeps: wants && !matches!(at, At::Rest), at, is_interim: false }))
}

/// Whether a list of words holds one, in any case.
fn has_word(value: &[u8], word: &str) -> bool {
    value.split(|&byte| byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

fn value_of_cookie(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Heard {
        status: u16,
        cookies: Vec<String>,
        body: Vec<u8>,
    }

    impl Sink for Heard {
        fn head<'a>(&mut self, status: u16, cookies: impl Iterator<Item = &'a [u8]>) {
            self.status = status;
            self.cookies = cookies.map(|cookie| String::from_utf8_lossy(cookie).into_owned()).collect();
        }

        fn body(&mut self, bytes: &[u8]) {
            self.body.extend_from_slice(bytes);
        }
    }

    /// Status, body and whether the connection is kept, and the bytes after it; `None` if it is not over.
    fn read(text: &[u8], size: usize) -> Result<Option<(Heard, bool, usize)>, HttpError> {
        let (mut response, mut heard, mut taken) = (Response::default(), Heard::default(), 0);
        for piece in text.chunks(size) {
            match response.take(piece, &mut heard)? {
                Taken::More => taken += piece.len(),
                Taken::Over(bytes) => {
                    assert_eq!(response.body_bytes(), heard.body.len() as u64);
                    return Ok(Some((heard, response.keeps(), text.len() - taken - bytes)));
                }
            }
        }
        Ok(None)
    }

    #[test]
    fn bodies_end_where_the_head_says() {
        let cases: [(&[u8], bool); 7] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\nhello", false),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: x, Keep-Alive\r\n\r\nhello", true),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", true),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
            (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", true),
        ];
        for (text, keeps) in cases {
            for size in 1..=text.len() {
                let (heard, kept, after) = read(text, size).unwrap().unwrap();
                assert_eq!((heard.status, heard.body.as_slice(), kept, after), (200, &b"hello"[..], keeps, 0));
            }
            let more = [text, b"HTTP/1.1 200 OK\r\n"].concat();
            assert_eq!(read(&more, more.len()).unwrap().unwrap().2, 17, "what follows is not its");
        }
    }

    #[test]
    fn without_a_length_a_body_ends_with_the_connection() {
        let (mut response, mut heard) = (Response::default(), Heard::default());
        let taken = response.take(b"HTTP/1.1 200 OK\r\n\r\nhello", &mut heard);
        assert_eq!((taken, response.cut(), response.keeps()), (Ok(Taken::More), Ok(()), false));
        assert_eq!(heard.body, b"hello");
    }

    #[test]
    fn what_is_cut_is_said() {
        for (text, bytes) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"[..], 5),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", 5),
            (b"HTTP/1.1 200 O", 0),
        ] {
            let (mut response, mut heard) = (Response::default(), Heard::default());
            assert_eq!(response.take(text, &mut heard), Ok(Taken::More));
            assert_eq!((response.cut(), response.has_begun()), (Err(HttpError::Cut(bytes)), true));
        }
        assert!(!Response::default().has_begun());
    }

    #[test]
    fn bodies_that_are_none_and_cookies() {
        for text in [
            &b"HTTP/1.1 204 No\r\n\r\n"[..],
            b"HTTP/1.1 304 Not\r\n\r\n",
            b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        ] {
            let (heard, keeps, after) = read(text, 3).unwrap().unwrap();
            assert!(heard.body.is_empty() && keeps && after == 0 && heard.status > 200);
        }
        let text = b"HTTP/1.1 204 x\r\nSet-Cookie: a=b&c=d; Path=/\r\nset-cookie: e=f\r\n\r\n";
        assert_eq!(read(text, 1).unwrap().unwrap().0.cookies, ["a=b&c=d", "e=f"]);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for text in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 2x0 OK\r\n\r\n",
        ] {
            assert!(read(text, text.len()).is_err());
        }
        let long = [&b"HTTP/1.1 200 OK\r\nA: "[..], &[b'a'; HEAD_BYTES_MAX]].concat();
        assert_eq!(read(&long, 1000), Err(HttpError::Head("it is too long".to_owned())));
    }
}
