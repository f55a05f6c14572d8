//! What a thread waits for, by the functions that it sleeps in.
//!
//! The fact that constrains it: names of the kernel's functions move between kernels. So what no rule knows is in no bucket of its own
//! but in `other_wait`, by the name of the function that wanted to sleep; nothing is guessed.

use super::records::PREEMPTED;
use crate::bpf::functions;
use crate::profile::kernel_names::KernelNames;
use plimsoll_record::WaitPlace;

/// Names in the record.
pub(super) const RUN_QUEUE: &str = "run_queue";
const PAGE: &str = "page";
const WRITEBACK: &str = "writeback";
const THROTTLED: &str = "throttled";
const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
const DEVICE: &str = "device";
const FROZEN: &str = "frozen";
const SOCKET: &str = "socket";
pub(super) const PAUSE: &str = "pause";
const NFS_READ: &str = "nfs_read";
const NFS_WRITE: &str = "nfs_write";
const NFS_COMMIT: &str = "nfs_commit";
const NFS_ATTRIBUTES: &str = "nfs_attributes";
const NFS_CALL: &str = "nfs_call";
const OTHER: &str = "other_wait";
pub(super) const BUCKETS: [&str; 16] = [
    RUN_QUEUE,
    PAGE,
    WRITEBACK,
    THROTTLED,
    JOURNAL,
    LOCK,
    DEVICE,
    FROZEN,
    SOCKET,
    PAUSE,
    NFS_READ,
    NFS_WRITE,
    NFS_COMMIT,
    NFS_ATTRIBUTES,
    NFS_CALL,
    OTHER,
];

/// A function's name, or with a star what it begins with.
type Rule = (&'static str, &'static str);

/// Wherever they are in a stack: who reclaims memory or is held back waits in turn for pages, locks and devices.
const ABOVE_ALL: [Rule; 12] = [
    ("balance_dirty_pages*", THROTTLED),
    ("try_to_free_pages", THROTTLED),
    ("try_to_free_mem_cgroup_pages", THROTTLED),
    ("__mem_cgroup_handle_over_high", THROTTLED),
    ("mem_cgroup_handle_over_high", THROTTLED),
    ("reclaim_throttle", THROTTLED),
    ("rq_qos_wait", THROTTLED),
    ("wbt_wait", THROTTLED),
    ("blk_throtl*", THROTTLED),
    ("__blk_throtl*", THROTTLED),
    ("io_throtl*", THROTTLED),
    ("sb_start_write", FROZEN),
];

/// Else by the innermost function that one of these knows.
const INNERMOST: [Rule; 61] = [
    // Waiting for bits of a page is told by who waits.
    ("folio_wait_writeback*", WRITEBACK),
    ("wait_on_page_writeback*", WRITEBACK),
    ("folio_wait_stable", WRITEBACK),
    ("wait_for_stable_page", WRITEBACK),
    ("__filemap_fdatawait_range", WRITEBACK),
    ("filemap_get_pages", PAGE),
    ("filemap_update_page", PAGE),
    ("filemap_read*", PAGE),
    ("filemap_fault", PAGE),
    ("filemap_get_folio*", PAGE),
    ("__filemap_get_folio*", PAGE),
    ("folio_wait_locked*", PAGE),
    ("__folio_lock*", PAGE),
    ("folio_wait_private_2*", PAGE),
    // The journal of ext4 (and of its fast commits), of XFS, of btrfs.
    ("jbd2_*", JOURNAL),
    ("__jbd2_*", JOURNAL),
    ("start_this_handle", JOURNAL),
    ("add_transaction_credits", JOURNAL),
    ("wait_transaction_locked", JOURNAL),
    ("wait_transaction_switching", JOURNAL),
    ("do_get_write_access", JOURNAL),
    ("ext4_fc_*", JOURNAL),
    ("xfs_log_*", JOURNAL),
    ("xlog_*", JOURNAL),
    ("btrfs_sync_log", JOURNAL),
    ("btrfs_wait_for_commit", JOURNAL),
    ("btrfs_commit_transaction", JOURNAL),
    ("wait_current_trans", JOURNAL),
    // Locks that sleep: of an inode, of a directory, of whatever else has one.
    ("rwsem_down_*", LOCK),
    ("__down_read*", LOCK),
    ("__down_write*", LOCK),
    // Of files: flock, and fcntl's.
    ("flock_lock_inode_wait", LOCK),
    ("locks_lock_inode_wait", LOCK),
    ("do_lock_file_wait", LOCK),
    ("__mutex_lock*", LOCK),
    ("mutex_lock*", LOCK),
    ("down_read*", LOCK),
    ("down_write*", LOCK),
    ("percpu_rwsem_wait", FROZEN),
    // The device itself: direct reads and writes, its cache, room for a request, blocks of metadata.
    ("iomap_dio_*", DEVICE),
    ("__iomap_dio_*", DEVICE),
    ("blkdev_*", DEVICE),
    ("submit_bio_wait", DEVICE),
    ("blk_mq_get_tag", DEVICE),
    ("__wait_on_buffer", DEVICE),
    ("__sync_dirty_buffer", DEVICE),
    // Until something comes on a socket, or there is room in one: of servers, which wait for their clients so.
    ("ep_poll", SOCKET),
    ("do_epoll_wait", SOCKET),
    ("do_poll*", SOCKET),
    ("do_sys_poll", SOCKET),
    ("do_select", SOCKET),
    ("inet_csk_accept", SOCKET),
    ("inet_csk_wait_for_connect", SOCKET),
    ("sk_wait_data", SOCKET),
    ("sk_stream_wait_*", SOCKET),
    ("unix_stream_*", SOCKET),
    ("sock_alloc_send_pskb", SOCKET),
    ("__skb_wait_for_more_packets", SOCKET),
    // Until a call of the kernel's RPC client has ended, whichever it is.
    ("rpc_wait_bit_killable", NFS_CALL),
    ("do_nanosleep", PAUSE),
    ("hrtimer_nanosleep", PAUSE),
];

