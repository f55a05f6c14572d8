//! The operations of a load file, by the names that they have there.

/// What a line asks for. Its place in [`Operation::ALL`] is the kind that records have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    NtCreateX,
    Close,
    ReadX,
    WriteX,
    QueryPathInformation,
    QueryFileInformation,
    QueryFsInformation,
    SetFileInformation,
    FindFirst,
    Unlink,
    Rename,
    Flush,
    LockX,
    UnlockX,
    Mkdir,
    Rmdir,
    Deltree,
}

impl Operation {
    /// All of them, in the order of the enumeration.
    pub(super) const ALL: [Self; 17] = [
        Self::NtCreateX,
        Self::Close,
        Self::ReadX,
        Self::WriteX,
        Self::QueryPathInformation,
        Self::QueryFileInformation,
        Self::QueryFsInformation,
        Self::SetFileInformation,
        Self::FindFirst,
        Self::Unlink,
        Self::Rename,
        Self::Flush,
        Self::LockX,
        Self::UnlockX,
        Self::Mkdir,
        Self::Rmdir,
        Self::Deltree,
    ];

    /// As load files write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NtCreateX => "NTCreateX",
            Self::Close => "Close",
            Self::ReadX => "ReadX",
            Self::WriteX => "WriteX",
            Self::QueryPathInformation => "QUERY_PATH_INFORMATION",
            Self::QueryFileInformation => "QUERY_FILE_INFORMATION",
            Self::QueryFsInformation => "QUERY_FS_INFORMATION",
            Self::SetFileInformation => "SET_FILE_INFORMATION",
            Self::FindFirst => "FIND_FIRST",
            Self::Unlink => "Unlink",
            Self::Rename => "Rename",
            Self::Flush => "Flush",
            Self::LockX => "LockX",
            Self::UnlockX => "UnlockX",
            Self::Mkdir => "Mkdir",
            Self::Rmdir => "Rmdir",
            Self::Deltree => "Deltree",
        }
    }

    /// By the name that a line begins with.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Its place among all.
    pub(super) fn kind(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_places_in_the_list() {
        for (place, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(operation.kind()), place, "{}", operation.name());
            assert_eq!(Operation::named(operation.name()), Some(operation));
        }
    }
}
