//! Captures with known calls, decoded.

#![allow(clippy::unwrap_used, missing_docs)]

mod generator;

use generator::{Damage, Format, Known, Protocol, World, file};
use plimsoll_nfs::{Call, Decoder, Ended, decode};
use std::collections::HashMap;

fn decoded(bytes: &[u8]) -> (Decoder, Vec<Call>) {
    let mut calls = Vec::new();
    let (decoder, ended) = decode(bytes, |call| {
        calls.push(call.clone());
        Ok(())
    })
    .unwrap();
    assert_eq!(ended, Ended::Whole);
    (decoder, calls)
}

fn cut_to(ns: i64, unit: i64) -> i64 {
    ns / unit * unit
}

/// Every call of which the capture has every byte is there, with what is known of it; gives how many there were.
fn compare(world: &World, decoder: &Decoder, calls: &[Call], known: &[Known], unit: i64) -> usize {
    let by_xid: HashMap<u32, &Call> = calls.iter().map(|call| (call.xid, call)).collect();
    assert_eq!(by_xid.len(), calls.len(), "a number twice");
    let (mut whole, mut answered) = (0, 0);
    for one in known {
        let Some((first, last)) = one.sent else { continue };
        let call =
            by_xid.get(&one.xid).unwrap_or_else(|| panic!("{world:?}: {} {:x} is missing", one.operation, one.xid));
        let name = &decoder.operations()[call.operation as usize].name;
        let expected = match (one.operation, world.protocol) {
            ("CREATE", Protocol::Nfs4(_)) => "OPEN",
            (operation, _) => operation,
        };
        assert_eq!(name, expected);
        assert_eq!(call.asked_bytes, one.asked_bytes, "{expected}");
        assert_eq!(call.bytes as usize, one.call.len());
        assert_eq!((call.sent_ns, call.sent_last_ns), (cut_to(first, unit), cut_to(last, unit)), "{expected}");
        assert!(!call.is_partial, "{expected}");
        whole += 1;
        let Some((first, last)) = one.replied else { continue };
        let reply = call.reply.unwrap_or_else(|| panic!("{world:?}: {} {:x} has no reply", one.operation, one.xid));
        assert_eq!((reply.first_ns, reply.last_ns), (cut_to(first, unit), cut_to(last, unit)), "{expected}");
        assert_eq!((reply.status, reply.rpc_status), (one.status, 0), "{expected}");
        assert_eq!(reply.answered_bytes, one.answered_bytes, "{expected}");
        assert_eq!(reply.bytes as usize, one.reply.len());
        answered += 1;
    }
    let of_call = |call: &&Call| call.reply.is_some();
    assert!(calls.iter().filter(of_call).count() >= answered);
    whole
}

const PROTOCOLS: [Protocol; 5] =
    [Protocol::Nfs3, Protocol::Nfs3Udp, Protocol::Nfs4(0), Protocol::Nfs4(1), Protocol::Nfs4(2)];

fn all_of(world: &World, format: &Format) -> (Decoder, Vec<Call>, Vec<Known>) {
    let (packets, known) = world.make();
    let (decoder, calls) = decoded(&file::write(&packets, format));
    let unit = if format.is_ns { 1 } else { 1000 };
    let whole = compare(world, &decoder, &calls, &known, unit);
    assert_eq!(whole, known.iter().filter(|one| one.sent.is_some()).count());
    (decoder, calls, known)
}

#[test]
fn every_call_is_found_in_every_format_of_files_and_links() {
    for (place, (link, is_vlan)) in
        [(1, false), (1, true), (101, false), (113, false), (276, false)].into_iter().enumerate()
    {
        for bits in 0..16_u32 {
            let has = |bit: u32| bits & 1 << bit != 0;
            let format = Format {
                is_ng: has(0),
                is_big_endian: has(1),
                is_ns: has(2),
                is_ipv6: has(3),
                link,
                is_vlan,
                ..Format::PLAIN
            };
            let protocol = PROTOCOLS[(place + bits as usize) % PROTOCOLS.len()];
            let world = World { again_one_in: 7, ..World::new(u64::from(bits), protocol, 60) };
            let (decoder, calls, known) = all_of(&world, &format);
            assert_eq!(calls.len(), 60);
            let again: u32 = known.iter().map(|one| one.again).sum();
            assert!(again > 0);
            assert_eq!(decoder.totals().retransmissions, u64::from(again), "{format:?}");
            assert_eq!(calls.iter().map(|call| call.further_replies).sum::<u32>(), again);
            assert_eq!((decoder.totals().answered, decoder.totals().has_lost()), (60, false), "{format:?}");
        }
    }
}

