//! Captures with known calls: messages of NFS in streams, cut anywhere, then reordered, repeated and lost as is asked.
//!
//! The fact that constrains it: what is known of a call does not come from the decoder. Times are those at which its bytes
//! lie in the file, by a model that walks over single bytes.

#![allow(dead_code, dropping_references)] // each test uses a part of it; closures give nothing

pub(crate) mod calls;
pub(crate) mod file;
pub(crate) mod wire;
pub(crate) mod xdr;

pub(crate) use calls::{Known, Protocol};
pub(crate) use file::Format;
pub(crate) use wire::{Damage, Packet};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What is generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) protocol: Protocol,
    pub(crate) calls: usize,
    /// Bytes of a read or write.
    pub(crate) transfer: usize,
    /// Longest segment; the shortest is 1 if they are cut anywhere.
    pub(crate) segment: usize,
    pub(crate) is_cut_anywhere: bool,
    /// But not in the first bytes of a fragment of a record.
    pub(crate) keeps_markers: bool,
    /// Longest fragment of a record.
    pub(crate) fragment: usize,
    /// One call in so many is sent again by RPC; 0 none.
    pub(crate) again_one_in: u32,
    pub is_ipv6: bool,
    pub(crate) damage: Damage,
}

impl World {
    pub(crate) fn new(seed: u64, protocol: Protocol, calls: usize) -> Self {
        Self {
            seed,
            protocol,
            calls,
            transfer: 8192,
            segment: 1448,
            is_cut_anywhere: true,
            keeps_markers: false,
            fragment: 1 << 30,
            again_one_in: 0,
            is_ipv6: false,
            damage: Damage::default(),
        }
    }

    /// The packets in the order in which they were captured, and what is known of the calls.
    pub(crate) fn make(&self) -> (Vec<Packet>, Vec<Known>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut known = calls::make(self, &mut random);
        let mut packets = wire::send(self, &mut known, &mut random);
        wire::damage(&mut packets, &self.damage, &mut random);
        wire::acknowledge(&mut packets);
        wire::settle(&packets, &mut known);
        (packets, known)
    }
}

pub(crate) fn chance(random: &mut Xoshiro256PlusPlus, one_in: u32) -> bool {
    one_in > 0 && random.random_range(0..one_in) == 0
}
