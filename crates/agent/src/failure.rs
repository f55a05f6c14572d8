//! How a verb can fail, and the exit code of each.

use crate::output;
use plimsoll_files::{FilesError, TreeError};
use plimsoll_load::EngineError;
use plimsoll_probe::ProbeError;
use plimsoll_target::postgres::Error;
use plimsoll_web::FileSetError;
use plimsoll_workload::DataSetError;
use serde_json::json;

/// A failed verb.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The record cannot be written.
    #[error("{0}")]
    Record(String),
    /// The request is wrong; names the field.
    #[error("{0}")]
    Request(String),
    /// The target cannot be reached or refused, or the system refuses what the load needs.
    #[error("{0}")]
    Target(String),
    /// The server refused with an SQLSTATE, which who started the agent is told in a line of its own.
    #[error("{message}")]
    Refused {
        /// The server's five characters.
        sqlstate: String,
        /// What it said of which statement.
        message: String,
    },
    /// Ended from outside; what was written is closed.
    #[error("stopped by {0}")]
    Ended(&'static str),
    /// A fault of Plimsoll.
    #[error("transaction accounting does not add up (a bug in Plimsoll): {0}")]
    Identity(String),
}

impl Failure {
    /// Says on standard output what a program may go by; people read the standard error.
    pub(crate) fn tell(&self) {
        if let Self::Refused { sqlstate, message } = self {
            output::event("refused", json!({"sqlstate": sqlstate, "message": message}));
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Record(_) => 1,
            Self::Request(_) => 2,
            Self::Target(_) | Self::Refused { .. } => 3,
            Self::Ended(_) => 4,
            Self::Identity(_) => 70,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::Server(said) | Error::Statement { error: said, .. } => {
                Self::Refused { sqlstate: said.sqlstate.clone(), message: error.to_string() }
            }
            _ => Self::Target(error.to_string()),
        }
    }
}

impl From<DataSetError> for Failure {
    fn from(error: DataSetError) -> Self {
        match error {
            DataSetError::Server(error) => error.into(),
            DataSetError::Schema(message) => Self::Target(message),
        }
    }
}

impl From<FilesError> for Failure {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Tree(error) => error.into(),
            FilesError::File { .. } | FilesError::Content(_) => Self::Target(error.to_string()),
        }
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::NotOurs { .. } => Self::Request(format!("target.folder: {error}")),
            TreeError::Folder { .. } => Self::Target(error.to_string()),
        }
    }
}

impl From<FileSetError> for Failure {
    fn from(error: FileSetError) -> Self {
        match error {
            FileSetError::NotOurs { .. } => Self::Request(format!("target.folder: {error}")),
            FileSetError::File { .. } => Self::Target(error.to_string()),
        }
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Server(_) => Self::Target(error.to_string()),
            ProbeError::Unknown(_) => Self::Request(error.to_string()),
            ProbeError::File { .. } => Self::Request(format!("sample: {error}")),
        }
    }
}

impl From<plimsoll_session::Failure> for Failure {
    /// A connection that could not be opened.
    fn from(failure: plimsoll_session::Failure) -> Self {
        Self::Refused { sqlstate: failure.code, message: failure.message }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Panicked => Self::Identity(error.to_string()),
            // No disk is full: the system has no io_uring for us, no thread, no more memory that may be locked.
            EngineError::System(_) => Self::Target(error.to_string()),
            EngineError::Record(_) => Self::Record(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_no_record_that_cannot_be_written() {
        let of = |error: EngineError| Failure::from(error).exit_code();
        let refused = || std::io::Error::other("io_uring is forbidden here");
        assert_eq!((of(EngineError::System(refused())), of(EngineError::Record(refused()))), (3, 1));
    }
}
