//! Which programs are attached, and with what settings: the tables of `struct settings`.

use super::buckets::Buckets;
use crate::bpf::{Kernel, Wanted, file_system_of};
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
fn system_calls() -> [u32; 3] {
    // Some machines have no epoll_wait.
    #[cfg(target_arch = "x86_64")]
    let wait = libc::SYS_epoll_wait;
    #[cfg(not(target_arch = "x86_64"))]
    let wait = libc::SYS_epoll_pwait;
    [libc::SYS_sendto, wait, libc::SYS_epoll_pwait].map(|call| call as u32)
}

/// `struct settings`.
pub(crate) fn settings(buckets: &Buckets, by_request: bool, in_slices: bool) -> Vec<u8> {
    let calls = system_calls();
    let events = [buckets.client_read, buckets.client_write, buckets.wal_write_lock, buckets.wal_sync];
    let numbers = calls.into_iter().chain(events).chain([by_request, in_slices].map(u32::from));
    let mut bytes: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
    bytes.extend(buckets.class);
    bytes.extend(buckets.io);
    bytes
}
