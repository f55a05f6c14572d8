//! Datagrams that IP cut: put together as far as they are read, and known to be whole.
//!
//! The fact that constrains it: of a datagram its beginning is read alone (what NFS over UDP says of itself comes before its
//! data), but it has arrived only with its last piece.

use crate::packet::Fragment;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Datagrams under way at once; an older one is given up.
const UNDER_WAY_MAX: usize = 1024;
/// What a datagram can be.
const DATAGRAM_BYTES_MAX: usize = 65_535;

#[derive(Default)]
struct Partial {
    first_ns: i64,
    data: Vec<u8>,
    /// Beginning and end of each piece, as they came.
    pieces: Vec<(usize, usize)>,
    total: Option<usize>,
}

type Key = (IpAddr, IpAddr, u32);

/// A datagram that is whole: when its first and last piece were seen, and its bytes from the first piece on.
pub(crate) struct Datagram {
    pub(crate) first_ns: i64,
    pub(crate) data: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Fragments {
    partial: HashMap<Key, Partial>,
    order: VecDeque<Key>,
    pub(crate) lost: u64,
}

impl Fragments {
    pub(crate) fn add(&mut self, ns: i64, piece: &Fragment<'_>) -> Option<Datagram> {
        let end = piece.at + piece.length;
        if piece.length == 0 || end > DATAGRAM_BYTES_MAX {
            return None;
        }
        let key = (piece.from, piece.to, piece.number);
        if !self.partial.contains_key(&key) {
            self.make_room();
            self.order.push_back(key);
        }
        let partial = self.partial.entry(key).or_insert_with(|| Partial { first_ns: ns, ..Partial::default() });
        if !partial.pieces.iter().any(|&(from, to)| from < end && piece.at < to) {
            partial.pieces.push((piece.at, end));
        }
        if piece.at == 0 && partial.data.is_empty() {
            partial.data.extend_from_slice(piece.data);
        }
        if !piece.has_more {
            partial.total = Some(end);
        }
        let seen: usize = partial.pieces.iter().map(|(from, to)| to - from).sum();
        if partial.total.is_none_or(|total| seen < total) {
            return None;
        }
        let whole = self.partial.remove(&key)?;
        self.order.retain(|other| *other != key);
        (!whole.data.is_empty()).then_some(Datagram { first_ns: whole.first_ns, data: whole.data })
    }

    fn make_room(&mut self) {
        while self.order.len() >= UNDER_WAY_MAX {
            if self.order.pop_front().is_some_and(|oldest| self.partial.remove(&oldest).is_some()) {
                self.lost += 1;
            }
        }
    }

    /// How many datagrams were never whole, those still under way among them.
    pub(crate) fn finish(&mut self) -> u64 {
        self.lost + self.partial.len() as u64
    }
}
