//! The machine's CPUs, as the kernel lists them.

use crate::Refusal;
use std::fs;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// "0-2,5" are four.
fn listed(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

/// Those that are online.
pub(crate) fn online() -> Result<Vec<u32>, Refusal> {
    let text = fs::read_to_string(ONLINE).map_err(|error| Refusal::from(format!("{ONLINE}: {error}")))?;
    listed(&text).ok_or_else(|| Refusal::from(format!("{ONLINE}: \"{}\" is not a list of CPUs", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(listed("0-1,4,8-9\n"), Some(vec![0, 1, 4, 8, 9]));
        assert_eq!(listed("0\n"), Some(vec![0]));
        assert_eq!((listed(""), listed("a-b")), (None, None));
        assert!(!online().unwrap().is_empty());
    }
}
