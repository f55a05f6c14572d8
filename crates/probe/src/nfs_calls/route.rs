//! Over which interface packets go to an address, as the kernel's own routing says (rtnetlink(7), RTM_GETROUTE).

use super::words::{half, word};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;
use std::net::IpAddr;

const GET_ROUTE: u16 = 26;
const NEW_ROUTE: u16 = 24;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
/// Attributes of a route: where to, over which interface.
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
/// Of a message's head, a route's head and an attribute's.
const HEAD: usize = 16;
const ROUTE: usize = 12;
const ATTRIBUTE: usize = 4;

/// The number of the interface towards `address`; of an address of this machine that of the loopback device.
pub(super) fn interface_towards(address: IpAddr) -> io::Result<u32> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(address), SendFlags::empty())?;
    let mut answer = vec![0; 8192];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    interface(&answer[..length])
}

/// The name of an interface.
pub(super) fn name_of(interface: u32) -> String {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let name = socket.and_then(|socket| rustix::net::netdevice::index_to_name(&socket, interface));
    name.unwrap_or_else(|_| interface.to_string())
}

fn request(address: IpAddr) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let attribute = ATTRIBUTE + bytes.len();
    let mut message = ((HEAD + ROUTE + attribute) as u32).to_ne_bytes().to_vec();
    message.extend([GET_ROUTE, REQUEST].iter().flat_map(|word| word.to_ne_bytes()));
    message.extend([0; 8]);
    // struct rtmsg: family, and how many bits of the destination are given.
    message.extend([family.as_raw() as u8, (bytes.len() * 8) as u8]);
    message.extend([0; ROUTE - 2]);
    message.extend([attribute as u16, DESTINATION].iter().flat_map(|word| word.to_ne_bytes()));
    message.extend(bytes);
    message
}

/// The interface that an answer names.
fn interface(answer: &[u8]) -> io::Result<u32> {
    let told = || io::Error::other("the kernel's answer names no interface");
    match half(answer, 4) {
        Some(NEW_ROUTE) => attribute(answer.get(HEAD + ROUTE..).ok_or_else(told)?, INTERFACE).ok_or_else(told),
        Some(ERROR) => Err(io::Error::from_raw_os_error((word(answer, HEAD).ok_or_else(told)? as i32).wrapping_neg())),
        _ => Err(told()),
    }
}

fn attribute(mut attributes: &[u8], wanted: u16) -> Option<u32> {
    loop {
        let length = usize::from(half(attributes, 0)?);
        if half(attributes, 2)? == wanted {
            return word(attributes, ATTRIBUTE);
        }
        attributes = attributes.get(length.max(ATTRIBUTE).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_behind_the_loopback_device() {
        let interface = interface_towards("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!((name_of(interface).as_str(), interface), ("lo", 1));
    }

    #[test]
    fn answers_are_read_as_far_as_they_go() {
        let mut answer = request("10.0.0.1".parse().unwrap());
        assert!(interface(&answer).is_err(), "a question");
        answer[4..6].copy_from_slice(&NEW_ROUTE.to_ne_bytes());
        assert!(interface(&answer).is_err(), "an answer without an interface");
        answer.extend([8_u16, INTERFACE].iter().flat_map(|half| half.to_ne_bytes()));
        answer.extend(7_u32.to_ne_bytes());
        assert_eq!(interface(&answer).unwrap(), 7);
        let mut refused = vec![0; HEAD];
        refused[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        refused.extend((-101_i32).to_ne_bytes());
        assert_eq!(interface(&refused).unwrap_err().raw_os_error(), Some(101));
        assert!(interface(&[]).is_err());
    }
}
