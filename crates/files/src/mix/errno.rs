//! Errors of the kernel by their names.

use plimsoll_record::Outcome;
use plimsoll_session::{Ending, Failure};
use rustix::io::Errno;

/// Its name, such as "ENOSPC".
fn name(errno: Errno) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno.raw_os_error()))
}

/// Why an operation on a file failed.
#[cold]
pub(super) fn failure(operation: &str, file: &str, errno: Errno) -> Failure {
    Failure { code: name(errno), message: format!("{operation} {file}: {errno}") }
}

/// How an operation ends that failed; the session lives on.
#[cold]
pub(super) fn failed(failure: Failure) -> Ending {
    Ending { failure: Some(failure), ..Ending::of_nothing(Outcome::Failed, true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_kernels_names() {
        let named = [Errno::NOSPC, Errno::ROFS, Errno::IO, Errno::DQUOT, Errno::NOENT].map(name);
        assert_eq!(named, ["ENOSPC", "EROFS", "EIO", "EDQUOT", "ENOENT"]);
        let failure = failure("write", "d000000/f000000001.0", Errno::NOSPC);
        assert!(failure.message.starts_with("write d000000/f000000001.0: "), "{failure:?}");
    }
}
