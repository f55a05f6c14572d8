//! `nfs_decode_rate FILE MEGABYTES`: makes a capture of that size if there is none, and says how fast it is decoded.
//!
//! The file is read once before, so that a disk is not what is measured. `benches/nfs_decode.py` runs it.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/generator/mod.rs"]
mod generator;

use generator::{Format, Protocol, World, file};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

/// Calls of a capture that is made at once; more are made one capture after the other, later in time.
const CALLS: usize = 20_000;

fn make(path: &str, bytes: u64, protocol: Protocol) {
    let mut out = std::io::BufWriter::new(File::create(path).unwrap());
    let (mut written, mut seed, mut later_ns) = (0, 1, 0);
    while written < bytes {
        let world = World { is_cut_anywhere: false, ..World::new(seed, protocol, CALLS) };
        let (mut packets, _) = world.make();
        packets.iter_mut().for_each(|packet| packet.ns += later_ns);
        later_ns += 10_000_000_000;
        let capture = file::write(&packets, &Format::PLAIN);
        // One header is enough.
        let from = if seed == 1 { 0 } else { 24 };
        out.write_all(&capture[from..]).unwrap();
        written += (capture.len() - from) as u64;
        seed += 1;
    }
    out.flush().unwrap();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, megabytes, protocol] = &arguments[..] else {
        eprintln!("nfs_decode_rate FILE MEGABYTES nfs3|nfs4");
        std::process::exit(2);
    };
    let protocol = if protocol == "nfs3" { Protocol::Nfs3 } else { Protocol::Nfs4(1) };
    if !std::fs::exists(path).unwrap() {
        make(path, megabytes.parse::<u64>().unwrap() * 1_000_000, protocol);
    }
    let mut buffer = vec![0; 1 << 20];
    let mut warmed = File::open(path).unwrap();
    while warmed.read(&mut buffer).unwrap() > 0 {}
    let bytes = std::fs::metadata(path).unwrap().len();
    let started = Instant::now();
    let mut calls = 0_u64;
    let (decoder, ended) = plimsoll_nfs::decode(File::open(path).unwrap(), |_| {
        calls += 1;
        Ok(())
    })
    .unwrap();
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned();
    let totals = decoder.totals();
    println!(
        "{{\"bytes\": {bytes}, \"seconds\": {seconds:.3}, \"mb_per_s\": {:.1}, \"calls\": {calls}, \"packets\": {}, \
         \"unanswered\": {}, \"peak_resident\": \"{resident}\", \"ended\": \"{ended:?}\"}}",
        bytes as f64 / 1e6 / seconds,
        totals.packets,
        totals.unanswered,
    );
}
