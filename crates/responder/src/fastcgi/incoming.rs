//! What a server sends on a connection: records to requests.
//!
//! The fact that constrains it: nginx and Apache send one request at a time on a connection, and this answers so. Whoever sends a second
//! one before the first is answered is told that, as the protocol has it.

use super::records::{HEADER_BYTES, Header, MANAGEMENT, Status, end, kind, write};
use super::variables::{are_pairs, pairs};

/// The one role that is played.
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
/// Variables of a request, and its body, are shorter.
const VARIABLES_BYTES_MAX: usize = 65_536;
const BODY_BYTES_MAX: usize = 65_536;
/// What GET_VALUES asks for, with the answer.
const MULTIPLEXES: (&[u8], &[u8]) = (b"FCGI_MPXS_CONNS", b"0");

/// Why a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It is another protocol.
    #[error("a record of another version than 1")]
    Version,
    /// A record that must not be so long or so short.
    #[error("a record that begins a request has not its length")]
    Begin,
    /// They go on beyond their end.
    #[error("the variables of a request cannot be read")]
    Variables,
    /// More than this takes.
    #[error("the variables or the body of a request are longer than 65536 bytes")]
    TooLong,
}

/// A request that has arrived as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its number on the connection.
    pub id: u16,
    /// Whether the server closes the connection; else this does, after the answer.
    pub keeps: bool,
    /// What was posted.
    pub body: Vec<u8>,
    variables: Vec<u8>,
    has_variables: bool,
}

impl Request {
    /// The value of a variable; empty without it.
    pub fn variable(&self, name: &str) -> &[u8] {
        self.variables().find(|(of, _)| *of == name.as_bytes()).map_or(b"", |(_, value)| value)
    }

    /// Names and values of all.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        pairs(&self.variables)
    }
}

/// What a connection has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// More has to arrive.
    More,
    /// A request is to be answered.
    Request(Request),
    /// The connection is to be closed once what was written is sent.
    Over,
}

/// What has arrived on a connection.
#[derive(Debug, Default)]
pub struct Incoming {
    arrived: Vec<u8>,
    open: Option<Request>,
}

impl Incoming {
    /// Takes bytes that have arrived.
    pub fn take(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    /// Goes on with what has arrived; what is to be said of it meanwhile is appended to `out`.
    ///
    /// # Errors
    /// When it is no FastCGI, or too much.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<Next, Wrong> {
        let mut arrived = std::mem::take(&mut self.arrived);
        let (mut rest, mut next) = (arrived.as_slice(), Next::More);
        while next == Next::More {
            let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() else { break };
            let header = Header::read(*header).ok_or(Wrong::Version)?;
            let Some((content, after)) = after.split_at_checked(header.content_bytes) else { break };
            let Some((_, after)) = after.split_at_checked(header.padding_bytes) else { break };
            next = self.record(header, content, out)?;
            rest = after;
        }
        let taken = arrived.len() - rest.len();
        arrived.drain(..taken);
        self.arrived = arrived;
        Ok(next)
    }

    fn record(&mut self, header: Header, content: &[u8], out: &mut Vec<u8>) -> Result<Next, Wrong> {
        if header.request == MANAGEMENT {
            manage(header.kind, content, out);
            return Ok(Next::More);
        }
        if header.kind == kind::BEGIN_REQUEST {
            return self.begin(header.request, content, out);
        }
        // What is said of a request that is over has crossed its end on the way.
        let Some(open) = self.open.as_mut().filter(|open| open.id == header.request) else { return Ok(Next::More) };
        match header.kind {
            kind::ABORT_REQUEST => {
                let keeps = open.keeps;
                self.open = None;
                end(out, header.request, Status::Complete);
                return Ok(if keeps { Next::More } else { Next::Over });
            }
            kind::PARAMS if content.is_empty() => {
                open.has_variables = true;
                if !are_pairs(&open.variables) {
                    return Err(Wrong::Variables);
                }
            }
            kind::PARAMS => extend(&mut open.variables, content, VARIABLES_BYTES_MAX)?,
            kind::STDIN if content.is_empty() && open.has_variables => {
                return Ok(self.open.take().map_or(Next::More, Next::Request));
            }
            kind::STDIN => extend(&mut open.body, content, BODY_BYTES_MAX)?,
            _ => {}
        }
        Ok(Next::More)
    }

    fn begin(&mut self, id: u16, content: &[u8], out: &mut Vec<u8>) -> Result<Next, Wrong> {
        let &[role_1, role_0, flags, ..] = content else { return Err(Wrong::Begin) };
        let keeps = flags & KEEP_CONNECTION != 0;
        if self.open.is_some() {
            end(out, id, Status::CannotMultiplex);
            return Ok(Next::More);
        }
        if u16::from_be_bytes([role_1, role_0]) != RESPONDER {
            end(out, id, Status::UnknownRole);
            return Ok(if keeps { Next::More } else { Next::Over });
        }
        self.open = Some(Request { id, keeps, ..Request::default() });
        Ok(Next::More)
    }
}

/// Answers what is no request's.
fn manage(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    if kind != kind::GET_VALUES {
        return write(out, kind::UNKNOWN_TYPE, MANAGEMENT, &[kind, 0, 0, 0, 0, 0, 0, 0]);
    }
    let (name, value) = MULTIPLEXES;
    let told = if pairs(content).any(|(of, _)| of == name) {
        [&[name.len() as u8, value.len() as u8], name, value].concat()
    } else {
        Vec::new()
    };
    write(out, kind::GET_VALUES_RESULT, MANAGEMENT, &told);
}

