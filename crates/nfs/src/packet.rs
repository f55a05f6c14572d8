//! What one packet holds of TCP or UDP, and how much of that the file does not have.

use crate::link::LinkType;
use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice, UdpSlice};
use std::net::{IpAddr, SocketAddr};

/// From whom to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

/// A piece of a TCP stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) sequence: u32,
    pub(crate) acknowledged: Option<u32>,
    pub(crate) is_first: bool,
    pub(crate) data: &'a [u8],
    /// Bytes behind `data` that the file does not have.
    pub(crate) missing: usize,
}

/// A piece of a datagram that IP cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) number: u32,
    pub(crate) at: usize,
    pub(crate) has_more: bool,
    /// What the file has of its bytes.
    pub(crate) data: &'a [u8],
    pub(crate) length: usize,
}

/// What a packet holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'a> {
    Tcp(Ends, Segment<'a>),
    /// The payload that the file has, and its length.
    Udp(Ends, &'a [u8], usize),
    Fragment(Fragment<'a>),
}

/// What of the network's header says.
struct Network<'a> {
    from: IpAddr,
    to: IpAddr,
    payload: &'a [u8],
    protocol: IpNumber,
    /// Bytes behind the headers on the wire; none where the header does not say.
    length: Option<usize>,
    /// Number, place and whether there are more, of a piece.
    piece: Option<(u32, usize, bool)>,
}

/// Reads a packet of `length` bytes on the wire; none if it is neither TCP nor UDP over IP, or its headers are not there.
pub(crate) fn read(link: LinkType, data: &[u8], length: usize) -> Option<Held<'_>> {
    let (kind, behind) = link.behind(data)?;
    let sliced = LaxSlicedPacket::from_ether_type(kind, behind);
    let network = network(sliced.net.as_ref()?)?;
    let cut = length.saturating_sub(data.len());
    let wire = network.length.unwrap_or(network.payload.len() + cut).max(network.payload.len());
    if let Some((number, at, has_more)) = network.piece {
        let Network { from, to, payload, protocol, .. } = network;
        let fragment = Fragment { from, to, number, at, has_more, data: payload, length: wire };
        return (protocol == IpNumber::UDP).then_some(Held::Fragment(fragment));
    }
    match sliced.transport? {
        TransportSlice::Tcp(tcp) => {
            let headers = network.payload.len().saturating_sub(tcp.payload().len());
            let on_wire = wire.saturating_sub(headers);
            let segment = Segment {
                sequence: tcp.sequence_number(),
                acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
                is_first: tcp.syn(),
                data: tcp.payload(),
                missing: on_wire.saturating_sub(tcp.payload().len()),
            };
            Some(Held::Tcp(ends(&network, tcp.source_port(), tcp.destination_port()), segment))
        }
        TransportSlice::Udp(udp) => Some(datagram(&network, &udp)),
        _ => None,
    }
}

fn ends(network: &Network<'_>, from: u16, to: u16) -> Ends {
    Ends { from: SocketAddr::new(network.from, from), to: SocketAddr::new(network.to, to) }
}

fn datagram<'a>(network: &Network<'a>, udp: &UdpSlice<'a>) -> Held<'a> {
    let length = usize::from(udp.length()).saturating_sub(8).max(udp.payload().len());
    Held::Udp(ends(network, udp.source_port(), udp.destination_port()), udp.payload(), length)
}

/// What a datagram holds that was put together of its pieces.
pub(crate) fn read_datagram(from: IpAddr, to: IpAddr, data: &[u8]) -> Option<(Ends, &[u8], usize)> {
    let udp = UdpSlice::from_slice_lax(data).ok()?;
    let network = Network { from, to, payload: data, protocol: IpNumber::UDP, length: None, piece: None };
    match datagram(&network, &udp) {
        Held::Udp(ends, payload, length) => Some((ends, payload, length)),
        _ => None,
    }
}

fn network<'a>(net: &LaxNetSlice<'a>) -> Option<Network<'a>> {
    match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let headers = header.slice().len() + ip.extensions().auth.as_ref().map_or(0, |auth| auth.slice().len());
            // A length of 0 is what a capture has of a packet that the network card was to cut.
            let total = usize::from(header.total_len());
            let length = (total > 0).then(|| total.saturating_sub(headers));
            let piece = header.is_fragmenting_payload().then(|| {
                let at = usize::from(header.fragments_offset().value()) * 8;
                (u32::from(header.identification()), at, header.more_fragments())
            });
            Some(Network {
                from: IpAddr::V4(header.source_addr()),
                to: IpAddr::V4(header.destination_addr()),
                payload: ip.payload().payload,
                protocol: ip.payload().ip_number,
                length,
                piece,
            })
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let extensions = ip.extensions();
            let declared = usize::from(header.payload_length());
            let length = (declared > 0).then(|| declared.saturating_sub(extensions.slice().len()));
            let piece = piece(header.next_header(), extensions.slice());
            Some(Network {
                from: IpAddr::V6(header.source_addr()),
                to: IpAddr::V6(header.destination_addr()),
                payload: ip.payload().payload,
                protocol: ip.payload().ip_number,
                length,
                piece,
            })
        }
        LaxNetSlice::Arp(_) => None,
    }
}

/// Number, place and whether there are more, of a piece of a packet of IPv6. (The library's own walk over headers ends in an
/// overflow where they are cut.)
fn piece(first: IpNumber, mut headers: &[u8]) -> Option<(u32, usize, bool)> {
    let mut kind = first;
    loop {
        let &[next, length, high, low, a, b, c, d, ..] = headers else { return None };
        let bytes = match kind {
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                let (at, has_more) = (usize::from(u16::from_be_bytes([high, low]) & !7), low & 1 != 0);
                return (at > 0 || has_more).then_some((u32::from_be_bytes([a, b, c, d]), at, has_more));
            }
            IpNumber::AUTHENTICATION_HEADER => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        kind = IpNumber(next);
        headers = headers.get(bytes..)?;
    }
}
