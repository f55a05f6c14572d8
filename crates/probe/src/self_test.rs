//! What self-tests have in common: a known stimulus is tried until everything checked of it holds, or often enough.

use crate::Refusal;
use plimsoll_record::Check;

/// Whether as many were found as expected.
pub(crate) fn equal(name: &str, expected: u64, found: u64) -> Check {
    Check { name: name.to_owned(), expected: expected.to_string(), found: found.to_string(), ok: expected == found }
}

/// Makes `attempt` up to `tries` times, since a busy machine may disturb one.
///
/// # Errors
/// What an attempt fails with; after the last one, what did not hold in it.
pub(crate) fn until_all_hold(
    tries: u32,
    mut attempt: impl FnMut() -> Result<Vec<Check>, Refusal>,
) -> Result<Vec<Check>, Refusal> {
    let mut checks = Vec::new();
    for _ in 0..tries {
        checks = attempt()?;
        if checks.iter().all(|check| check.ok) {
            return Ok(checks);
        }
    }
    let wrong = checks.iter().filter(|check| !check.ok);
    let words: Vec<String> =
        wrong.map(|check| format!("{}: {} instead of {}", check.name, check.found, check.expected)).collect();
    Err(Refusal::from(format!("the self-test failed: {}", words.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempt_that_holds_is_taken_and_the_last_that_does_not_is_told() {
        let mut counted = [3, 5].into_iter();
        let checks = until_all_hold(2, || Ok(vec![equal("events", 5, counted.next().unwrap())])).unwrap();
        assert_eq!(checks, [equal("events", 5, 5)]);
        let mut counted = [3, 4, 5].into_iter();
        let refused = until_all_hold(2, || {
            let found = counted.next().unwrap();
            Ok(vec![equal("events", 5, found), equal("bytes", 7, 7)])
        });
        assert_eq!(refused.unwrap_err().reason, "the self-test failed: events: 4 instead of 5");
    }

    #[test]
    fn what_cannot_be_tried_is_not_tried_again() {
        let mut attempts = 0;
        let refused = until_all_hold(3, || {
            attempts += 1;
            Err(Refusal::from("no such folder".to_owned()))
        });
        assert_eq!((refused.unwrap_err().reason.as_str(), attempts), ("no such folder", 1));
    }
}
