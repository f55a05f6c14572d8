//! Which file is asked for: its class by shares, its place in the class by shares, its directory by Zipf's law.

use crate::file_set::{CLASSES, FILES_A_CLASS, Place};
use plimsoll_keys::{Choice, KeyChooser, Words};

/// Separates the permutation of directories from others of the seed.
const DIRECTORIES: u64 = 103;
/// Fields, from where those of a place begin.
const CLASS: u64 = 0;
const FILE: u64 = 1;
const DIRECTORY: u64 = 2;

/// From 0 up to and without 1.
pub(super) fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// A choice among a few by their shares.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Of each and of all before it; the last is 1.
    up_to: Vec<f64>,
}

impl Share {
    /// # Errors
    /// When one is negative or all are 0, by the name of the parameter.
    pub(super) fn new(name: &str, shares: &[f64]) -> Result<Self, String> {
        let sum: f64 = shares.iter().sum();
        if !sum.is_finite() || sum <= 0.0 || shares.iter().any(|&share| share < 0.0) {
            return Err(format!("{name}: shares are not negative, and one of them is above 0"));
        }
        let mut so_far = 0.0;
        let up_to = shares.iter().map(|share| {
            so_far += share / sum;
            so_far
        });
        Ok(Self { up_to: up_to.collect() })
    }

    pub(super) fn of(&self, words: &Words, field: u64) -> usize {
        let drawn = fraction(words.word(field));
        let place = self.up_to.partition_point(|&up_to| up_to <= drawn);
        // Sums that fall short of 1 by their rounding belong to the last one that has any.
        place.min(self.up_to.partition_point(|&up_to| up_to < self.up_to[self.up_to.len() - 1]))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Popularity {
    classes: Share,
    files: Share,
    directories: KeyChooser,
}

impl Popularity {
    pub(super) fn new(
        seed: u64,
        classes: &[f64; CLASSES as usize],
        files: &[f64; FILES_A_CLASS as usize],
        zipf: f64,
        directories: u32,
    ) -> Result<Self, String> {
        let choice = if zipf == 0.0 { Choice::Uniform } else { Choice::Zipf { theta: zipf } };
        let chooser = KeyChooser::new(choice, seed, DIRECTORIES, directories.into());
        Ok(Self {
            classes: Share::new("classes", classes)?,
            files: Share::new("files", files)?,
            directories: chooser.ok_or_else(|| format!("zipf: {zipf} is not 0 or above"))?,
        })
    }

    /// The place that fields of `words` from `first` on choose.
    pub(super) fn place(&self, words: &Words, first: u64) -> Place {
        Place {
            directory: self.directories.choose(words, first + DIRECTORY) as u32,
            class: self.classes.of(words, first + CLASS) as u8,
            file: self.files.of(words, first + FILE) as u8,
        }
    }
}
