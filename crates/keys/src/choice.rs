//! Which of n keys a transaction touches: all alike, or by Zipf's law with the ranks scattered.

use crate::{Permutation, Words};
use rand_distr::{Distribution, Zipf};

/// A distribution over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Every key alike.
    Uniform,
    /// The key of rank r with a weight of r^-theta; theta above 0.
    Zipf {
        /// The exponent.
        theta: f64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf<f64>, Permutation),
}

/// Chooses among 0..n. With Zipf, rank 1 is not key 0: a seeded [`Permutation`] scatters the ranks, so that hot rows do not
/// share pages, as they would not in a real table.
#[derive(Clone, Copy, Debug)]
pub struct KeyChooser {
    size: u64,
    kind: Kind,
}

impl KeyChooser {
    /// A chooser among 0..`size` (1 or more) for `table` under `seed`. `None` if theta is not a number above 0.
    pub fn new(choice: Choice, seed: u64, table: u64, size: u64) -> Option<Self> {
        let kind = match choice {
            Choice::Uniform => Kind::Uniform,
            Choice::Zipf { theta } if theta > 0.0 && theta.is_finite() => {
                Kind::Zipf(Zipf::new(size as f64, theta).ok()?, Permutation::new(seed, table, size))
            }
            Choice::Zipf { .. } => return None,
        };
        Some(Self { size, kind })
    }

    /// The key, from 0, that `field` of `words` chooses.
    #[inline]
    pub fn choose(&self, words: &Words, field: u64) -> u64 {
        match &self.kind {
            Kind::Uniform => words.below(field, self.size),
            Kind::Zipf(zipf, permutation) => self.by_rank((zipf, permutation), words, field),
        }
    }

    fn by_rank(&self, (zipf, permutation): (&Zipf<f64>, &Permutation), words: &Words, field: u64) -> u64 {
        let rank = zipf.sample(&mut words.stream(field)) as u64;
        permutation.place(rank.clamp(1, self.size) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(choice: Choice, size: u64, draws: u64) -> Vec<u64> {
        let chooser = KeyChooser::new(choice, 21, 4, size).unwrap();
        let mut counts = vec![0; size as usize];
        (0..draws).for_each(|i| counts[chooser.choose(&Words::new(21, 99, i), 1) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_has_its_known_frequencies() {
        let (size, draws) = (1000u64, 200_000u64);
        for theta in [0.8, 1.0, 1.2] {
            let counts = counts(Choice::Zipf { theta }, size, draws);
            let harmonic: f64 = (1..=size).map(|r| (r as f64).powf(-theta)).sum();
            let permutation = Permutation::new(21, 4, size);
            for rank in [1u64, 2, 3, 10, 50] {
                let expected = draws as f64 * (rank as f64).powf(-theta) / harmonic;
                let found = counts[permutation.place(rank - 1) as usize] as f64;
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt(),
                    "theta {theta} rank {rank}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn uniform_reaches_every_key() {
        let counts = counts(Choice::Uniform, 100, 100_000);
        assert!(counts.iter().all(|count| (850..1150).contains(count)));
    }

    #[test]
    fn impossible_exponents_are_refused() {
        for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(KeyChooser::new(Choice::Zipf { theta }, 0, 0, 10).is_none());
        }
    }

    #[test]
    fn one_key_is_always_chosen() {
        assert_eq!(counts(Choice::Zipf { theta: 0.9 }, 1, 10), vec![10]);
    }
}
