//! pgbench's hash functions and pseudo-random permutation, equal to those of PostgreSQL 15.

use super::random::Generator;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const MURMUR_FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR_SHIFT: u32 = 47;
const PERMUTATION_ROUNDS: u32 = 6;

/// FNV-1a (Fowler, Noll and Vo) over the eight bytes of `value`, lowest first; the seed changes the starting value.
pub(super) fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = FNV_OFFSET ^ seed as u64;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    value.to_le_bytes().into_iter().fold(start, step) as i64
}

/// MurmurHash2 (Appleby, the 64-bit variant) of the one word `value`.
pub(super) fn murmur2(value: i64, seed: i64) -> i64 {
    let fold = |word: u64| word ^ (word >> MURMUR_SHIFT);
    let length = (size_of::<u64>() as u64).wrapping_mul(MURMUR_FACTOR);
    let word = fold((value as u64).wrapping_mul(MURMUR_FACTOR)).wrapping_mul(MURMUR_FACTOR);
    let hash = (seed as u64 ^ length ^ word).wrapping_mul(MURMUR_FACTOR);
    fold(fold(hash).wrapping_mul(MURMUR_FACTOR)) as i64
}

/// Where `value` (modulo `size`) goes under a permutation of 0..`size` that `seed` picks; `size` above 0.
///
/// Each round scrambles the lower and then the upper values, as many as the largest power of two in `size` (an odd
/// factor, an exclusive or, a rotation of its bits by one), and then turns the whole circle by an offset.
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let bits = size.ilog2();
    let mask = (1 << bits) - 1;
    let mut generator = Generator::new(seed as u64);
    let scrambled = |value: u64, generator: &mut Generator| {
        let (factor, change) = ((generator.word() & mask) | 1, generator.word() & mask);
        if value > mask {
            return value;
        }
        let mixed = (value.wrapping_mul(factor) ^ change) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    let mut place = value as u64 % size;
    for _ in 0..PERMUTATION_ROUNDS {
        place = scrambled(place, &mut generator);
        place = size - 1 - scrambled(size - 1 - place, &mut generator);
        place = (place + generator.up_to(size - 1)) % size;
    }
    place as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_bijections() {
        for size in [1, 2, 3, 7, 64, 100, 1000] {
            let mut places: Vec<i64> = (0..size).map(|value| permute(value, size, 42)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..size).collect::<Vec<_>>());
        }
    }
}
