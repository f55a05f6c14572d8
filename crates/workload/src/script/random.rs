//! pgbench's random numbers: the same draws for the same seed, from PostgreSQL 15.
//!
//! The generator is xoroshiro128** seeded through SplitMix64 (Blackman and Vigna). One base generator, seeded with the
//! run's seed, gives the seeds of all others, in this order: one for each client's random functions, one word for the
//! hash functions' `default_seed` unless that is defined, then for each thread three: choice of scripts, schedule,
//! sampling. Checked by what pgbench 15.18 sent to its server.
//!
//! Logarithm, exponential, power and sine are those of the C library, as pgbench's are. On x86-64 every step rounds as
//! it does there; a pgbench whose compiler fuses multiplication and addition (as on aarch64) may differ in the last
//! bit, and so, rarely, in a draw.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoroshiro128StarStar;
use std::f64::consts::PI;
use std::hint::black_box;

/// Bits of a double's fraction; pgbench takes so many of a word.
const FRACTION_BITS: u32 = 52;
/// Generators that pgbench seeds for a thread.
const GENERATORS_OF_A_THREAD: u64 = 3;

/// One stream of draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Generator(Xoroshiro128StarStar);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoroshiro128StarStar::seed_from_u64(seed))
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of `0..=most`, by cutting words to the bits that `most` has and rejecting what is above. Draws nothing
    /// for 0.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let excess = most.leading_zeros();
        loop {
            let candidate = self.word() >> excess;
            if candidate <= most {
                return candidate;
            }
        }
    }

    /// A number of `low..=high`.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.up_to(high.wrapping_sub(low) as u64) as i64)
    }

    /// A number of [0, 1).
    fn fraction(&mut self) -> f64 {
        (self.word() >> (u64::BITS - FRACTION_BITS)) as f64 / (1_u64 << FRACTION_BITS) as f64
    }

    /// A number of (0, 1].
    fn positive_fraction(&mut self) -> f64 {
        1.0 - self.fraction()
    }

    /// An exponential distribution cut at `parameter` times its mean, scaled to `low..=high`; `parameter` above 0.
    pub(super) fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = self.positive_fraction();
        let place = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scaled(low, high, place)
    }

    /// A normal distribution cut at `parameter` standard deviations either side (Box and Muller), scaled to
    /// `low..=high`.
    pub(super) fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let deviation = loop {
            let (radius, angle) = (self.positive_fraction(), self.positive_fraction());
            let deviation = (-2.0 * radius.ln()).sqrt() * (2.0 * PI * angle).sin();
            if (-parameter..parameter).contains(&deviation) {
                break deviation;
            }
        };
        scaled(low, high, (deviation + parameter) / (parameter * 2.0))
    }

    /// A Zipf distribution with this exponent (above 1) over `low..=high`, by rejection (Devroye, Non-Uniform Random
    /// Variate Generation, 1986, chapter X.6). Draws nothing for a single value.
    pub(super) fn zipfian(&mut self, low: i64, high: i64, exponent: f64) -> i64 {
        let count = high - low + 1;
        if count <= 1 {
            return low;
        }
        // The base is hidden, else it becomes a call of `exp2`, which may round differently from pgbench's `pow`.
        let b = black_box(2.0_f64).powf(exponent - 1.0);
        loop {
            let (u, v) = (self.fraction(), self.fraction());
            let x = u.powf(-1.0 / (exponent - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(exponent - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return low - 1 + x as i64;
            }
        }
    }
}

/// `place` of [0, 1) among `low..=high`.
fn scaled(low: i64, high: i64, place: f64) -> i64 {
    low.wrapping_add(((high - low + 1) as f64 * place) as i64)
}

/// The seeds of a run.
#[derive(Clone, Debug)]
pub(super) struct Seeds {
    base: Generator,
    client_count: u32,
    draws_default: bool,
}

impl Seeds {
    /// For `client_count` clients; `draws_default` unless `default_seed` is defined from outside.
    pub(super) fn new(seed: u64, client_count: u32, draws_default: bool) -> Self {
        Self { base: Generator::new(seed), client_count, draws_default }
    }

    /// Word number `place` of the base generator.
    fn word(&self, place: u64) -> u64 {
        let mut base = self.base.clone();
        (0..=place).fold(0, |_, _| base.word())
    }

    /// The hash functions' seed, if it is drawn.
    pub(super) fn default_seed(&self) -> Option<i64> {
        self.draws_default.then(|| self.word(self.client_count.into()) as i64)
    }

    /// What the random functions of client `number` draw from.
    pub(super) fn functions(&self, number: u32) -> Generator {
        // A client beyond those that were announced takes what would seed its thread's schedule, which nothing here
        // uses.
        let is_announced = number < self.client_count;
        Generator::new(self.word(if is_announced { number.into() } else { self.of_thread(number) + 1 }))
    }

    /// What the choice of scripts of client `number` draws from, with a thread for every client.
    pub(super) fn choice(&self, number: u32) -> Generator {
        Generator::new(self.word(self.of_thread(number)))
    }

    /// Where the words of thread `number` begin.
    fn of_thread(&self, number: u32) -> u64 {
        u64::from(self.client_count) + u64::from(self.draws_default) + GENERATORS_OF_A_THREAD * u64::from(number)
    }
}
