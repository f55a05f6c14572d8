//! A capture's packets in, its calls out.
//!
//! The fact that constrains it: captures are larger than memory. What is held grows with connections, files and calls under
//! way, each up to a bound, and never with the capture.

use crate::call::Call;
use crate::capture::{CaptureError, Ended, Packet, Packets};
use crate::files::{FileClass, Files, NamedFile};
use crate::fragments::Fragments;
use crate::matching::{Matching, Number};
use crate::message::Message;
use crate::names::{Names, Operation};
use crate::packet::{self, Ends, Held, Segment};
use crate::stream::{Stream, StreamCounts};
use crate::totals::Totals;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};

mod reading;

/// Conversations held at once; the longest idle ones of more are given up.
const CONVERSATIONS_MAX: usize = 8192;
/// Bytes that wait behind gaps, of all connections together.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// Two ends between which there were calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who called first.
    pub client: SocketAddr,
    /// Whom.
    pub server: SocketAddr,
    /// Datagrams instead of a stream.
    pub is_udp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    low: SocketAddr,
    high: SocketAddr,
    is_udp: bool,
}

struct Conversation {
    /// Of what the lower and what the higher end sends.
    streams: [Stream; 2],
    calls: Calls,
    last_ns: i64,
}

/// The calls of a conversation.
#[derive(Default)]
struct Calls {
    matching: Matching,
    number: Option<u32>,
    early: VecDeque<Early>,
}

/// A reply that came before its call, as captures of several queues have it.
struct Early {
    number: Number,
    first_ns: i64,
    last_ns: i64,
    head: Vec<u8>,
    length: usize,
}

/// What all conversations share.
#[derive(Default)]
struct Shared {
    names: Names,
    files: Files,
    connections: Vec<Connection>,
    servers: HashMap<IpAddr, u32>,
    totals: Totals,
    done: Vec<Call>,
}

/// Reads packets, and holds what calls are made of.
#[derive(Default)]
pub struct Decoder {
    conversations: HashMap<Key, Conversation>,
    fragments: Fragments,
    waiting_bytes: usize,
    shared: Shared,
}

/// Decodes a capture; each call is handed to `each` when nothing more can come of it, not in the order of time.
///
/// # Errors
/// When it is no capture or cannot be read, or when `each` refuses.
pub fn decode<'r>(
    file: impl Read + Send + 'r,
    mut each: impl FnMut(&Call) -> io::Result<()>,
) -> Result<(Decoder, Ended), CaptureError> {
    let mut decoder = Decoder::default();
    let ended = Packets::open(file)?.for_each(|packet| {
        decoder.packet(&packet);
        decoder.hand_out(&mut each)
    })?;
    decoder.finish();
    decoder.hand_out(&mut each)?;
    Ok((decoder, ended))
}

impl Decoder {
    /// Reads a packet.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let totals = &mut self.shared.totals;
        totals.packets += 1;
        totals.packet_bytes += packet.data.len() as u64;
        totals.packets_cut += u64::from(packet.length > packet.data.len());
        totals.first_ns = if totals.packets == 1 { packet.ns } else { totals.first_ns.min(packet.ns) };
        totals.last_ns = if totals.packets == 1 { packet.ns } else { totals.last_ns.max(packet.ns) };
        match packet::read(packet.link, packet.data, packet.length) {
            Some(Held::Tcp(ends, segment)) => self.segment(packet.ns, &ends, &segment),
            Some(Held::Udp(ends, data, length)) => self.datagram((packet.ns, packet.ns), &ends, data, length),
            Some(Held::Fragment(fragment)) => {
                let Some(whole) = self.fragments.add(packet.ns, &fragment) else { return };
                let read = packet::read_datagram(fragment.from, fragment.to, &whole.data);
                if let Some((ends, data, length)) = read {
                    self.datagram((whole.first_ns, packet.ns), &ends, data, length);
                }
            }
            None => totals.packets_unread += 1,
        }
    }

    fn segment(&mut self, ns: i64, ends: &Ends, segment: &Segment<'_>) {
        let (key, side) = key(ends, false);
        if segment.data.is_empty()
            && segment.missing == 0
            && !segment.is_first
            && !self.conversations.contains_key(&key)
        {
            return;
        }
        let Self { shared, waiting_bytes, .. } = self;
        let conversation = conversation(&mut self.conversations, key, ns, shared);
        let before = conversation.waiting_bytes();
        conversation.add(ns, side, ends, segment, shared);
        *waiting_bytes = *waiting_bytes + conversation.waiting_bytes() - before;
        if *waiting_bytes > WAITING_BYTES_MAX {
            let before = conversation.waiting_bytes();
            conversation.pass_gaps(ends, side, shared);
            *waiting_bytes = *waiting_bytes + conversation.waiting_bytes() - before;
        }
    }

    fn datagram(&mut self, (first_ns, last_ns): (i64, i64), ends: &Ends, data: &[u8], length: usize) {
        if length < 20 || !data.get(..24).is_none_or(crate::rpc::may_begin) {
            return;
        }
        let (key, side) = key(ends, true);
        // Only what is surely RPC opens a conversation: there are many datagrams, and each has ends of its own.
        if !self.conversations.contains_key(&key) && !data.get(..24).is_some_and(crate::rpc::surely_begins) {
            return;
        }
        let conversation = conversation(&mut self.conversations, key, last_ns, &mut self.shared);
        let message = Message { first_ns, last_ns, head: data, tail: &[], length };
        conversation.calls.message(side, ends, true, &message, &mut self.shared);
    }

    /// Hands out the calls of which nothing more can come.
    ///
    /// # Errors
    /// When `each` refuses.
    pub fn hand_out(&mut self, each: &mut impl FnMut(&Call) -> io::Result<()>) -> io::Result<()> {
        for call in self.shared.done.drain(..) {
            let totals = &mut self.shared.totals;
            totals.calls += 1;
            totals.answered += u64::from(call.reply.is_some());
            totals.unanswered += u64::from(call.reply.is_none());
            totals.retransmissions += u64::from(call.retransmissions);
            totals.partial += u64::from(call.is_partial);
            each(&call)?;
        }
        Ok(())
    }

    /// The capture is over: what waits waits no longer.
    pub fn finish(&mut self) {
        let mut left: Vec<_> = self.conversations.drain().collect();
        left.sort_by_key(|(_, conversation)| conversation.calls.number);
        for (key, mut conversation) in left {
            conversation.finish(&key, &mut self.shared);
        }
        self.shared.totals.datagrams_lost = self.fragments.finish();
    }

    /// Counts so far; complete after [`Decoder::finish`].
    pub fn totals(&self) -> &Totals {
        &self.shared.totals
    }

    /// What `operation` of a call is a place in.
    pub fn operations(&self) -> &[Operation] {
        &self.shared.names.operations
    }

    /// What `compound` of a call is a place in: names in the order of the compound.
    pub fn compounds(&self) -> &[Vec<String>] {
        &self.shared.names.compounds
    }

    /// What `connection` of a call is a place in.
    pub fn connections(&self) -> &[Connection] {
        &self.shared.connections
    }

    /// Tells what lies behind a handle of the server at `server`, its path and what it is: files that are open, or whose names
    /// the client still knows, are never looked up where it could be seen. Gives whether there was room.
    pub fn tell(&mut self, server: IpAddr, handle: &[u8], path: &str, class: FileClass) -> bool {
        let server = self.shared.server(server);
        let file = self.shared.files.number(server, handle);
        file.map(|file| self.shared.files.tell(file, path, class)).is_some()
    }

    /// Files whose handles were seen.
    pub fn files(&self) -> usize {
        self.shared.files.count()
    }

    /// What is known of a file besides its handle.
    pub fn named(&self, file: u32) -> Option<NamedFile> {
        self.shared.files.named(file)
    }
}

