//! Packets of one interface, as the kernel puts them into memory that both share (packet(7), TPACKET_V3).
//!
//! The fact that constrains it: the ring has a fixed size, and what finds no room in it is dropped and counted by the kernel. A
//! block is the kernel's or ours, never both's: its first word says whose, and is read and written in that order.

use super::filter::{self, Instruction};
use super::words::{half, word};
use crate::Refusal;
use plimsoll_nfs::{LinkType, Packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A packet is in one block whole: the largest that loopback devices hand over is 64 KiB and its headers, or with BIG TCP 512 KiB.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 32;
/// What the kernel may use of the machine's memory for packets that wait to be read.
pub(super) const RING_BYTES: usize = BLOCK_BYTES * BLOCKS;
/// A block that is not full is handed over after this.
pub(super) const RETIRE: Duration = Duration::from_millis(20);
const RETIRE_MS: u32 = 20;
const FRAME_BYTES: u32 = 2048;
/// Where in a block's head its words are (struct tpacket_block_desc).
const STATUS: usize = 8;
const PACKETS: usize = 12;
const FIRST: usize = 16;
const LENGTH: usize = 20;
const LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;

/// What the kernel counted of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Packets that passed the filter, with those that were dropped.
    pub(super) packets: u64,
    /// Of those: without room in the ring.
    pub(super) dropped: u64,
}

/// The ring of one interface.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
    counted: Counted,
    /// Packets that were handed out.
    pub(super) seen: u64,
}

// SAFETY: the memory is this ring's alone, and goes with it.
#[allow(unsafe_code)]
unsafe impl Send for Ring {}

fn failed(what: &str) -> impl Fn(io::Error) -> Refusal + '_ {
    move |error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            Refusal::with_remedy(format!("{what}: {error}"), "run as root, or with CAP_NET_RAW")
        }
        Some(libc::EAFNOSUPPORT) => Refusal::from(format!("{what}: this kernel has no packet sockets")),
        Some(libc::ENOMEM) => Refusal::with_remedy(format!("{what}: {error}"), "it needs 32 MiB of memory"),
        _ => Refusal::from(format!("{what}: {error}")),
    }
}

#[allow(unsafe_code)]
fn set<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads so many bytes of `value`, which outlives the call.
    let done = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the socket be given what `program` lets through alone.
pub(super) fn attach(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|one| libc::sock_filter { code: one.code, jt: one.jt, jf: one.jf, k: one.k }).collect();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

impl Ring {
    /// Opens a socket for what goes from or to one of `ports`; it is given nothing before it is bound.
    pub(super) fn open(ports: &[u16]) -> Result<Self, Refusal> {
        let none = None;
        let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, none)
            .map_err(|error| failed("a packet socket")(error.into()))?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))
            .map_err(failed("TPACKET_V3"))?;
        attach(&socket, &filter::of_ports(ports)).map_err(failed("the packet filter"))?;
        let wanted = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: (RING_BYTES / FRAME_BYTES as usize) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &wanted).map_err(failed("the ring of packets"))?;
        let memory = map(&socket).map_err(failed("the ring of packets"))?;
        Ok(Self { socket, memory, next: 0, counted: Counted::default(), seen: 0 })
    }

    /// Begins with what goes over an interface. Of a loopback device, over which each packet goes twice, as it arrives.
    #[allow(unsafe_code)]
    pub(super) fn bind(&self, interface: u32) -> Result<(), Refusal> {
        // SAFETY: a struct of numbers, of which 0 is one.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface as i32;
        let mut length = size_of_val(&address) as libc::socklen_t;
        let of_interface = |error| failed("the interface towards the server")(error);
        // SAFETY: the kernel reads the struct, and then writes as much of it as `length` says.
        let (bound, named) = unsafe {
            let socket = self.socket.as_raw_fd();
            // Without a protocol nothing is received yet: what kind of device it is decides what is to be.
            let bound = libc::bind(socket, (&raw const address).cast(), length);
            (bound, libc::getsockname(socket, (&raw mut address).cast(), &raw mut length))
        };
        if bound != 0 || named != 0 {
            return Err(of_interface(io::Error::last_os_error()));
        }
        if address.sll_hatype == LOOPBACK {
            let yes: c_int = 1;
            set(&self.socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &yes)
                .map_err(failed("packets of a loopback device"))?;
        }
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: as above.
        let bound = unsafe {
            let length = size_of_val(&address) as libc::socklen_t;
            libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        if bound == 0 { Ok(()) } else { Err(of_interface(io::Error::last_os_error())) }
    }

    /// Waits until one of the rings is handed a block, or `longest` has passed.
    pub(super) fn wait(rings: &[Self], longest: Duration) {
        let mut waited: Vec<PollFd<'_>> = rings.iter().map(|ring| PollFd::new(&ring.socket, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        // Whatever poll says, the block's own word tells.
        let _ = poll(&mut waited, Some(&timeout));
    }

    /// Hands out the packets of the next block, if it is ours; tells whether it was.
    #[allow(unsafe_code)]
    pub(super) fn take(&mut self, mut each: impl FnMut(&Packet<'_>)) -> bool {
        // SAFETY: within the mapping, and aligned, since blocks begin at pages.
        let (start, status) = unsafe {
            let start = self.memory.add(self.next * BLOCK_BYTES);
            (start, AtomicU32::from_ptr(start.add(STATUS).as_ptr().cast()))
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the block is ours until its word is written, and the slice ends before that.
        let block = unsafe { std::slice::from_raw_parts(start.as_ptr(), BLOCK_BYTES) };
        self.seen += packets(block, &mut each);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// What the kernel has counted since the socket was bound.
    #[allow(unsafe_code)]
    pub(super) fn counted(&mut self) -> io::Result<Counted> {
        let mut since = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of_val(&since) as libc::socklen_t;
        // SAFETY: the kernel writes as much of the struct as `length` says.
        let done = unsafe {
            let (socket, to) = (self.socket.as_raw_fd(), (&raw mut since).cast());
            libc::getsockopt(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut length)
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // Reading sets the kernel's counts to 0.
        self.counted.packets += u64::from(since.tp_packets);
        self.counted.dropped += u64::from(since.tp_drops);
        Ok(self.counted)
    }
}

#[allow(unsafe_code)]
fn map(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe { mmap(std::ptr::null_mut(), RING_BYTES, access, MapFlags::SHARED, socket, 0)? };
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at nothing"))
}

impl Drop for Ring {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nobody has a part of it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), RING_BYTES) };
    }
}

