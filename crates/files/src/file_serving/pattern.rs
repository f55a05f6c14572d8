//! The bytes that lines write: a function of client, pass, line and place in the file.
//!
//! The fact that constrains it: what is measured is the file system, so a byte may cost no more than a copy of it does.
//! There is one table of random bytes; what a line writes is the table from a place that is the line's own, with a
//! word that is its own, too, by exclusive or. So no two lines of any pass have bytes in common but by chance, and what
//! a file system compresses or stores once for several finds nothing.

use super::script::HOLE;
use plimsoll_keys::Words;

/// Bytes after which the table repeats.
const PERIOD: usize = 256 * 1024;
/// Places lie this far apart, so that copies begin on a boundary.
const STEP: usize = 16;
/// How many places there are.
const PLACES: u64 = (PERIOD / STEP) as u64;
/// Odd, so that each of [`PLACES`] lines in a row has a place of its own.
const STRIDE: u64 = 0x9e37_79b9;

/// The table, of all clients.
#[derive(Debug)]
pub(super) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    /// One from which at most `bytes_max` are written or read at once.
    pub(super) fn new(seed: u64, bytes_max: usize) -> Self {
        let words = Words::new(seed, u64::MAX, 0);
        let mut bytes: Vec<u8> = (0..(PERIOD / 8) as u64).flat_map(|place| words.word(place).to_le_bytes()).collect();
        let more = bytes_max.max(STEP);
        bytes.reserve_exact(more);
        for at in 0..more {
            bytes.push(bytes[at]);
        }
        Self { bytes }
    }
}

/// What one client writes in one pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    first: u64,
    words: Words,
}

impl Hand {
    /// That of `client` in its pass number `pass` over a script of `lines`.
    pub(super) fn new(seed: u64, client: u32, pass: u64, lines: usize) -> Self {
        let own = Words::new(seed, u64::from(client), 0).word(0);
        let first = own.wrapping_add(pass.wrapping_mul(lines as u64 | 1));
        Self { first, words: Words::new(seed, u64::from(client) + 1, pass) }
    }

    /// Where in the table the bytes come from that line `writer` writes at `offset`, and the line's word, turned so that
    /// its first byte is that of the first one.
    #[inline]
    fn source<'p>(&self, pattern: &'p Pattern, writer: u32, offset: u64, size: usize) -> (&'p [u8], u64) {
        let place = self.first.wrapping_add(u64::from(writer)).wrapping_mul(STRIDE) % PLACES;
        let start = (place as usize * STEP + (offset % PERIOD as u64) as usize) % PERIOD;
        let word = self.words.word(u64::from(writer)).rotate_right(8 * (offset % 8) as u32);
        (&pattern.bytes[start..start + size], word)
    }

    /// Makes `bytes` what line `writer` writes at `offset`.
    #[inline]
    pub(super) fn write(&self, pattern: &Pattern, writer: u32, offset: u64, bytes: &mut [u8]) {
        let (table, word) = self.source(pattern, writer, offset, bytes.len());
        let ((words, rest), (of_words, of_rest)) = (bytes.as_chunks_mut::<8>(), table.as_chunks::<8>());
        for (into, from) in words.iter_mut().zip(of_words) {
            *into = (u64::from_le_bytes(*from) ^ word).to_le_bytes();
        }
        for ((into, from), of_word) in rest.iter_mut().zip(of_rest).zip(word.to_le_bytes()) {
            *into = from ^ of_word;
        }
    }

    /// Whether `found`, read at `offset`, is what line `writer` wrote there, or zeros where that is [`HOLE`].
    #[inline]
    pub(super) fn agrees(&self, pattern: &Pattern, writer: u32, offset: u64, found: &[u8]) -> bool {
        match writer {
            HOLE => found.iter().all(|byte| *byte == 0),
            writer => {
                let (table, word) = self.source(pattern, writer, offset, found.len());
                let ((words, rest), (of_words, of_rest)) = (found.as_chunks::<8>(), table.as_chunks::<8>());
                // All are looked at, whatever the ones before were, so that many are compared at once.
                let differs = words.iter().zip(of_words).fold(0, |differs, (one, other)| {
                    differs | (u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other) ^ word)
                });
                let rest = rest.iter().zip(of_rest).zip(word.to_le_bytes());
                differs == 0 && rest.into_iter().all(|((one, other), of_word)| *one == other ^ of_word)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(hand: &Hand, pattern: &Pattern, writer: u32, offset: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        hand.write(pattern, writer, offset, &mut bytes);
        bytes
    }

    #[test]
    fn bytes_are_a_function_of_client_pass_line_and_place() {
        let pattern = Pattern::new(1, 65_536);
        let hand = Hand::new(1, 3, 2, 1_000);
        let whole = written(&hand, &pattern, 17, 4_096, 65_536);
        assert!(hand.agrees(&pattern, 17, 4_096, &whole));
        assert!(hand.agrees(&pattern, 17, 4_096 + 999, &whole[999..2_000]), "any part of it is known by its place");
        let mut damaged = whole[999..2_000].to_vec();
        for at in 0..damaged.len() {
            damaged[at] ^= 16;
            assert!(!hand.agrees(&pattern, 17, 4_096 + 999, &damaged), "byte {at}");
            damaged[at] ^= 16;
        }
        let wrong = [
            hand.agrees(&pattern, 18, 4_096, &whole),
            hand.agrees(&pattern, 17, 8_192, &whole),
            Hand::new(1, 4, 2, 1_000).agrees(&pattern, 17, 4_096, &whole),
            Hand::new(1, 3, 3, 1_000).agrees(&pattern, 17, 4_096, &whole),
            Hand::new(2, 3, 2, 1_000).agrees(&pattern, 17, 4_096, &whole),
            hand.agrees(&pattern, HOLE, 4_096, &whole),
        ];
        assert_eq!(wrong, [false; 6]);
        assert!(hand.agrees(&pattern, HOLE, 0, &[0; 100]));
    }

    #[test]
    fn what_another_line_wrote_differs_nearly_everywhere() {
        let pattern = Pattern::new(1, 4_096);
        let hand = Hand::new(1, 1, 0, 500_000);
        let ours = written(&hand, &pattern, 20_000, 0, 4_096);
        // Those that are a round of places away have their bytes from the same one of the table.
        for other in (20_001 - PLACES as u32..20_000).step_by(97).chain([20_000 + PLACES as u32]) {
            let theirs = written(&hand, &pattern, other, 0, 4_096);
            let same = ours.iter().zip(&theirs).filter(|(one, other)| one == other).count();
            assert!(same < 60, "line {other}: {same} bytes of 4096 are the same by chance");
        }
    }

    #[test]
    fn the_table_repeats_beyond_its_period() {
        let (pattern, hand) = (Pattern::new(5, 100_000), Hand::new(5, 0, 0, 10));
        let whole = written(&hand, &pattern, 0, 0, 100_000);
        let far = written(&hand, &pattern, 0, 3 * PERIOD as u64, 100_000);
        assert_eq!(whole, far);
    }
}
