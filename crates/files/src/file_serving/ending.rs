//! How a line ended, against how it should have.

use super::player::Trouble;
use super::script::Expected;
use plimsoll_session::Failure;
use rustix::io::Errno;

/// What is said of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ended as it should; so many bytes were moved.
    AsExpected(u64),
    /// It ended otherwise, which no line says is wrong: the files are not those that the script foretells from here on.
    Unforeseen,
    /// It failed. `is_wrong`: the answer was, not the call.
    Failed { failure: Failure, is_wrong: bool },
}

/// Judges how `played` ended.
pub(super) fn judge(expected: Expected, played: Result<u64, Trouble>) -> Verdict {
    match (expected.is_ok, played) {
        (true, Ok(bytes)) => Verdict::AsExpected(bytes),
        (false, Err(Trouble::Call(error))) if is_of_names(error) => Verdict::AsExpected(0),
        (true, Err(Trouble::Call(error))) if is_of_names(error) && !expected.is_checked => Verdict::Unforeseen,
        (false, Ok(_)) if !expected.is_checked => Verdict::Unforeseen,
        (false, Ok(_)) => wrong("it ended well, where the script says that it fails".to_owned()),
        (_, Err(Trouble::Wrong(message))) => wrong(message),
        (_, Err(Trouble::Call(error))) => {
            let message = std::io::Error::from(error).to_string();
            Verdict::Failed { failure: Failure { code: name_of(error), message }, is_wrong: false }
        }
    }
}

fn wrong(message: String) -> Verdict {
    Verdict::Failed { failure: Failure { code: Failure::WRONG_ANSWER.to_owned(), message }, is_wrong: true }
}

/// Errors that a script can mean: of what is there and what is not. Those of the device and of its space it never
/// means.
fn is_of_names(error: Errno) -> bool {
    let of_names =
        [Errno::NOENT, Errno::NOTDIR, Errno::EXIST, Errno::ISDIR, Errno::NOTEMPTY, Errno::ACCESS, Errno::PERM];
    of_names.contains(&error)
}

/// An error's name: ENOSPC.
pub(super) fn name_of(error: Errno) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(error.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(expected: Expected, played: Result<u64, Trouble>) -> String {
        match judge(expected, played) {
            Verdict::AsExpected(bytes) => format!("as expected, {bytes}"),
            Verdict::Unforeseen => "unforeseen".to_owned(),
            Verdict::Failed { failure, is_wrong } => format!("{}, {is_wrong}", failure.code),
        }
    }

    #[test]
    fn a_line_ends_as_it_says_or_fails() {
        let (ok, error) = (Expected { is_ok: true, is_checked: true }, Expected { is_ok: false, is_checked: true });
        let call = |errno| Err(Trouble::Call(errno));
        assert_eq!(code(ok, Ok(5)), "as expected, 5");
        assert_eq!(code(error, call(Errno::NOENT)), "as expected, 0");
        assert_eq!(code(ok, call(Errno::NOENT)), "ENOENT, false");
        assert_eq!(code(error, Ok(0)), "XXVER, true");
        assert_eq!(code(error, call(Errno::IO)), "EIO, false", "what a device says no script means");
        assert_eq!(code(error, call(Errno::NOSPC)), "ENOSPC, false");
        assert_eq!(code(ok, Err(Trouble::Wrong("old".to_owned()))), "XXVER, true");
    }

    #[test]
    fn lines_that_say_nothing_fail_by_the_device_alone() {
        let says_nothing = |is_ok| Expected { is_ok, is_checked: false };
        assert_eq!(code(says_nothing(true), Err(Trouble::Call(Errno::NOENT))), "unforeseen");
        assert_eq!(code(says_nothing(false), Ok(0)), "unforeseen");
        assert_eq!(code(says_nothing(true), Err(Trouble::Call(Errno::ROFS))), "EROFS, false");
    }
}
