//! One direction of a TCP connection, cut into messages: RPC's record marking, with fragments cut anywhere.
//!
//! The fact that constrains it: a hole in the stream is told by its length. A hole within a fragment leaves the message (if
//! it hides data alone it costs nothing); one that reaches beyond the fragment hides where the next one begins, which is
//! then searched for, byte by byte.

use crate::message::{HEAD_BYTES, Message, TAIL_BYTES};
use crate::rpc;

/// A message of more bytes is taken for nonsense.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// A marker and what is needed to tell that a message begins there.
const SIGN_BYTES: usize = 4 + rpc::SIGN_BYTES;
const LAST_FRAGMENT: u32 = 1 << 31;

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Searching; holds the bytes at which a message may begin.
    Searching,
    Marker,
    Body,
}

/// What was given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) resynchronised: u64,
    pub(crate) records_lost: u64,
}

/// When bytes were seen: themselves, and they with all before them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) own_ns: i64,
    pub(crate) whole_ns: i64,
}

#[derive(Debug)]
pub(crate) struct Records {
    state: State,
    /// While searching what may begin a message; of a marker its bytes so far.
    carried: Vec<u8>,
    carried_ns: i64,
    head: Vec<u8>,
    tail: Vec<u8>,
    tail_end: usize,
    /// Bytes of the message so far, holes included.
    length: usize,
    /// Bytes of the fragment to come.
    remaining: usize,
    is_last: bool,
    first_ns: i64,
    /// A message was found: what is missing is missed.
    has_found: bool,
    given: Given,
}

impl Records {
    /// Of a stream from its first byte on.
    pub(crate) fn from_start() -> Self {
        Self {
            state: State::Marker,
            carried: Vec::new(),
            carried_ns: 0,
            head: Vec::new(),
            tail: Vec::new(),
            tail_end: 0,
            length: 0,
            remaining: 0,
            is_last: false,
            first_ns: 0,
            has_found: false,
            given: Given::default(),
        }
    }

    /// Of a stream whose beginning was not seen.
    pub(crate) fn from_anywhere() -> Self {
        Self { state: State::Searching, ..Self::from_start() }
    }

    pub(crate) fn is_searching(&self) -> bool {
        self.state == State::Searching
    }

    /// Whether there ever was a message.
    pub(crate) fn has_found(&self) -> bool {
        self.has_found
    }

    /// What was given up since this was asked.
    pub(crate) fn given(&mut self) -> Given {
        std::mem::take(&mut self.given)
    }

