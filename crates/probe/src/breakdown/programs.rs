//! Which programs are attached, and with what settings: the tables of `struct settings`.

use super::buckets::Buckets;
use super::system_calls;
use crate::Refusal;
use crate::bpf::{Kernel, Wanted, file_system_of};
use crate::folders::{self, Known};
use std::path::Path;

/// What tells of a sync, by file system: the program, its tracepoint, and the module that may hold it.
const OF_SYNCS: [(&str, &str, &str); 3] = [
    ("ext4", "on_sync_of_ext4", "ext4_sync_file_enter"),
    ("xfs", "on_sync_of_xfs", "xfs_file_fsync"),
    ("btrfs", "on_sync_of_btrfs", "btrfs_sync_file"),
];

/// Those that run at every switch, wake-up and answer.
pub(crate) const OFTEN: [&str; 4] = ["on_switch", "on_waking", "on_send", "on_sys_exit"];

/// What is attached.
pub(crate) struct Attached {
    pub(crate) wanted: Vec<Wanted>,
    /// The end of an answer is told by the socket, and not by the end of the system call.
    pub(crate) by_sockets: bool,
    /// Every sync in the server's folders is told of.
    pub(crate) tells_of_syncs: bool,
}

impl Attached {
    /// For the cluster in `folder`.
    pub(crate) fn on(kernel: &Kernel, folder: &Path) -> Self {
        let by_sockets = kernel.has_tracepoint("sock_send_length");
        let syncs = of_syncs(kernel, folder);
        let mut wanted = always(kernel, by_sockets);
        wanted.extend(syncs.iter().flatten().map(|function| program(function)));
        Self { wanted, by_sockets, tells_of_syncs: syncs.is_some() }
    }
}

fn program(function: &'static str) -> Wanted {
    Wanted { function, tracepoint: None }
}

fn always(kernel: &Kernel, by_sockets: bool) -> Vec<Wanted> {
    let all = [
        (true, "on_switch", "sched_switch"),
        (true, "on_waking", "sched_waking"),
        (by_sockets, "on_send", "sock_send_length"),
        (!by_sockets, "on_sys_exit", "sys_exit"),
        (true, "on_throttle", "balance_dirty_pages"),
        (true, "on_file_fault", "mm_filemap_fault"),
        (true, "on_reclaim_begin", "mm_vmscan_direct_reclaim_begin"),
        (true, "on_reclaim_end", "mm_vmscan_direct_reclaim_end"),
        (true, "on_group_reclaim_begin", "mm_vmscan_memcg_reclaim_begin"),
        (true, "on_group_reclaim_end", "mm_vmscan_memcg_reclaim_end"),
        (true, "on_exit", "sched_process_exit"),
    ];
    let chosen = all.into_iter().filter(|(is_wanted, _, tracepoint)| *is_wanted && kernel.has_tracepoint(tracepoint));
    chosen.map(|(_, function, _)| program(function)).collect()
}

/// Programs for the file systems of the cluster's folder and of its log; None if one of them tells of no sync.
fn of_syncs(kernel: &Kernel, folder: &Path) -> Option<Vec<&'static str>> {
    let mut functions = Vec::new();
    for place in [folder.to_owned(), folder.join("pg_wal")] {
        let kind = file_system_of(&place).ok()?.file_system.shown.kind;
        let (module, function, tracepoint) = OF_SYNCS.into_iter().find(|(known, ..)| *known == kind)?;
        if !kernel.has_tracepoint(tracepoint) && !kernel.module_has_tracepoint(module, tracepoint) {
            return None;
        }
        functions.push(function);
    }
    functions.dedup();
    Some(functions)
}

/// With which PostgreSQL answers clients, and in which it waits for them.
fn boundary_calls() -> [u32; 3] {
    // Some machines have no epoll_wait.
    #[cfg(target_arch = "x86_64")]
    let wait = libc::SYS_epoll_wait;
    #[cfg(not(target_arch = "x86_64"))]
    let wait = libc::SYS_epoll_pwait;
    [libc::SYS_sendto, wait, libc::SYS_epoll_pwait].map(|call| call as u32)
}

/// Maps that are made only where waits are told by system call.
pub(crate) const OF_SYSTEM_CALLS: [&str; 3] = ["files", "foreign", "directories"];

/// What the programs are told of how to watch.
pub(crate) struct How<'a> {
    pub(crate) by_request: bool,
    pub(crate) in_slices: bool,
    /// What waits on NFS are for is told.
    pub(crate) on_nfs: bool,
    /// The server's files, where it does not tell its wait events.
    pub(crate) known: Option<&'a Known>,
}

/// `struct settings`.
pub(crate) fn settings(buckets: &Buckets, how: &How<'_>) -> Result<Vec<u8>, Refusal> {
    let mut words = folders::words(&how.known.map(Known::devices).unwrap_or_default(), true)?;
    words.extend(boundary_calls());
    words.extend([buckets.client_read, buckets.client_write, buckets.wal_write_lock, buckets.wal_sync]);
    words.extend([how.by_request, how.in_slices, how.known.is_some(), how.on_nfs].map(u32::from));
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    bytes.extend(buckets.class);
    bytes.extend(buckets.io);
    bytes.extend(system_calls::call_ways());
    bytes.extend(system_calls::way_buckets());
    Ok(bytes)
}