#[test]
fn records_cut_anywhere_and_repeated_segments_change_nothing() {
    for seed in 0..40 {
        let protocol = PROTOCOLS[seed as usize % PROTOCOLS.len()];
        let world = World {
            fragment: [5, 100, 4096, 1 << 30][seed as usize % 4],
            segment: [3, 60, 1448, 65_000][seed as usize / 4 % 4],
            transfer: 5000,
            damage: Damage { repeated_one_in: 5, ..Damage::default() },
            ..World::new(seed, protocol, 40)
        };
        let (decoder, calls, _) = all_of(&world, &Format::PLAIN);
        assert_eq!(calls.len(), 40);
        if protocol != Protocol::Nfs3Udp {
            assert!(decoder.totals().segments_again > 0);
            assert_eq!(decoder.totals().retransmissions, 0);
        }
        assert_eq!((decoder.totals().lost_bytes, decoder.totals().resynchronised), (0, 0));
    }
}

#[test]
fn reordered_segments_are_put_in_order_and_count_when_all_before_them_are_there() {
    for seed in 0..60 {
        let protocol = PROTOCOLS[seed as usize % PROTOCOLS.len()];
        let damage =
            Damage { moved_one_in: 4, moved_by: [2, 20, 60][seed as usize % 3], repeated_one_in: 20, lost_one_in: 0 };
        let world = World { damage, ..World::new(seed, protocol, 200) };
        let (packets, known) = world.make();
        let (decoder, calls) = decoded(&file::write(&packets, &Format::PLAIN));
        assert_eq!(decoder.totals().gaps, 0, "{world:?}");
        assert_eq!(calls.len(), 200, "{world:?}");
        if protocol != Protocol::Nfs3Udp {
            assert_eq!(decoder.totals().answered, 200, "{world:?}");
            compare(&world, &decoder, &calls, &known, 1);
            assert!(decoder.totals().segments_early > 0);
        }
    }
}

#[test]
fn after_lost_segments_the_next_record_is_found_and_nothing_is_invented() {
    for seed in 0..60 {
        let protocol = PROTOCOLS[seed as usize % PROTOCOLS.len()];
        let damage = Damage { lost_one_in: [20, 100, 5][seed as usize % 3], ..Damage::default() };
        let world = World { damage, segment: 1448, is_cut_anywhere: seed % 2 == 0, ..World::new(seed, protocol, 300) };
        let (packets, known) = world.make();
        let (decoder, calls) = decoded(&file::write(&packets, &Format::PLAIN));
        let of: HashMap<u32, &Known> = known.iter().map(|one| (one.xid, one)).collect();
        let by_xid: HashMap<u32, &Call> = calls.iter().map(|call| (call.xid, call)).collect();
        assert_eq!(by_xid.len(), calls.len());
        for call in &calls {
            let one = of.get(&call.xid).unwrap_or_else(|| panic!("{world:?}: {:x} was never called", call.xid));
            assert_eq!(call.bytes as usize, one.call.len());
            assert!(call.reply.is_none_or(|reply| reply.bytes as usize == one.reply.len()));
        }
        for one in known.iter().filter(|one| one.sent.is_some()) {
            let call =
                by_xid.get(&one.xid).unwrap_or_else(|| panic!("{world:?}: {} {:x} is missing", one.operation, one.xid));
            assert_eq!(call.asked_bytes, one.asked_bytes);
            if let Some((first, _)) = one.replied {
                let reply = call.reply.unwrap_or_else(|| panic!("{world:?}: {:x} has no reply", one.xid));
                assert_eq!((reply.first_ns, reply.answered_bytes), (first, one.answered_bytes));
            }
        }
        if packets.iter().any(|packet| packet.is_lost) && protocol != Protocol::Nfs3Udp {
            let lost: usize = packets.iter().filter(|packet| packet.is_lost).map(|packet| packet.data.len()).sum();
            let totals = decoder.totals();
            assert!(totals.gaps > 0 && totals.lost_bytes <= lost as u64, "{world:?} {totals:?}");
        }
    }
}

