//! Files of captures, pcap and pcapng: packet after packet.
//!
//! The fact that constrains it: a file is read once, in order, through one buffer. A file that ends within a packet or holds
//! nonsense from some byte on gives what came before that, and says so.

use crate::link::LinkType;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};
use std::io::{self, Read};

/// Most of what one packet, or another block of the file, may be.
const BLOCK_BYTES_MAX: usize = 32 << 20;
const BUFFER_BYTES: usize = 1 << 20;
/// Interfaces of a section; those beyond are taken for a sign of nonsense.
const INTERFACES_MAX: usize = 1 << 16;
const NS: i128 = 1_000_000_000;

/// Why a capture could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Not a format that is known here.
    #[error("neither pcap nor pcapng")]
    NotACapture,
    /// Nothing in it.
    #[error("empty")]
    Empty,
    /// The system refuses the bytes.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// How the file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Behind its last packet.
    Whole,
    /// Within a packet: whoever captured was stopped, or the file was cut.
    Cut,
    /// What follows this many bytes makes no sense.
    Damaged {
        /// Bytes before that.
        at_byte: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// A packet as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub ns: i64,
    /// What kind of link it was seen on.
    pub link: LinkType,
    /// The bytes that the file has of it.
    pub data: &'a [u8],
    /// Its length on the wire.
    pub length: usize,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    snap_bytes: usize,
    units_a_second: i128,
    offset_s: i64,
}

impl Interface {
    fn ns(&self, ticks: u64) -> i64 {
        let ns = i128::from(ticks) * NS / self.units_a_second + i128::from(self.offset_s) * NS;
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
}

/// Units a second of an interface's clock: 10^n, or 2^n where the highest bit is set. None where no clock is like that.
fn units_a_second(resolution: u8) -> Option<i128> {
    match resolution {
        0..=19 => Some(10_i128.pow(u32::from(resolution))),
        128..=191 => Some(1_i128 << (resolution & 0x7f)),
        _ => None,
    }
}

fn interface(block: &InterfaceDescriptionBlock<'_>, is_big_endian: bool) -> Result<Interface, String> {
    let clock = units_a_second(block.if_tsresol)
        .ok_or_else(|| format!("an interface's clock has the resolution {}", block.if_tsresol))?;
    let offset = block.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
    // The library reads the offset as little-endian in every file.
    let offset_s = offset
        .and_then(|option| option.value.get(..8)?.try_into().ok())
        .map_or(0, |bytes| if is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) });
    let snap_bytes = if block.snaplen == 0 { usize::MAX } else { block.snaplen as usize };
    Ok(Interface { link: LinkType::of(block.linktype.0), snap_bytes, units_a_second: clock, offset_s })
}

/// The packets of a capture.
pub struct Packets<'r> {
    reader: Box<dyn PcapReaderIterator + Send + 'r>,
    interfaces: Vec<Interface>,
    is_big_endian: bool,
    consumed: u64,
    next_offset: usize,
}

impl<'r> Packets<'r> {
    /// Opens a capture.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub fn open(file: impl Read + Send + 'r) -> Result<Self, CaptureError> {
        match create_reader(BUFFER_BYTES, Whole(file)) {
            Ok(reader) => {
                Ok(Self { reader, interfaces: Vec::new(), is_big_endian: false, consumed: 0, next_offset: 0 })
            }
            Err(PcapError::Eof) => Err(CaptureError::Empty),
            Err(PcapError::ReadError) => Err(CaptureError::Io(io::Error::other("it cannot be read"))),
            Err(_) => Err(CaptureError::NotACapture),
        }
    }

    /// Hands each packet to `each`, and tells how the file ended.
    ///
    /// # Errors
    /// When `each` refuses one, or the system the file's bytes.
    pub fn for_each<E: From<io::Error>>(
        mut self,
        mut each: impl FnMut(Packet<'_>) -> Result<(), E>,
    ) -> Result<Ended, E> {
        loop {
            self.reader.consume(self.next_offset);
            self.consumed += self.next_offset as u64;
            self.next_offset = 0;
            let refused = match self.reader.next() {
                Ok((offset, block)) => {
                    self.next_offset = offset;
                    match taken(&block, &mut self.interfaces, &mut self.is_big_endian) {
                        Ok(None) => {}
                        Ok(Some(packet)) => each(packet)?,
                        Err(reason) => return Ok(Ended::Damaged { at_byte: self.consumed, reason }),
                    }
                    continue;
                }
                Err(PcapError::Eof) => return Ok(Ended::Whole),
                Err(PcapError::UnexpectedEof) => return Ok(Ended::Cut),
                Err(PcapError::Incomplete(_)) => None,
                Err(PcapError::BufferTooSmall) => Some(()),
                Err(error) => {
                    let reason = format!("{error:?}").chars().take_while(|&c| c != '(').collect();
                    return Ok(Ended::Damaged { at_byte: self.consumed, reason });
                }
            };
            if refused.is_some() && !self.grow() {
                let reason = format!("a packet or block of more than {BLOCK_BYTES_MAX} bytes");
                return Ok(Ended::Damaged { at_byte: self.consumed, reason });
            }
            self.reader.refill().map_err(|_| io::Error::other("the capture cannot be read on"))?;
        }
    }

    fn grow(&mut self) -> bool {
        let now = self.reader.data().len().max(BUFFER_BYTES);
        now < BLOCK_BYTES_MAX && self.reader.grow((now * 2).min(2 * BLOCK_BYTES_MAX))
    }
}

/// The packet of a block, if it is one.
fn taken<'b>(
    block: &'b PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    is_big_endian: &mut bool,
) -> Result<Option<Packet<'b>>, String> {
    let of = |interfaces: &[Interface], number: u32| {
        let known = interfaces.get(number as usize).copied();
        known.ok_or_else(|| format!("a packet of interface {number}, of which there is no description"))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let units_a_second = if header.is_nanosecond_precision() { NS } else { 1_000_000 };
            // The upper bits say whether frames end with a check sequence.
            let link = LinkType::of(header.network.0 & 0xffff);
            interfaces.push(Interface { link, snap_bytes: usize::MAX, units_a_second, offset_s: 0 });
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = of(interfaces, 0)?;
            let fraction = i128::from(packet.ts_usec) * NS / interface.units_a_second;
            let ns = i64::try_from(i128::from(packet.ts_sec) * NS + fraction).unwrap_or(i64::MAX);
            return Ok(Some(whole(ns, interface.link, packet.data, packet.origlen)));
        }
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            interfaces.clear();
            *is_big_endian = section.big_endian();
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() >= INTERFACES_MAX {
                return Err("more interfaces than a capture has".to_owned());
            }
            interfaces.push(interface(description, *is_big_endian)?);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = of(interfaces, packet.if_id)?;
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            // The block has padding behind it.
            let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            return Ok(Some(whole(interface.ns(ticks), interface.link, data, packet.origlen)));
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            // It has no time: what is decoded of it would have none.
            let interface = of(interfaces, 0)?;
            let length = (packet.origlen as usize).min(interface.snap_bytes).min(packet.data.len());
            return Ok(Some(whole(0, interface.link, &packet.data[..length], packet.origlen)));
        }
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

fn whole(ns: i64, link: LinkType, data: &[u8], length: u32) -> Packet<'_> {
    Packet { ns, link, data, length: (length as usize).max(data.len()) }
}

/// Reads as much as is asked for, so that a pipe that gives a few bytes at a time does not look like its end.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
