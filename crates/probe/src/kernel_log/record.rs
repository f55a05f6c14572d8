//! A record as /dev/kmsg gives it: `priority,sequence,microseconds,flags[,...];text`, and lines with more that begin with a space.

/// What of a line is kept; the longest that the kernel writes are near 1,000 bytes.
const TEXT_MAX: usize = 400;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) t_ns: i64,
    pub(super) level: u8,
    /// 0: the kernel itself. What programs write has another, which the kernel sees to.
    pub(super) facility: u32,
    pub(super) text: String,
}

/// Reads a record; None where it is not one.
pub(super) fn parsed(raw: &str) -> Option<Record> {
    let (head, text) = raw.split_once(';')?;
    let mut fields = head.split(',');
    let priority: u32 = fields.next()?.trim_start().parse().ok()?;
    let sequence = fields.next()?.parse().ok()?;
    let microseconds: i64 = fields.next()?.parse().ok()?;
    let line = text.lines().next().unwrap_or_default();
    let cut = line.char_indices().map(|(at, _)| at).find(|at| *at >= TEXT_MAX).unwrap_or(line.len());
    Some(Record {
        sequence,
        t_ns: microseconds.saturating_mul(1000),
        level: (priority & 7) as u8,
        facility: priority >> 3,
        text: line[..cut].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_record_is_its_head_and_its_first_line() {
        let raw = "6,339,5140900,-;NET: Registered PF_INET6 protocol family\n SUBSYSTEM=net\n DEVICE=+net:lo\n";
        let text = "NET: Registered PF_INET6 protocol family".to_owned();
        let expected = Record { sequence: 339, t_ns: 5_140_900_000, level: 6, facility: 0, text };
        assert_eq!(parsed(raw), Some(expected));
    }

    #[test]
    fn what_a_program_writes_has_its_facility_and_newer_kernels_more_fields() {
        let record = parsed("12,7,99,-,caller=T812;WARNING: a test\n").unwrap();
        assert_eq!((record.facility, record.level, record.text.as_str()), (1, 4, "WARNING: a test"));
    }

    #[test]
    fn what_is_no_record_is_none_and_a_long_line_is_cut_between_letters() {
        assert_eq!(parsed("no record"), None);
        assert_eq!(parsed("x,1,2,-;text"), None);
        let long = format!("4,1,2,-;{}", "ü".repeat(900));
        assert_eq!(parsed(&long).unwrap().text.len(), TEXT_MAX);
    }
}
