//! What files are called, and what is said when the kernel refuses a call on one.

use plimsoll_session::Failure;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The file of process `number`, below the folder of what is loaded.
pub(crate) fn file_name(number: u32) -> String {
    format!("file.{number:04}")
}

/// The name of an error, such as "ENOSPC".
pub(crate) fn errno_name(error: Errno) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(error.raw_os_error()))
}

/// A failed operation: which call on which file, and the error's name as its code.
pub(crate) fn refused(file: &str, call: &str, error: Errno) -> Failure {
    Failure { code: errno_name(error), message: format!("{file}: {call}: {error}") }
}

/// Closes a descriptor. A file server may say here first that it has not taken what was written.
///
/// # Errors
/// When the kernel says so; the descriptor is closed all the same.
pub(crate) fn close(descriptor: impl Into<OwnedFd>) -> Result<(), Errno> {
    nix::unistd::close(descriptor.into()).map_err(|error| Errno::from_raw_os_error(error as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_called_as_everybody_calls_them() {
        let failure = refused(&file_name(3), "write", Errno::NOSPC);
        assert_eq!(failure.code, "ENOSPC");
        assert!(failure.message.starts_with("file.0003: write: No space left"), "{}", failure.message);
        assert_eq!(
            [errno_name(Errno::IO), errno_name(Errno::ROFS), errno_name(Errno::DQUOT)],
            ["EIO", "EROFS", "EDQUOT"]
        );
    }
}