/// Hands out the packets of a block; gives how many.
fn packets(block: &[u8], each: &mut impl FnMut(&Packet<'_>)) -> u64 {
    let Some(count) = word(block, PACKETS) else { return 0 };
    let length = word(block, LENGTH).map_or(0, |length| length as usize).min(block.len());
    let block = &block[..length];
    let (mut at, mut seen) = (word(block, FIRST).map_or(length, |first| first as usize), 0);
    for _ in 0..count {
        let Some((packet, next)) = packet(block, at) else { break };
        each(&packet);
        seen += 1;
        if next == 0 {
            break;
        }
        at += next;
    }
    seen
}

/// The packet at a place of a block (struct tpacket3_hdr), and how far the next one is.
fn packet(block: &[u8], at: usize) -> Option<(Packet<'_>, usize)> {
    let head = block.get(at..at + size_of::<libc::tpacket3_hdr>())?;
    let [next, seconds, nanoseconds, held, length] = [0, 4, 8, 12, 16].map(|place| word(head, place));
    let offset = usize::from(half(head, 24)?);
    let data = block.get(at + offset..at + offset + held? as usize)?;
    let ns = i64::from(seconds?) * 1_000_000_000 + i64::from(nanoseconds?);
    // A socket of datagrams is given what is behind the link's own header.
    Some((Packet { ns, link: LinkType::Raw, data, length: length? as usize }, next? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block as the kernel writes it.
    fn block(packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        const HEAD: usize = 48;
        const OFFSET: usize = 64;
        let mut block = vec![0; HEAD];
        for (at, word) in [(PACKETS, packets.len() as u32), (FIRST, HEAD as u32)] {
            block[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        for (seconds, nanoseconds, data, length) in packets {
            let whole = (OFFSET + data.len()).next_multiple_of(8);
            let mut one = vec![0; whole];
            let words = [whole as u32, *seconds, *nanoseconds, data.len() as u32, *length];
            for (at, word) in words.into_iter().enumerate() {
                one[at * 4..at * 4 + 4].copy_from_slice(&word.to_ne_bytes());
            }
            one[24..26].copy_from_slice(&(OFFSET as u16).to_ne_bytes());
            one[OFFSET..OFFSET + data.len()].copy_from_slice(data);
            block.extend(one);
        }
        let length = block.len() as u32;
        block[LENGTH..LENGTH + 4].copy_from_slice(&length.to_ne_bytes());
        block
    }

    #[test]
    fn a_block_is_its_packets_with_their_times_and_lengths() {
        let mut found = Vec::new();
        let block = block(&[(5, 7, b"one", 3), (6, 0, b"cut", 900)]);
        let seen = packets(&block, &mut |packet| found.push((packet.ns, packet.data.to_vec(), packet.length)));
        assert_eq!(seen, 2);
        assert_eq!(found, [(5_000_000_007, b"one".to_vec(), 3), (6_000_000_000, b"cut".to_vec(), 900)]);
    }

    #[test]
    fn a_block_that_makes_no_sense_ends_where_it_does() {
        let mut block = block(&[(5, 7, b"one", 3), (6, 0, b"two", 3)]);
        block[PACKETS..PACKETS + 4].copy_from_slice(&9_u32.to_ne_bytes());
        assert_eq!(packets(&block, &mut |_| {}), 2);
        block[FIRST..FIRST + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(packets(&block, &mut |_| {}), 0);
        assert_eq!(packets(&[], &mut |_| {}), 0);
    }
}
