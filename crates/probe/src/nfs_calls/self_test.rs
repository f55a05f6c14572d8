//! The known stimulus before each segment: a conversation of NFS 3 by hand over the loopback device, with prime numbers of
//! calls and replies of known lengths, each held back for a known time. What is not found is not believed.

use super::ring::Ring;
use super::route::interface_towards;
use crate::Refusal;
use crate::self_test::{equal, until_all_hold};
use plimsoll_nfs::{Call, Decoder};
use plimsoll_record::Check;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ATTRIBUTES: u32 = 7;
const READS: u32 = 5;
pub(super) const CALLS: u32 = ATTRIBUTES + READS;
const READ_BYTES: u32 = 8192;
const HELD_BACK: Duration = Duration::from_millis(2);
const TRIES: u32 = 5;
/// Nothing of it lasts: what is not there by then does not come.
const PATIENCE: Duration = Duration::from_secs(5);

const GETATTR: u32 = 1;
const READ: u32 = 6;
const LAST: u32 = 1 << 31;

fn record(words: &[u32], data: usize) -> Vec<u8> {
    let length = (words.len() * 4 + data) as u32;
    let mut bytes: Vec<u8> =
        std::iter::once(&(LAST | length)).chain(words).flat_map(|word| word.to_be_bytes()).collect();
    bytes.resize(bytes.len() + data, 0x5a);
    bytes
}

fn call(xid: u32, procedure: u32) -> Vec<u8> {
    let mut words = vec![xid, 0, 2, 100_003, 3, procedure, 0, 0, 0, 0, 4, 0x706c_696d];
    if procedure == READ {
        words.extend([0, 0, READ_BYTES]);
    }
    record(&words, 0)
}

fn reply(xid: u32, procedure: u32) -> Vec<u8> {
    let performed = [xid, 1, 0, 0, 0, 0];
    match procedure {
        READ => record(&[&performed[..], &[0, 0, READ_BYTES, 1, READ_BYTES]].concat(), READ_BYTES as usize),
        _ => record(&[&performed[..], &[0]].concat(), 84),
    }
}

fn procedure_of(xid: u32) -> u32 {
    if xid < ATTRIBUTES { GETATTR } else { READ }
}

/// Answers each call after a while.
fn serve(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    for xid in 0..CALLS {
        let mut asked = vec![0; call(xid, procedure_of(xid)).len()];
        stream.read_exact(&mut asked)?;
        std::thread::sleep(HELD_BACK);
        stream.write_all(&reply(xid, procedure_of(xid)))?;
    }
    Ok(())
}

pub(super) fn converse(listener: &TcpListener) -> io::Result<()> {
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener));
        for xid in 0..CALLS {
            stream.write_all(&call(xid, procedure_of(xid)))?;
            let mut answer = vec![0; reply(xid, procedure_of(xid)).len()];
            stream.read_exact(&mut answer)?;
        }
        server.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
    })
}

fn try_once() -> Result<Vec<Check>, Refusal> {
    let failed = |error: io::Error| Refusal::from(format!("the self-test over the loopback device: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let mut ring = Ring::open(&[port])?;
    ring.bind(interface_towards(IpAddr::V4(Ipv4Addr::LOCALHOST)).map_err(failed)?)?;
    converse(&listener).map_err(failed)?;
    let counted = ring.counted().map_err(failed)?;
    let (mut decoder, since) = (Decoder::default(), Instant::now());
    while ring.seen < counted.packets - counted.dropped && since.elapsed() < PATIENCE {
        if !ring.take(|packet| decoder.packet(packet)) {
            Ring::wait(std::slice::from_ref(&ring), PATIENCE);
        }
    }
    decoder.finish();
    let mut calls: Vec<Call> = Vec::new();
    decoder
        .hand_out(&mut |call| {
            calls.push(call.clone());
            Ok(())
        })
        .map_err(failed)?;
    let sooner = |call: &&Call| call.reply_ns().is_none_or(|ns| ns < HELD_BACK.as_nanos() as i64);
    let read: u32 = calls.iter().filter_map(|call| call.reply).map(|reply| reply.answered_bytes).sum();
    Ok(vec![
        // The connection's end may have come after they were counted.
        equal("packets that are missing", 0, counted.packets.saturating_sub(ring.seen)),
        equal("calls", CALLS.into(), calls.len() as u64),
        equal(
            "of those without a reply, or answered sooner than the server did",
            0,
            calls.iter().filter(sooner).count() as u64,
        ),
        equal("bytes read", u64::from(READS * READ_BYTES), u64::from(read)),
    ])
}

/// Converses, and compares with what was seen of it.
pub(super) fn run() -> Result<Vec<Check>, Refusal> {
    until_all_hold(TRIES, try_once)
}
