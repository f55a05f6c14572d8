//! Variables' names: each has a place, the same for all scripts of a run.

use std::collections::HashMap;

/// The seed of the hash functions.
pub(super) const DEFAULT_SEED: &str = "default_seed";

/// Names in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    /// The place of `name`, a new one if it has none.
    pub(super) fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.find(name) {
            return place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub(super) fn name(&self, place: usize) -> &str {
        &self.names[place]
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }
}

/// True if a variable may be called so: letters, digits and underscores, no digit first; all beyond ASCII are letters.
pub(super) fn is_valid(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&byte| starts(byte)) && bytes.iter().all(|&byte| continues(byte))
}

/// True if a name may start with `byte`.
pub(super) fn starts(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// True if a name may go on with `byte`.
pub(super) fn continues(byte: u8) -> bool {
    starts(byte) || byte.is_ascii_digit()
}