/// Of the client of NFS, by the innermost of its functions that one of these knows. Its pages are read and written as those of any
/// file system are, and its calls are waited for in one place, whichever they are.
const OF_NFS: [Rule; 22] = [
    ("nfs_commit_inode", NFS_COMMIT),
    ("__nfs_commit_inode", NFS_COMMIT),
    ("nfs_wait_on_request", NFS_WRITE),
    ("nfs_wb_all", NFS_WRITE),
    ("nfs_wb_folio", NFS_WRITE),
    ("nfs_wb_page", NFS_WRITE),
    ("nfs_write_begin", NFS_WRITE),
    ("nfs_file_write", NFS_WRITE),
    ("nfs_file_fsync", NFS_WRITE),
    ("nfs_file_direct_write", NFS_WRITE),
    ("nfs_file_read", NFS_READ),
    ("nfs_file_splice_read", NFS_READ),
    ("nfs_file_direct_read", NFS_READ),
    ("nfs_read_folio", NFS_READ),
    ("nfs_readpage", NFS_READ),
    ("__nfs_revalidate_inode", NFS_ATTRIBUTES),
    ("nfs_getattr", NFS_ATTRIBUTES),
    ("nfs_do_access", NFS_ATTRIBUTES),
    ("nfs_access_get_cached", NFS_ATTRIBUTES),
    ("nfs_attribute_cache_expired", NFS_ATTRIBUTES),
    ("nfs4_proc_getattr", NFS_ATTRIBUTES),
    ("nfs3_proc_getattr", NFS_ATTRIBUTES),
];

/// What only leads to sleep, in every wait.
const OF_SLEEP: [&str; 16] = [
    "schedule*",
    "__schedule*",
    "io_schedule*",
    "preempt_schedule*",
    "out_of_line_wait_on_bit*",
    "__wait_on_bit*",
    "bit_wait*",
    "wait_for_completion*",
    "__wait_for_common",
    "do_wait_for_common",
    "prepare_to_wait*",
    "wake_bit_function",
    "folio_wait_bit*",
    "__traceiter_*",
    "bpf_*",
    "__bpf_*",
];

fn is_named(rule: &str, name: &str) -> bool {
    rule.strip_suffix('*').map_or(name == rule, |begin| name.starts_with(begin))
}

fn rule<'n>(rules: &[Rule], names: &[&'n str]) -> Option<(&'static str, &'n str)> {
    names.iter().find_map(|name| {
        let known = rules.iter().find(|(known, _)| is_named(known, name));
        known.map(|(_, bucket)| (*bucket, *name))
    })
}

