//! What a consistency check is made of: a number that is found against one that is expected, or between two where lost
//! transactions leave it open; the totals of a trial's segments; and ranges of keys that are asked for side by side.

use plimsoll_record::{Check, Summary};

/// `found` must be `expected`.
pub(crate) fn exact(name: String, expected: i64, found: i64) -> Check {
    Check { name, expected: expected.to_string(), found: found.to_string(), ok: expected == found }
}

/// `found` must lie between `low` and `high`, both included.
pub(crate) fn between(name: String, low: i64, high: i64, found: i64) -> Check {
    let expected = if low == high { low.to_string() } else { format!("{low} to {high}") };
    Check { name, expected, found: found.to_string(), ok: (low..=high).contains(&found) }
}

/// The sum of the total `name` over `segments`.
pub(crate) fn total(segments: &[Summary], name: &str) -> i64 {
    segments.iter().filter_map(|segment| segment.totals.get(name)).sum()
}

/// Over how many connections a check asks: one for each CPU, but a server has only so many to give.
pub(crate) fn connections() -> usize {
    const CONNECTIONS_MAX: usize = 16;
    std::thread::available_parallelism().map_or(1, usize::from).min(CONNECTIONS_MAX)
}

/// At least `needed` ranges of the keys `1..=highest` (fewer where there are fewer keys), both ends included, equally many for
/// each of `parallel` connections; together they hold all of `whole`, so that no row escapes.
pub(crate) fn ranges(highest: i64, needed: i64, parallel: usize, whole: (i64, i64)) -> Vec<(i64, i64)> {
    let count = (needed.max(1) as u64).next_multiple_of(parallel.max(1) as u64).min(highest.max(1) as u64) as i64;
    let bound = |number: i64| (i128::from(number) * i128::from(highest) / i128::from(count)) as i64;
    let from = |number: i64| if number == 0 { whole.0 } else { bound(number) + 1 };
    let to = |number: i64| if number + 1 == count { whole.1 } else { bound(number + 1) };
    (0..count).map(|number| (from(number), to(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_key_once() {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        let ranges = |highest, needed, parallel| ranges(highest, needed, parallel, (low, high));
        assert_eq!(ranges(1, 1, 8), [(low, high)]);
        assert_eq!(ranges(2, 1, 2), [(low, 1), (2, high)]);
        assert_eq!(ranges(7, 4, 3), [(low, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, high)]);
        assert_eq!(ranges(9, 5, 2), [(low, 1), (2, 3), (4, 4), (5, 6), (7, 7), (8, high)]);
        let many = ranges(1001, 50, 4);
        assert_eq!((many.len(), many[0].0, many[51].1), (52, low, high));
        assert!(many.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
    }
}
