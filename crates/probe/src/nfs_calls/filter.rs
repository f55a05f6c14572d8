//! The program of the socket's filter (classic BPF): TCP from or to one of some ports, over IPv4 or IPv6.
//!
//! The fact that constrains it: it runs in the kernel for each packet of the interface. So it looks at protocol and ports, and
//! the addresses of what it lets through are compared outside.

/// `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) jt: u8,
    pub(super) jf: u8,
    pub(super) k: u32,
}

const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_HALF_BEHIND_HEADER: u16 = 0x48;
/// X = 4 times the lower four bits of a byte: the length of a header of IPv4.
const HEADER_BYTES: u16 = 0xb1;
const SHIFT_RIGHT: u16 = 0x74;
const IS_EQUAL: u16 = 0x15;
const HAS_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;
const TCP: u32 = 6;
const WHOLE: u32 = i32::MAX as u32;
/// Jumps reach this far.
pub(super) const PORTS_MAX: usize = 32;

fn step(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// Goes on if equal (or, with `HAS_BITS`, if none is set), else so many further.
fn unless(code: u16, k: u32, further: usize) -> Instruction {
    let further = further as u8;
    let (jt, jf) = if code == HAS_BITS { (further, 0) } else { (0, further) };
    Instruction { code, jt, jf, k }
}

/// Compares the half-words at two places with the ports, and returns.
fn compare(load: u16, places: [u32; 2], ports: &[u16]) -> Vec<Instruction> {
    let mut program = Vec::new();
    let length = 2 * (ports.len() + 1);
    for place in places {
        program.push(step(load, place));
        for port in ports {
            let to_whole = (length - program.len()) as u8;
            program.push(Instruction { code: IS_EQUAL, jt: to_whole, jf: 0, k: (*port).into() });
        }
    }
    program.push(step(RETURN, 0));
    program.push(step(RETURN, WHOLE));
    program
}

/// The program, for packets that begin with the header of IP. Of more than [`PORTS_MAX`] ports the first ones.
pub(super) fn of_ports(ports: &[u16]) -> Vec<Instruction> {
    let ports = &ports[..ports.len().min(PORTS_MAX)];
    let compare_4 = compare(LOAD_HALF_BEHIND_HEADER, [0, 2], ports);
    let compare_6 = compare(LOAD_HALF, [40, 42], ports);
    let refuse = |left: &[Instruction]| left.len() - 2;
    let mut program = vec![step(LOAD_BYTE, 0), step(SHIFT_RIGHT, 4)];
    program.push(unless(IS_EQUAL, 4, 5 + compare_4.len()));
    program.push(step(LOAD_BYTE, 9));
    program.push(unless(IS_EQUAL, TCP, 3 + refuse(&compare_4)));
    program.push(step(LOAD_HALF, 6));
    // Pieces but the first have no ports. TCP avoids them.
    program.push(unless(HAS_BITS, 0x1fff, 1 + refuse(&compare_4)));
    program.push(step(HEADER_BYTES, 0));
    program.extend(compare_4);
    program.push(unless(IS_EQUAL, 6, 2 + refuse(&compare_6)));
    program.push(step(LOAD_BYTE, 6));
    program.push(unless(IS_EQUAL, TCP, refuse(&compare_6)));
    program.extend(compare_6);
    program
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::ring::attach;
    use super::*;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

    /// A packet of IPv4 with options behind its header, or of IPv6.
    fn packet(version: u8, protocol: u8, ports: [u16; 2], piece: u16) -> Vec<u8> {
        let mut packet = if version == 4 { vec![0; 24] } else { vec![0; 40] };
        packet[0] = if version == 4 { 0x46 } else { 0x60 };
        if version == 4 {
            packet[6..8].copy_from_slice(&piece.to_be_bytes());
        }
        packet[if version == 4 { 9 } else { 6 }] = protocol;
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.resize(packet.len() + 16, 0);
        packet
    }

    /// The kernel runs the program over what is sent through a pair of sockets.
    fn lets_through(ports: &[u16], bytes: &[u8]) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (from, to) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap();
        attach(&to, &of_ports(ports)).unwrap();
        let _ = send(&from, bytes, SendFlags::empty());
        match recv(&to, &mut [0_u8; 256][..], RecvFlags::empty()) {
            Ok((length, _)) => {
                assert_eq!(length, bytes.len());
                true
            }
            Err(_) => false,
        }
    }

    #[test]
    fn the_kernel_lets_through_what_goes_from_or_to_a_port() {
        let many: Vec<u16> = (2049..2049 + PORTS_MAX as u16).collect();
        for ports in [&[2049][..], &[111, 2049, 20049], &many] {
            for version in [4, 6] {
                for (protocol, pair, expected) in
                    [(6, [2049, 700], true), (6, [700, 2049], true), (6, [700, 701], false), (17, [700, 2049], false)]
                {
                    let found = lets_through(ports, &packet(version, protocol, pair, 0));
                    assert_eq!(found, expected, "IPv{version} {protocol} {pair:?} of {ports:?}");
                }
            }
        }
        assert!(lets_through(&many, &packet(4, 6, [1, 2049 + PORTS_MAX as u16 - 1], 0)));
    }

    #[test]
    fn pieces_without_ports_and_other_protocols_are_left_out() {
        assert!(!lets_through(&[2049], &packet(4, 6, [2049, 700], 0x0010)));
        assert!(lets_through(&[2049], &packet(4, 6, [2049, 700], 0x4000)), "a packet that may not be cut");
        let mut other = packet(4, 6, [2049, 700], 0);
        other[0] = 0x56;
        assert!(!lets_through(&[2049], &other));
        assert!(!lets_through(&[2049], &[0x45]), "shorter than a header");
    }
}