/// Of the functions of a stack, innermost first: what is waited for, and by which of them that is told.
fn told<'n>(names: &[&'n str]) -> (&'static str, &'n str) {
    let wants = || names.iter().find(|name| !OF_SLEEP.iter().any(|rule| is_named(rule, name)));
    if let Some(above) = rule(&ABOVE_ALL, names) {
        return above;
    }
    let innermost = rule(&INNERMOST, names);
    // A lock of a file on NFS is a lock.
    let may_be_of_nfs = innermost.is_none_or(|(bucket, _)| matches!(bucket, PAGE | WRITEBACK | NFS_CALL));
    let of_nfs = || rule(&OF_NFS, names).filter(|_| may_be_of_nfs);
    of_nfs().or(innermost).unwrap_or_else(|| (OTHER, wants().copied().unwrap_or_default()))
}

/// What a function tells of a wait on NFS, for programs that read a stack as it is (bpf/functions.bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnNfs {
    Read,
    Write,
    Commit,
    Attributes,
    /// Of a call that no other function of the stack says more of.
    Call,
    /// That it is a wait for something else: a lock, or for being held back.
    Else,
}

/// What the programs are told of it: of a part its own number.
pub(crate) fn number(what: OnNfs, [read, write, commit, attributes, call]: &[u32; 5]) -> u32 {
    match what {
        OnNfs::Read => *read,
        OnNfs::Write => *write,
        OnNfs::Commit => *commit,
        OnNfs::Attributes => *attributes,
        OnNfs::Call => *call | functions::IF_NOTHING_ELSE,
        OnNfs::Else => functions::NOT_OURS,
    }
}

/// None of a function that tells nothing.
pub(crate) fn on_nfs(function: &str) -> Option<OnNfs> {
    let rules = ABOVE_ALL.iter().chain(&INNERMOST).chain(&OF_NFS);
    let (_, bucket) = rules.into_iter().find(|(known, _)| is_named(known, function))?;
    match *bucket {
        NFS_READ => Some(OnNfs::Read),
        NFS_WRITE => Some(OnNfs::Write),
        NFS_COMMIT => Some(OnNfs::Commit),
        NFS_ATTRIBUTES => Some(OnNfs::Attributes),
        NFS_CALL => Some(OnNfs::Call),
        THROTTLED | FROZEN | LOCK => Some(OnNfs::Else),
        _ => None,
    }
}

/// The place of a stack, given innermost first.
pub(super) fn of_stack(kernel: &KernelNames, frames: &[u64]) -> WaitPlace {
    let names = frames.iter().map(|address| kernel.name(*address).unwrap_or("[kernel]"));
    // A part of a function that the compiler has moved elsewhere is that function.
    let names: Vec<&str> = names.map(|name| name.split('.').next().unwrap_or(name)).collect();
    let (bucket, function) = told(&names);
    let stack: Vec<&str> = names.iter().rev().copied().collect();
    WaitPlace {
        bucket: bucket.to_owned(),
        function: function.to_owned(),
        stack: stack.join(";"),
        ..WaitPlace::default()
    }
}

