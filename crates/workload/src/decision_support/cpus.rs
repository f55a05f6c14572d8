//! The machine's CPUs. The server has them, and not only those that this process may run on.

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// How many are online; those of this process where the kernel does not tell.
pub(super) fn online() -> usize {
    let told = std::fs::read_to_string(ONLINE).ok().and_then(|list| counted(list.trim()));
    told.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Of a list as the kernel writes it: `0-3,8`.
fn counted(list: &str) -> Option<usize> {
    let of_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?).map(|more| more + 1)
    };
    list.split(',').map(of_range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_ranges_is_counted() {
        assert_eq!(["0", "0-1", "0-3,8", "0-1,4-7,9"].map(counted), [Some(1), Some(2), Some(5), Some(7)]);
        assert_eq!(["", "a", "3-1"].map(counted), [None; 3]);
        assert!(online() >= 1);
    }
}
