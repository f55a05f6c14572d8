//! Packets to a file.

use super::wire::Packet;
use etherparse::PacketBuilder;

/// How a capture is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) is_ng: bool,
    pub(crate) is_big_endian: bool,
    pub(crate) is_ns: bool,
    /// Number of the link's type: 1, 101, 113, 276.
    pub(crate) link: u16,
    pub(crate) is_vlan: bool,
    pub is_ipv6: bool,
    /// Bytes kept of a packet.
    pub(crate) snap: usize,
}

impl Format {
    pub(crate) const PLAIN: Self = Self {
        is_ng: false,
        is_big_endian: false,
        is_ns: true,
        link: 1,
        is_vlan: false,
        is_ipv6: false,
        snap: 1 << 18,
    };
}

const FIRST_SEQUENCE: [u32; 2] = [u32::MAX - 5000, 1_000];
const PORTS: [u16; 2] = [871, 2049];
/// Of a datagram what goes into one packet of Ethernet.
const MTU: usize = 1500;

fn ip(packet: &Packet, format: &Format) -> Vec<Vec<u8>> {
    let (from, to) = (packet.side, 1 - packet.side);
    let builder = if format.is_ipv6 {
        let address = |side: usize| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, side as u8 + 1];
        PacketBuilder::ipv6(address(from), address(to), 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, from as u8 + 1], [10, 0, 0, to as u8 + 1], 64)
    };
    let mut bytes = Vec::new();
    if packet.is_udp {
        builder.udp(PORTS[from], PORTS[to]).write(&mut bytes, &packet.data).unwrap();
        return fragments(bytes, packet, format);
    }
    let place = |side: usize, at: usize| FIRST_SEQUENCE[side].wrapping_add(at as u32);
    let sequence = place(from, if packet.is_syn { 0 } else { packet.at + 1 });
    let builder = builder.tcp(PORTS[from], PORTS[to], sequence, 60_000);
    let builder = if packet.is_syn && from == 0 {
        builder.syn()
    } else {
        let builder = builder.ack(place(to, packet.acknowledged + 1));
        if packet.is_syn { builder.syn() } else { builder }
    };
    builder.write(&mut bytes, &packet.data).unwrap();
    vec![bytes]
}

/// IP's own fragments of a datagram that is longer than a packet (of IPv4; those of IPv6 are written whole).
fn fragments(bytes: Vec<u8>, packet: &Packet, format: &Format) -> Vec<Vec<u8>> {
    if format.is_ipv6 || bytes.len() <= MTU {
        return vec![bytes];
    }
    let (header, payload) = bytes.split_at(20);
    let pieces = payload.chunks((MTU - 20) / 8 * 8);
    let count = pieces.len();
    let number = (packet.at * 2 + packet.side) as u16;
    pieces
        .enumerate()
        .map(|(place, piece)| {
            let mut one = header.to_vec();
            one[2..4].copy_from_slice(&((20 + piece.len()) as u16).to_be_bytes());
            one[4..6].copy_from_slice(&number.to_be_bytes());
            let more = if place + 1 < count { 0x2000 } else { 0 };
            let at = (place * ((MTU - 20) / 8)) as u16;
            one[6..8].copy_from_slice(&(at | more).to_be_bytes());
            one.extend_from_slice(piece);
            one
        })
        .collect()
}

fn framed(ip: &[u8], format: &Format) -> Vec<u8> {
    let kind: [u8; 2] = if format.is_ipv6 { [0x86, 0xdd] } else { [8, 0] };
    let mut frame = match format.link {
        1 => vec![2; 12],
        113 => vec![0; 14],
        276 => [&kind[..], &[0; 18]].concat(),
        _ => Vec::new(),
    };
    match format.link {
        1 if format.is_vlan => frame.extend([&[0x81, 0, 0, 42], &kind[..]].concat()),
        1 | 113 => frame.extend(kind),
        _ => {}
    }
    frame.extend_from_slice(ip);
    frame
}

struct Out {
    bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Out {
    fn u16(&mut self, word: u16) {
        self.bytes.extend(if self.is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() });
    }

    fn u32(&mut self, word: u32) {
        self.bytes.extend(if self.is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() });
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) {
        let mut inside = Self { bytes: Vec::new(), is_big_endian: self.is_big_endian };
        body(&mut inside);
        inside.bytes.resize(inside.bytes.len().next_multiple_of(4), 0);
        let length = inside.bytes.len() as u32 + 12;
        self.u32(kind);
        self.u32(length);
        self.bytes.extend(inside.bytes);
        self.u32(length);
    }
}

/// Writes packets; gives the file.
pub(crate) fn write(packets: &[Packet], format: &Format) -> Vec<u8> {
    let mut out = Out { bytes: Vec::new(), is_big_endian: format.is_big_endian };
    if format.is_ng {
        out.block(0x0a0d_0d0a, |out| {
            out.u32(0x1a2b_3c4d);
            out.u16(1);
            out.u16(0);
            out.u32(u32::MAX);
            out.u32(u32::MAX);
        });
        out.block(1, |out| {
            out.u16(format.link);
            out.u16(0);
            out.u32(1 << 18);
            if format.is_ns {
                out.u16(9);
                out.u16(1);
                out.bytes.extend([9, 0, 0, 0]);
                out.u32(0);
            }
        });
    } else {
        out.u32(if format.is_ns { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        out.u16(2);
        out.u16(4);
        out.u32(0);
        out.u32(0);
        out.u32(1 << 18);
        out.u32(u32::from(format.link));
    }
    for packet in packets.iter().filter(|packet| !packet.is_lost) {
        for ip in ip(packet, format) {
            frame(&mut out, packet.ns, &framed(&ip, format), format);
        }
    }
    out.bytes
}

fn frame(out: &mut Out, ns: i64, frame: &[u8], format: &Format) {
    let kept = &frame[..frame.len().min(format.snap)];
    let unit = if format.is_ns { 1 } else { 1000 };
    let ticks = (ns / unit) as u64;
    if format.is_ng {
        out.block(6, |out| {
            out.u32(0);
            out.u32((ticks >> 32) as u32);
            out.u32(ticks as u32);
            out.u32(kept.len() as u32);
            out.u32(frame.len() as u32);
            out.bytes.extend_from_slice(kept);
        });
    } else {
        let a_second = 1_000_000_000 / unit as u64;
        out.u32((ticks / a_second) as u32);
        out.u32((ticks % a_second) as u32);
        out.u32(kept.len() as u32);
        out.u32(frame.len() as u32);
        out.bytes.extend_from_slice(kept);
    }
}
