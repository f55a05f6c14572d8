//! What lies before the network's own header, by the kind of link a packet was seen on.

use etherparse::EtherType;

/// The kinds of links that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet, with or without VLAN tags.
    Ethernet,
    /// Linux' "any" interface, version 1 (SLL).
    Cooked,
    /// Linux' "any" interface, version 2 (SLL2).
    Cooked2,
    /// IP, 4 or 6, with nothing before it.
    Raw,
    /// BSD's loopback: the address family in four bytes.
    Loopback,
    /// None of these.
    Other(i32),
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

impl LinkType {
    /// By the number in the file.
    pub fn of(number: i32) -> Self {
        match number {
            1 => Self::Ethernet,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            // LINKTYPE_RAW, and what some systems write in its place; LINKTYPE_IPV4 and LINKTYPE_IPV6.
            101 | 12 | 14 | 228 | 229 => Self::Raw,
            0 | 108 => Self::Loopback,
            other => Self::Other(other),
        }
    }

    /// The kind of what follows the link's header, and where it begins.
    pub(crate) fn behind(self, data: &[u8]) -> Option<(EtherType, &[u8])> {
        let word = |at: usize| data.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        let (kind, at) = match self {
            Self::Ethernet => (word(12)?, 14),
            Self::Cooked => (word(14)?, 16),
            Self::Cooked2 => (word(0)?, 20),
            Self::Raw => (by_version(*data.first()?)?, 0),
            Self::Loopback => (by_version(*data.get(4)?)?, 4),
            Self::Other(_) => return None,
        };
        Some((EtherType(kind), data.get(at..)?))
    }
}

fn by_version(first: u8) -> Option<u16> {
    match first >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
