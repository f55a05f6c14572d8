//! Records as they are on the wire.

pub(super) const HEADER_BYTES: usize = 8;
/// As much as a record can hold, in whole groups of eight bytes.
const CONTENT_BYTES_MAX: usize = 65_528;
const VERSION: u8 = 1;
/// What is no request's.
pub(super) const MANAGEMENT: u16 = 0;

/// Types of record.
pub(super) mod kind {
    pub(crate) const BEGIN_REQUEST: u8 = 1;
    pub(crate) const ABORT_REQUEST: u8 = 2;
    pub(crate) const END_REQUEST: u8 = 3;
    pub(crate) const PARAMS: u8 = 4;
    pub(crate) const STDIN: u8 = 5;
    pub(crate) const STDOUT: u8 = 6;
    pub(crate) const STDERR: u8 = 7;
    pub(crate) const GET_VALUES: u8 = 9;
    pub(crate) const GET_VALUES_RESULT: u8 = 10;
    pub(crate) const UNKNOWN_TYPE: u8 = 11;
}

/// How a request has ended, as END_REQUEST says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    Complete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// A record's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) request: u16,
    pub(super) content_bytes: usize,
    pub(super) padding_bytes: usize,
}

impl Header {
    /// `None` of another version.
    pub(super) fn read(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let [version, kind, request_1, request_0, length_1, length_0, padding, _] = bytes;
        (version == VERSION).then(|| Self {
            kind,
            request: u16::from_be_bytes([request_1, request_0]),
            content_bytes: u16::from_be_bytes([length_1, length_0]).into(),
            padding_bytes: padding.into(),
        })
    }
}

/// Appends a record; `content` is at most [`CONTENT_BYTES_MAX`] long.
pub(super) fn write(out: &mut Vec<u8>, kind: u8, request: u16, content: &[u8]) {
    let ([request_1, request_0], [length_1, length_0]) = (request.to_be_bytes(), (content.len() as u16).to_be_bytes());
    out.extend_from_slice(&[VERSION, kind, request_1, request_0, length_1, length_0, 0, 0]);
    out.extend_from_slice(content);
}

/// Appends the end of a request.
pub(super) fn end(out: &mut Vec<u8>, request: u16, status: Status) {
    write(out, kind::END_REQUEST, request, &[0, 0, 0, 0, status as u8, 0, 0, 0]);
}

/// Appends the whole answer to a request: what a CGI program would write, and what the server's log of errors is to hold.
pub fn answer(out: &mut Vec<u8>, request: u16, parts: &[&[u8]], error: Option<&str>) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(bytes + HEADER_BYTES * (bytes / CONTENT_BYTES_MAX + parts.len() + 4));
    for chunk in error.iter().flat_map(|error| error.as_bytes().chunks(CONTENT_BYTES_MAX)) {
        write(out, kind::STDERR, request, chunk);
    }
    for chunk in parts.iter().flat_map(|part| part.chunks(CONTENT_BYTES_MAX)) {
        write(out, kind::STDOUT, request, chunk);
    }
    // An empty record ends a stream.
    write(out, kind::STDOUT, request, &[]);
    end(out, request, Status::Complete);
}
