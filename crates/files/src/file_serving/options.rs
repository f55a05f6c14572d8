//! How a script is performed.

/// What a path costs before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Nothing.
    None,
    /// A stat.
    Stat,
    /// A stat, and where that fails its directory is read.
    Scan,
}

/// The same for all clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) lookup: Lookup,
    /// Files are opened with O_SYNC.
    pub(super) o_sync: bool,
    /// The directory reaches the device after mkdir, rmdir, unlink and rename.
    pub(super) sync_directories: bool,
    /// Each write is followed by an fsync.
    pub(super) sync_writes: bool,
    /// How often a client performs the script; 0: until the load ends.
    pub(super) passes: u64,
}