/// The place of what has no stack: by its number.
pub(super) fn without_stack(number: u32) -> WaitPlace {
    let bucket = if number == PREEMPTED { RUN_QUEUE } else { OTHER };
    let function = if number == PREEMPTED { "preempted" } else { "[unknown]" };
    WaitPlace { bucket: bucket.to_owned(), function: function.to_owned(), ..WaitPlace::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_told_by_the_functions_in_them() {
        let cases: [(&str, &str, &str); 15] = [
            ("schedule io_schedule folio_wait_bit_common filemap_get_pages filemap_read", PAGE, "filemap_get_pages"),
            (
                "schedule io_schedule folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range",
                WRITEBACK,
                "folio_wait_writeback",
            ),
            ("schedule jbd2_log_wait_commit ext4_fsync_journal ext4_sync_file", JOURNAL, "jbd2_log_wait_commit"),
            ("schedule io_schedule __iomap_dio_rw iomap_dio_rw ext4_file_read_iter", DEVICE, "__iomap_dio_rw"),
            ("schedule submit_bio_wait blkdev_issue_flush ext4_sync_file", DEVICE, "submit_bio_wait"),
            (
                "schedule rwsem_down_write_slowpath down_write ext4_buffered_write_iter",
                LOCK,
                "rwsem_down_write_slowpath",
            ),
            // Who reclaims memory waits for a page in turn, and is held back all the same.
            (
                "schedule folio_wait_bit_common folio_wait_writeback shrink_folio_list try_to_free_mem_cgroup_pages",
                THROTTLED,
                "try_to_free_mem_cgroup_pages",
            ),
            (
                "schedule_timeout io_schedule_timeout balance_dirty_pages generic_perform_write",
                THROTTLED,
                "balance_dirty_pages",
            ),
            ("schedule percpu_rwsem_wait __percpu_down_read vfs_write", FROZEN, "percpu_rwsem_wait"),
            ("schedule locks_lock_inode_wait __do_sys_flock", LOCK, "locks_lock_inode_wait"),
            ("schedule do_nanosleep hrtimer_nanosleep", PAUSE, "do_nanosleep"),
            ("schedule futex_do_wait do_futex", OTHER, "futex_do_wait"),
            ("schedule schedule_hrtimeout_range ep_poll do_epoll_wait", SOCKET, "ep_poll"),
            ("schedule schedule_timeout inet_csk_accept inet_accept", SOCKET, "inet_csk_accept"),
            ("", OTHER, ""),
        ];
        for (stack, bucket, function) in cases {
            let names: Vec<&str> = stack.split_whitespace().collect();
            assert_eq!(told(&names), (bucket, function), "{stack}");
        }
    }

    /// As the kernels 6.1 and 6.12 of Debian had them, outermost first (tests/guest/test_nfs_waits_in_qemu.py).
    #[test]
    fn what_is_asked_of_a_server_of_nfs_is_told_by_who_asks() {
        let call = "rpc_run_task;rpc_execute;__rpc_execute;out_of_line_wait_on_bit;__wait_on_bit;rpc_wait_bit_killable;schedule";
        let page = "folio_wait_bit_common;io_schedule;schedule";
        let getattr = "__nfs_revalidate_inode;nfs4_proc_getattr;_nfs4_proc_getattr;nfs4_do_call_sync";
        let cases = [
            (format!("vfs_read;nfs_file_read;filemap_read;filemap_get_pages;{page}"), NFS_READ, "nfs_file_read"),
            (
                format!(
                    "do_fsync;nfs_file_fsync;file_write_and_wait_range;__filemap_fdatawait_range;folio_wait_writeback;{page}"
                ),
                NFS_WRITE,
                "nfs_file_fsync",
            ),
            (
                "do_fsync;nfs_file_fsync;__nfs_commit_inode;wait_on_commit;schedule".to_owned(),
                NFS_COMMIT,
                "__nfs_commit_inode",
            ),
            (format!("vfs_statx;nfs_getattr;{getattr};{call}"), NFS_ATTRIBUTES, "nfs4_proc_getattr"),
            (
                format!(
                    "nfs_permission;nfs_do_access;nfs4_proc_access;_nfs4_proc_access;nfs4_call_sync_sequence;{call}"
                ),
                NFS_ATTRIBUTES,
                "nfs_do_access",
            ),
            (
                format!("__lookup_slow;nfs_lookup;nfs4_proc_lookup;_nfs4_proc_lookup;nfs4_do_call_sync;{call}"),
                NFS_CALL,
                "rpc_wait_bit_killable",
            ),
            (
                "nfs_atomic_open;nfs4_do_open;nfs4_run_open_task;__wait_on_bit;rpc_wait_bit_killable;schedule"
                    .to_owned(),
                NFS_CALL,
                "rpc_wait_bit_killable",
            ),
            // Not of the server: the same page of another file system, and a lock on the way to a write.
            (format!("vfs_read;ext4_file_read_iter;filemap_read;filemap_get_pages;{page}"), PAGE, "filemap_get_pages"),
            (
                "nfs_file_write;nfs_start_io_write;down_write;rwsem_down_write_slowpath;schedule".to_owned(),
                LOCK,
                "rwsem_down_write_slowpath",
            ),
        ];
        for (stack, bucket, function) in cases {
            let names: Vec<&str> = stack.rsplit(';').collect();
            assert_eq!(told(&names), (bucket, function), "{stack}");
            // And by what each function tells alone.
            let parts = [NFS_READ, NFS_WRITE, NFS_COMMIT, NFS_ATTRIBUTES, NFS_CALL];
            let part = parts.iter().position(|part| *part == bucket).map_or(0, |at| at as u32 + 1);
            let tells = |function: &str| on_nfs(function).map(|what| number(what, &[1, 2, 3, 4, 5]));
            assert_eq!(functions::tests::told(tells, &names), part, "{stack}");
        }
    }

    #[test]
    fn every_rule_has_a_bucket_of_the_record() {
        assert!(ABOVE_ALL.iter().chain(&INNERMOST).chain(&OF_NFS).all(|(_, bucket)| BUCKETS.contains(bucket)));
        assert_eq!(
            (without_stack(PREEMPTED).bucket.as_str(), without_stack(u32::MAX).bucket.as_str()),
            (RUN_QUEUE, OTHER)
        );
    }
}
