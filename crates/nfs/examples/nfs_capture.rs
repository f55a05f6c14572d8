//! `nfs_capture FOLDER`: writes captures with known calls and a JSON line for each, for tests against other decoders.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/generator/mod.rs"]
mod generator;

use generator::{Damage, Format, Protocol, World, file};

fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).expect("nfs_capture FOLDER"));
    // tshark gives up some of the records whose marker or head is cut.
    let plain = |seed, protocol| World { again_one_in: 25, keeps_markers: true, ..World::new(seed, protocol, 400) };
    let whole = |seed, protocol| World { again_one_in: 0, ..plain(seed, protocol) };
    let moved = Damage { moved_one_in: 6, moved_by: 4, ..Damage::default() };
    let repeated = Damage { repeated_one_in: 8, ..Damage::default() };
    let lost = Damage { lost_one_in: 150, ..Damage::default() };
    let lossy = |seed, protocol| World { damage: lost, is_cut_anywhere: false, ..whole(seed, protocol) };
    let ng = Format { is_ng: true, ..Format::PLAIN };
    let captures = [
        ("nfs3", plain(1, Protocol::Nfs3), Format::PLAIN),
        ("nfs3-udp", World { transfer: 4096, ..whole(2, Protocol::Nfs3Udp) }, ng),
        ("nfs40", plain(3, Protocol::Nfs4(0)), Format { is_vlan: true, ..ng }),
        ("nfs41", plain(4, Protocol::Nfs4(1)), Format { is_ns: false, ..Format::PLAIN }),
        ("nfs42-cooked", whole(5, Protocol::Nfs4(2)), Format { link: 276, is_ipv6: true, ..ng }),
        ("nfs3-fragments", World { fragment: 700, segment: 300, ..whole(6, Protocol::Nfs3) }, Format::PLAIN),
        ("nfs40-repeated", World { damage: repeated, ..plain(11, Protocol::Nfs4(0)) }, Format::PLAIN),
        ("nfs42-repeated", World { damage: repeated, ..plain(12, Protocol::Nfs4(2)) }, ng),
        ("nfs3-moved", World { damage: moved, ..whole(7, Protocol::Nfs3) }, Format::PLAIN),
        ("nfs40-moved", World { damage: moved, ..whole(13, Protocol::Nfs4(0)) }, Format::PLAIN),
        ("nfs41-moved", World { damage: moved, ..whole(8, Protocol::Nfs4(1)) }, Format { is_big_endian: true, ..ng }),
        ("nfs42-moved", World { damage: moved, ..whole(14, Protocol::Nfs4(2)) }, ng),
        ("nfs3-lossy", lossy(9, Protocol::Nfs3), Format::PLAIN),
        ("nfs40-lossy", lossy(15, Protocol::Nfs4(0)), Format { is_vlan: true, ..Format::PLAIN }),
        ("nfs41-lossy", lossy(10, Protocol::Nfs4(1)), ng),
        ("nfs42-lossy", lossy(16, Protocol::Nfs4(2)), Format { link: 276, ..ng }),
    ];
    for (name, world, format) in captures {
        let (packets, known) = world.make();
        let path = folder.join(format!("{name}.pcap"));
        std::fs::write(&path, file::write(&packets, &format)).unwrap();
        let whole = known.iter().filter(|one| one.sent.is_some()).count();
        let answered = known.iter().filter(|one| one.sent.is_some() && one.replied.is_some()).count();
        let again: u32 = known.iter().map(|one| one.again).sum();
        println!("{{\"name\": \"{name}\", \"calls\": {whole}, \"answered\": {answered}, \"again\": {again}}}");
    }
}
