//! What is kept of a segment: rows, histograms of each second and of the whole, counts.

pub(crate) mod buckets;
pub(crate) mod keep;
pub(crate) mod recorder;
pub(crate) mod seconds;
pub(crate) mod tally;