    /// Bytes that this holds.
    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        self.carried.len() + self.head.len() + self.tail.len()
    }

    /// The stream's next bytes.
    pub(crate) fn feed(&mut self, seen: Seen, mut data: &[u8], each: &mut impl FnMut(Message<'_>)) {
        while !data.is_empty() {
            match self.state {
                State::Searching => match self.search(seen, data) {
                    Some(found) => {
                        let sign = std::mem::take(&mut self.carried);
                        let sign_seen = Seen { own_ns: self.carried_ns, whole_ns: seen.whole_ns };
                        self.state = State::Marker;
                        self.has_found = true;
                        // The sign is shorter than any message, so this cannot end one.
                        self.feed(sign_seen, &sign, each);
                        data = &data[found..];
                    }
                    None => return,
                },
                State::Marker => data = self.marker(seen, data, each),
                State::Body => {
                    let (now, rest) = data.split_at(self.remaining.min(data.len()));
                    self.keep(now);
                    self.remaining -= now.len();
                    data = rest;
                    self.end_of_fragment(seen.whole_ns, each);
                }
            }
        }
    }

    /// The stream's next `count` bytes were not seen.
    pub(crate) fn skip(&mut self, ns: i64, count: usize, each: &mut impl FnMut(Message<'_>)) {
        if self.state == State::Body && count <= self.remaining {
            self.length += count;
            self.remaining -= count;
            self.end_of_fragment(ns, each);
        } else if count > 0 {
            self.lose();
        }
    }

    /// What is under way will not be completed.
    pub(crate) fn lose(&mut self) {
        if self.state == State::Searching {
            self.carried.clear();
            return;
        }
        if self.length > 0 || self.state == State::Body {
            self.given.records_lost += 1;
        }
        self.clear();
        self.carried.clear();
        self.state = State::Searching;
        self.given.resynchronised += 1;
    }

    fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.tail_end = 0;
        self.length = 0;
        self.remaining = 0;
    }

    /// Reads a fragment's marker; gives what follows it.
    fn marker<'d>(&mut self, seen: Seen, data: &'d [u8], each: &mut impl FnMut(Message<'_>)) -> &'d [u8] {
        if self.carried.is_empty() && self.length == 0 {
            self.first_ns = seen.own_ns;
            if let Some(rest) = whole(seen, data, each) {
                self.has_found = true;
                return rest;
            }
        }
        let (now, rest) = data.split_at((4 - self.carried.len()).min(data.len()));
        self.carried.extend_from_slice(now);
        let Ok(bytes) = <[u8; 4]>::try_from(&self.carried[..]) else { return rest };
        self.carried.clear();
        let word = u32::from_be_bytes(bytes);
        self.remaining = (word & !LAST_FRAGMENT) as usize;
        self.is_last = word & LAST_FRAGMENT != 0;
        if self.length + self.remaining > MESSAGE_BYTES_MAX || (self.remaining == 0 && self.length == 0) {
            self.lose();
            return rest;
        }
        self.state = State::Body;
        self.end_of_fragment(seen.whole_ns, each);
        rest
    }

    fn keep(&mut self, data: &[u8]) {
        if self.head.len() == self.length && self.length < HEAD_BYTES {
            let room = (HEAD_BYTES - self.length).min(data.len());
            self.head.extend_from_slice(&data[..room]);
        }
        // Only what lies near a fragment's end can be of the message's end.
        let distance = self.remaining - data.len();
        if distance < TAIL_BYTES && self.length + data.len() > HEAD_BYTES {
            let skipped = data.len().saturating_sub(TAIL_BYTES);
            if self.tail_end != self.length + skipped || skipped > 0 {
                self.tail.clear();
            }
            self.tail.extend_from_slice(&data[skipped..]);
            self.tail_end = self.length + data.len();
            if self.tail.len() > 2 * TAIL_BYTES {
                self.tail.drain(..self.tail.len() - TAIL_BYTES);
            }
        }
        self.length += data.len();
    }

    fn end_of_fragment(&mut self, ns: i64, each: &mut impl FnMut(Message<'_>)) {
        let (before, sign) = (self.head.len().min(self.length), self.head.get(..rpc::SIGN_BYTES));
        if before >= rpc::SIGN_BYTES && sign.is_none_or(|sign| !rpc::may_begin(sign)) {
            self.lose();
            return;
        }
        if self.remaining > 0 {
            return;
        }
        self.state = State::Marker;
        if !self.is_last {
            return;
        }
        let tail = if self.tail_end == self.length { &self.tail[..] } else { &[] };
        let (first_ns, head, length) = (self.first_ns, &self.head[..], self.length);
        each(Message { first_ns, last_ns: ns, head, tail, length });
        self.has_found = true;
        self.clear();
    }

    /// Searches for where a message begins. Gives how many bytes of `data` were used, the sign then being what is carried.
    fn search(&mut self, seen: Seen, data: &[u8]) -> Option<usize> {
        let old = self.carried.len();
        // Signs that begin in what was carried.
        let borrowed = data.len().min(SIGN_BYTES);
        self.carried.extend_from_slice(&data[..borrowed]);
        let places = (self.carried.len() + 1).saturating_sub(SIGN_BYTES).min(old);
        if let Some(at) = (0..places).find(|&at| is_sign(&self.carried[at..])) {
            self.carried.drain(..at);
            self.carried.truncate(SIGN_BYTES);
            return Some(SIGN_BYTES - (old - at));
        }
        self.carried_ns = seen.own_ns;
        if let Some(at) = (0..(data.len() + 1).saturating_sub(SIGN_BYTES)).find(|&at| is_sign(&data[at..])) {
            self.carried.clear();
            self.carried.extend_from_slice(&data[at..at + SIGN_BYTES]);
            return Some(at + SIGN_BYTES);
        }
        let kept = SIGN_BYTES - 1;
        if data.len() >= kept {
            self.carried.clear();
            self.carried.extend_from_slice(&data[data.len() - kept..]);
        } else {
            let beyond = self.carried.len().saturating_sub(kept);
            self.carried.drain(..beyond);
        }
        None
    }
}

/// A message of one fragment that lies whole in `data` needs no copy. Gives what follows it.
fn whole<'d>(seen: Seen, data: &'d [u8], each: &mut impl FnMut(Message<'_>)) -> Option<&'d [u8]> {
    let word = u32::from_be_bytes(data.get(..4)?.try_into().ok()?);
    let length = (word & !LAST_FRAGMENT) as usize;
    let head = data.get(4..4_usize.checked_add(length)?)?;
    if word & LAST_FRAGMENT == 0 || !head.get(..rpc::SIGN_BYTES).is_some_and(rpc::may_begin) {
        return None;
    }
    each(Message { first_ns: seen.own_ns, last_ns: seen.whole_ns, head, tail: &[], length });
    Some(&data[4 + length..])
}

/// Whether a message that one can be sure of begins here. A reply of several fragments is not looked for: the words of a call
/// without credentials look like one.
fn is_sign(bytes: &[u8]) -> bool {
    let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let length = (word & !LAST_FRAGMENT) as usize;
    let is_call = bytes[11] == 0;
    (rpc::SIGN_BYTES..=4 << 20).contains(&length)
        && (is_call || word & LAST_FRAGMENT != 0)
        && rpc::surely_begins(&bytes[4..SIGN_BYTES])
}

#[cfg(test)]
#[path = "records/tests.rs"]
mod tests;
