//! Nothing that a file may hold makes the decoder panic, hang or hold more than its bounds: captures damaged at random.
//!
//! A few seconds here; `FUZZ_SECONDS=600 cargo test --release -p plimsoll-nfs --test fuzz` for longer. The seed of what
//! fails is printed.

#![allow(clippy::unwrap_used, missing_docs)]

mod generator;

use generator::{Damage, Format, Protocol, World, file};
use plimsoll_nfs::decode;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};

/// A small capture of any kind.
fn capture(random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let protocols = [Protocol::Nfs3, Protocol::Nfs3Udp, Protocol::Nfs4(0), Protocol::Nfs4(1), Protocol::Nfs4(2)];
    let damage = Damage {
        repeated_one_in: random.random_range(0..9),
        moved_one_in: random.random_range(0..9),
        moved_by: random.random_range(1..80),
        lost_one_in: random.random_range(0..30),
    };
    let world = World {
        transfer: random.random_range(8..9000),
        segment: [5, 200, 1448, 30_000][random.random_range(0..4)],
        fragment: [9, 600, 1 << 30][random.random_range(0..3)],
        again_one_in: random.random_range(0..5),
        damage,
        ..World::new(random.random(), protocols[random.random_range(0..5)], random.random_range(1..25))
    };
    let format = Format {
        is_ng: random.random(),
        is_big_endian: random.random(),
        is_ns: random.random(),
        link: [1, 101, 113, 276][random.random_range(0..4)],
        is_vlan: random.random(),
        is_ipv6: random.random(),
        snap: [100, 300, 1 << 18][random.random_range(0..3)],
    };
    file::write(&world.make().0, &format)
}

/// Changes bytes as files are changed by faults, and as somebody would who means ill.
fn damaged(bytes: &mut Vec<u8>, random: &mut Xoshiro256PlusPlus) {
    for _ in 0..random.random_range(0..40) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..200)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes[at..end.min(at + 4)].fill([0, 0xff, 0x7f, 0x80][random.random_range(0..4)]),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => bytes[at..end].iter_mut().for_each(|byte| *byte = random.random()),
            _ if random.random_range(0..10) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
}

#[test]
fn damaged_captures_are_decoded_as_far_as_they_go() {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(3, |text| text.parse().unwrap());
    let first: u64 =
        std::env::var("FUZZ_SEED").map_or_else(|_| std::process::id().into(), |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut calls, mut captures) = (first, 0_u64, 0_u64);
    while Instant::now() < end {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut bytes = capture(&mut random);
        damaged(&mut bytes, &mut random);
        let started = Instant::now();
        let decoded = std::panic::catch_unwind(|| {
            let mut found = 0;
            let outcome = decode(&bytes[..], |call| {
                assert!(call.sent_ns <= call.sent_last_ns || call.sent_last_ns >= 0);
                found += 1;
                Ok(())
            });
            if let Ok((decoder, _)) = outcome {
                let totals = decoder.totals();
                assert_eq!(totals.calls, found);
                assert_eq!(totals.calls, totals.answered + totals.unanswered);
                assert!(decoder.files() as u64 <= 2 * totals.calls + 2 * totals.packets);
            }
            found
        });
        calls += decoded.unwrap_or_else(|_| panic!("FUZZ_SEED={seed} fails"));
        assert!(started.elapsed() < Duration::from_secs(20), "FUZZ_SEED={seed} takes too long");
        seed = seed.wrapping_add(1);
        captures += 1;
    }
    println!("{captures} captures from FUZZ_SEED={first}, {calls} calls");
    assert!(calls > captures, "what is damaged is not always lost: {calls} calls of {captures} captures");
}