fn extend(to: &mut Vec<u8>, content: &[u8], bytes_max: usize) -> Result<(), Wrong> {
    if to.len() + content.len() > bytes_max {
        return Err(Wrong::TooLong);
    }
    to.extend_from_slice(content);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        write(&mut record, kind, id, content);
        record
    }

    fn begin(id: u16, role: u8, flags: u8) -> Vec<u8> {
        record(kind::BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0])
    }

    fn whole(id: u16, flags: u8, body: &[u8]) -> Vec<u8> {
        let variables = b"\x0e\x04REQUEST_METHODPOST";
        [
            begin(id, 1, flags),
            record(kind::PARAMS, id, variables),
            record(kind::PARAMS, id, b""),
            record(kind::STDIN, id, body),
            if body.is_empty() { Vec::new() } else { record(kind::STDIN, id, b"") },
        ]
        .concat()
    }

    /// What comes of bytes in pieces of a size, and what is said meanwhile.
    fn heard(bytes: &[u8], size: usize) -> (Vec<Result<Next, Wrong>>, Vec<u8>) {
        let (mut incoming, mut out, mut heard) = (Incoming::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            incoming.take(piece);
            loop {
                match incoming.next(&mut out) {
                    Ok(Next::More) => break,
                    other => heard.push(other),
                }
                if heard.last().is_some_and(Result::is_err) {
                    return (heard, out);
                }
            }
        }
        (heard, out)
    }

    #[test]
    fn a_request_is_whole_in_whatever_pieces_it_comes() {
        let bytes = [whole(1, 1, b"a=b"), whole(1, 0, b"")].concat();
        for size in 1..=bytes.len() {
            let (heard, out) = heard(&bytes, size);
            let [Ok(Next::Request(first)), Ok(Next::Request(second))] = &heard[..] else { panic!("{heard:?}") };
            assert_eq!((first.id, first.keeps, first.body.as_slice()), (1, true, b"a=b".as_slice()));
            assert_eq!((second.id, second.keeps, second.body.len()), (1, false, 0));
            assert_eq!((first.variable("REQUEST_METHOD"), first.variable("METHOD")), (&b"POST"[..], &b""[..]));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn padding_is_no_content() {
        let mut padded = record(kind::PARAMS, 1, b"\x05\x01NAMESx");
        padded[6] = 3;
        padded.extend_from_slice(b"\x01\x00Z");
        let (end, body) = (record(kind::PARAMS, 1, b""), record(kind::STDIN, 1, b""));
        let (heard, _) = heard(&[begin(1, 1, 0), padded, end, body].concat(), 7);
        let [Ok(Next::Request(request))] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(request.variables().collect::<Vec<_>>(), [(&b"NAMES"[..], &b"x"[..])]);
    }

    #[test]
    fn what_cannot_be_played_is_said() {
        let (heard_other, out) = heard(&begin(7, 2, 0), 100);
        assert_eq!((heard_other, out[1], out[3], out[12]), (vec![Ok(Next::Over)], 3, 7, 3), "another role");
        let second = [begin(1, 1, 1), begin(2, 1, 1)].concat();
        let (heard_second, out) = heard(&second, 100);
        assert_eq!((heard_second.len(), out[1], out[3], out[12]), (0, 3, 2, 1), "a second request");
        let aborted = [begin(1, 1, 0), record(kind::ABORT_REQUEST, 1, b"")].concat();
        let (heard_aborted, out) = heard(&aborted, 100);
        assert_eq!((heard_aborted, out[1], out[12]), (vec![Ok(Next::Over)], 3, 0), "it was aborted");
        let values = record(kind::GET_VALUES, 0, b"\x0f\x00FCGI_MPXS_CONNS\x0e\x00FCGI_MAX_CONNS");
        let (_, out) = heard(&values, 100);
        assert_eq!((out[1], &out[8..]), (10, &b"\x0f\x01FCGI_MPXS_CONNS0"[..]));
        let (_, out) = heard(&record(99, 0, b""), 100);
        assert_eq!((out[1], out[8]), (11, 99), "an unknown type");
    }

    #[test]
    fn what_is_no_fastcgi_or_too_long_ends_the_connection() {
        let wrong = |bytes: &[u8]| heard(bytes, bytes.len()).0.pop().and_then(Result::err);
        assert_eq!(wrong(b"GET / HTTP/1.1\r\n"), Some(Wrong::Version));
        assert_eq!(wrong(&record(kind::BEGIN_REQUEST, 1, b"\0")), Some(Wrong::Begin));
        let cut = [begin(1, 1, 0), record(kind::PARAMS, 1, b"\x05\x05AB"), record(kind::PARAMS, 1, b"")].concat();
        assert_eq!(wrong(&cut), Some(Wrong::Variables));
        let part = vec![b'x'; 40_000];
        let long = [begin(1, 1, 0), record(kind::STDIN, 1, &part), record(kind::STDIN, 1, &part)].concat();
        assert_eq!(wrong(&long), Some(Wrong::TooLong));
        assert_eq!(wrong(&whole(1, 0, &part)), None);
    }
}