fn key(ends: &Ends, is_udp: bool) -> (Key, usize) {
    if ends.from <= ends.to {
        (Key { low: ends.from, high: ends.to, is_udp }, 0)
    } else {
        (Key { low: ends.to, high: ends.from, is_udp }, 1)
    }
}

fn conversation<'c>(
    conversations: &'c mut HashMap<Key, Conversation>,
    key: Key,
    ns: i64,
    shared: &mut Shared,
) -> &'c mut Conversation {
    if conversations.len() >= CONVERSATIONS_MAX && !conversations.contains_key(&key) {
        let mut idle: Vec<(i64, Key)> = conversations.iter().map(|(key, one)| (one.last_ns, *key)).collect();
        idle.sort_unstable_by_key(|(ns, key)| (*ns, key.low, key.high));
        for (_, key) in idle.into_iter().take(CONVERSATIONS_MAX / 2) {
            if let Some(mut conversation) = conversations.remove(&key) {
                conversation.finish(&key, shared);
            }
        }
    }
    let found = conversations.entry(key).or_insert_with(|| Conversation {
        streams: [Stream::new(), Stream::new()],
        calls: Calls::default(),
        last_ns: ns,
    });
    found.last_ns = ns;
    found
}

impl Conversation {
    fn waiting_bytes(&self) -> usize {
        self.streams[0].waiting_bytes() + self.streams[1].waiting_bytes()
    }

    fn add(&mut self, ns: i64, side: usize, ends: &Ends, segment: &Segment<'_>, shared: &mut Shared) {
        let Self { streams: [low, high], calls, .. } = self;
        let (own, other) = if side == 0 { (low, high) } else { (high, low) };
        if let Some(acknowledged) = segment.acknowledged {
            other.acknowledge(acknowledged);
        }
        let mut counts = StreamCounts::default();
        let is_early = &mut false;
        own.add(ns, segment, &mut counts, &mut |message| {
            *is_early |= !calls.message(side, ends, false, &message, shared);
        });
        // A reply whose call is not known: the call waits behind a gap that its server did not have.
        while *is_early && other.has_acknowledged_gap() {
            let back = Ends { from: ends.to, to: ends.from };
            other.pass_gap(&mut counts, &mut |message| {
                calls.message(1 - side, &back, false, &message, shared);
            });
        }
        shared.totals.add(&counts);
    }

    /// Goes on behind every gap, that of `side` first.
    fn pass_gaps(&mut self, ends: &Ends, side: usize, shared: &mut Shared) {
        let back = Ends { from: ends.to, to: ends.from };
        let mut counts = StreamCounts::default();
        let Self { streams, calls, .. } = self;
        for (place, ends) in [(side, ends), (1 - side, &back)] {
            streams[place].finish(&mut counts, &mut |message| {
                calls.message(place, ends, false, &message, shared);
            });
        }
        shared.totals.add(&counts);
    }

    fn finish(&mut self, key: &Key, shared: &mut Shared) {
        // The side that calls first, so that replies find their calls.
        let client = self.calls.number.and_then(|number| shared.connections.get(number as usize)).map(|one| one.client);
        let (low, high) = (Ends { from: key.low, to: key.high }, Ends { from: key.high, to: key.low });
        if client == Some(key.high) {
            self.pass_gaps(&high, 1, shared)
        } else {
            self.pass_gaps(&low, 0, shared)
        }
        self.calls.finish(shared);
    }
}