#[test]
fn of_packets_that_the_capture_cut_all_is_told_but_what_was_cut() {
    for protocol in [Protocol::Nfs3, Protocol::Nfs4(1)] {
        let world = World { is_cut_anywhere: false, segment: 64_000, ..World::new(3, protocol, 200) };
        let (packets, known) = world.make();
        let (decoder, calls) = decoded(&file::write(&packets, &Format { snap: 512, ..Format::PLAIN }));
        assert!(decoder.totals().packets_cut > 50);
        assert_eq!(decoder.totals().gaps, 0);
        let by_xid: HashMap<u32, &Call> = calls.iter().map(|call| (call.xid, call)).collect();
        let mut found = 0;
        for one in &known {
            let Some(call) = by_xid.get(&one.xid) else { continue };
            found += 1;
            assert_eq!(call.asked_bytes, one.asked_bytes);
            if let Some(reply) = call.reply {
                assert_eq!((reply.answered_bytes, reply.status), (one.answered_bytes, one.status));
            }
        }
        // Messages that share a packet with one before them are beyond its cut.
        assert!(found > 120, "{found}");
    }
}

#[test]
fn files_have_the_names_that_were_looked_up() {
    for protocol in [Protocol::Nfs3, Protocol::Nfs3Udp, Protocol::Nfs4(0), Protocol::Nfs4(2)] {
        let (decoder, calls, known) = all_of(&World::new(9, protocol, 400), &Format::PLAIN);
        let of: HashMap<u32, &Known> = known.iter().map(|one| (one.xid, one)).collect();
        let mut named = 0;
        for call in calls.iter().filter(|call| of[&call.xid].status == 0) {
            let name = decoder.named(call.file);
            if let Some(named_file) = name {
                assert_eq!(named_file.path, generator::calls::name(of[&call.xid].file));
                named += 1;
            }
        }
        assert!(named > 250, "{named}");
        assert_eq!(decoder.files(), 17);
    }
}

#[test]
fn a_connection_that_is_made_anew_between_the_same_ends_keeps_its_calls() {
    let world = World::new(5, Protocol::Nfs3, 30);
    let (packets, known) = world.make();
    // The last call's reply is lost with the connection; the call is sent again on a new one, and answered.
    let last = known.iter().max_by_key(|one| one.reply_at).unwrap();
    let end = last.reply_at.0;
    let mut packets: Vec<_> =
        packets.into_iter().filter(|packet| packet.side == 0 || packet.at + packet.data.len() <= end).collect();
    let after = packets.last().unwrap().ns + 1_000_000_000;
    let again = World { calls: 1, ..world }.make().0;
    for (place, mut packet) in again.into_iter().enumerate().take(2) {
        packet.ns = after + place as i64;
        packets.push(packet);
    }
    let marked = |message: &[u8]| [&((message.len() as u32) | 1 << 31).to_be_bytes(), message].concat();
    for (side, data) in [(0, marked(&last.call)), (1, marked(&last.reply))] {
        let ns = after + 1000 + side as i64 * 500;
        packets.push(generator::Packet {
            ns,
            side,
            at: 0,
            data,
            acknowledged: 0,
            is_syn: false,
            is_lost: false,
            is_udp: false,
        });
    }
    let (decoder, calls) = decoded(&file::write(&packets, &Format::PLAIN));
    assert_eq!((calls.len(), decoder.totals().unanswered, decoder.totals().retransmissions), (30, 0, 1));
    let call = calls.iter().find(|call| call.xid == last.xid).unwrap();
    assert_eq!(call.retransmissions, 1);
    assert_eq!(call.reply.unwrap().last_ns, after + 1500);
}
