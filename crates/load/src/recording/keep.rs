//! Which transactions get a row.

use crate::config::Config;
use plimsoll_schedule::{Stream, draw};

/// Which transactions get a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    pub(crate) all_below_index: u64,
    sample_one_in: u64,
    seed: u64,
}

impl Keep {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            all_below_index: config.first_index.saturating_add(config.rows_max),
            sample_one_in: config.sample_one_in.max(1),
            seed: config.schedule.seed(),
        }
    }

    #[inline]
    pub(crate) fn keeps(&self, index: u64) -> bool {
        index < self.all_below_index || draw(self.seed, Stream::Sample, index).is_multiple_of(self.sample_one_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_drawn_by_seed_and_index() {
        let keep = Keep::new(&Config { first_index: 100, rows_max: 50, sample_one_in: 10, ..Config::plain() });
        assert!((100..150).all(|index| keep.keeps(index)));
        let kept = (150..100_150).filter(|&index| keep.keeps(index)).count();
        assert!((9_600..10_400).contains(&kept), "{kept}");
    }
}
