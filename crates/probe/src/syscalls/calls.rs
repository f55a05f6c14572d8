//! Which calls are counted how: the tables of `struct settings`, and the names of the rest.

use crate::Refusal;
use crate::bpf::file_system_of;
use crate::folders::{self, Files, Known, Layout, real};

/// Which calls are counted one by one. What is not is counted in slices of time, which stand for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Counted {
    /// None: what costs the server least.
    Slices,
    /// Those of a kind, by tracepoints of their own; every one where the kernel has no such tracepoints.
    Files,
    /// Every one, which costs the server most.
    All,
}

/// Classes in the record, in the program's order: those of the server's files, other files and folders, and no file.
pub(super) const CLASSES: [&str; 7] = ["data", "wal", "global", "temp", "other", "elsewhere", "none"];

/// `enum kind`, but for the first, which is no kind.
pub(super) const KINDS: [&str; 15] = [
    "open",
    "read",
    "pread",
    "write",
    "pwrite",
    "lseek",
    "close",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "truncate",
    "fallocate",
    "unlink",
    "rename",
    "stat",
];

pub(super) const SYSCALLS: usize = 512;
const ROOT_BYTES: usize = 256;

/// `enum way`.
const DESCRIPTOR: u8 = 1;
const PATH: u8 = 2;
const PATH_AT: u8 = 4;
const OPENS: u8 = 8;
const READS: u8 = 16 | DESCRIPTOR;
const WRITES: u8 = 32 | DESCRIPTOR;
const POSITIONED: u8 = 64;
const VECTORS: u8 = 128;

/// The tracepoints of one call, by the kernel's name for it.
macro_rules! tracepoints {
    ($name:literal) => {
        [concat!("sys_enter_", $name), concat!("sys_exit_", $name)]
    };
}

type Entry = (libc::c_long, [&'static str; 2], &'static str, u8);

/// By number: its tracepoints, what kind a call is, and how it names its file.
const BY_NUMBER: [Entry; 24] = [
    (libc::SYS_openat, tracepoints!("openat"), "open", PATH_AT | OPENS),
    (libc::SYS_openat2, tracepoints!("openat2"), "open", PATH_AT | OPENS),
    (libc::SYS_read, tracepoints!("read"), "read", READS),
    (libc::SYS_readv, tracepoints!("readv"), "read", READS | VECTORS),
    (libc::SYS_pread64, tracepoints!("pread64"), "pread", READS | POSITIONED),
    (libc::SYS_preadv, tracepoints!("preadv"), "pread", READS | POSITIONED | VECTORS),
    (libc::SYS_preadv2, tracepoints!("preadv2"), "pread", READS | POSITIONED | VECTORS),
    (libc::SYS_write, tracepoints!("write"), "write", WRITES),
    (libc::SYS_writev, tracepoints!("writev"), "write", WRITES | VECTORS),
    (libc::SYS_pwrite64, tracepoints!("pwrite64"), "pwrite", WRITES | POSITIONED),
    (libc::SYS_pwritev, tracepoints!("pwritev"), "pwrite", WRITES | POSITIONED | VECTORS),
    (libc::SYS_pwritev2, tracepoints!("pwritev2"), "pwrite", WRITES | POSITIONED | VECTORS),
    (libc::SYS_lseek, tracepoints!("lseek"), "lseek", DESCRIPTOR),
    (libc::SYS_close, tracepoints!("close"), "close", DESCRIPTOR),
    (libc::SYS_fsync, tracepoints!("fsync"), "fsync", DESCRIPTOR),
    (libc::SYS_fdatasync, tracepoints!("fdatasync"), "fdatasync", DESCRIPTOR),
    (libc::SYS_sync_file_range, tracepoints!("sync_file_range"), "sync_file_range", DESCRIPTOR),
    (libc::SYS_ftruncate, tracepoints!("ftruncate"), "truncate", DESCRIPTOR),
    (libc::SYS_truncate, tracepoints!("truncate"), "truncate", PATH),
    (libc::SYS_fallocate, tracepoints!("fallocate"), "fallocate", DESCRIPTOR),
    (libc::SYS_unlinkat, tracepoints!("unlinkat"), "unlink", PATH_AT),
    (libc::SYS_renameat2, tracepoints!("renameat2"), "rename", PATH_AT),
    (libc::SYS_fstat, tracepoints!("newfstat"), "stat", DESCRIPTOR),
    (libc::SYS_statx, tracepoints!("statx"), "stat", PATH_AT),
];

/// Calls that newer machines do without.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: [Entry; 8] = [
    (libc::SYS_open, tracepoints!("open"), "open", PATH | OPENS),
    (libc::SYS_creat, tracepoints!("creat"), "open", PATH | OPENS),
    (libc::SYS_unlink, tracepoints!("unlink"), "unlink", PATH),
    (libc::SYS_rename, tracepoints!("rename"), "rename", PATH),
    (libc::SYS_renameat, tracepoints!("renameat"), "rename", PATH_AT),
    (libc::SYS_stat, tracepoints!("newstat"), "stat", PATH),
    (libc::SYS_lstat, tracepoints!("newlstat"), "stat", PATH),
    (libc::SYS_newfstatat, tracepoints!("newfstatat"), "stat", PATH_AT),
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: [Entry; 2] = [
    (libc::SYS_renameat, tracepoints!("renameat"), "rename", PATH_AT),
    (libc::SYS_newfstatat, tracepoints!("newfstatat"), "stat", PATH_AT),
];

/// Calls that end their process, so that they are in no figure: the kind behind the last.
const NEVER_RETURN: [libc::c_long; 2] = [libc::SYS_exit, libc::SYS_exit_group];
/// Calls that also return in the process that they make: the kind behind that.
#[cfg(target_arch = "x86_64")]
const RETURN_TWICE: [libc::c_long; 4] = [libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const RETURN_TWICE: [libc::c_long; 2] = [libc::SYS_clone, libc::SYS_clone3];

/// Calls that a server makes often and that are counted by number alone.
const NAMES: [(libc::c_long, &str); 40] = [
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_bind, "bind"),
    (libc::SYS_brk, "brk"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_clone, "clone"),
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_epoll_create1, "epoll_create1"),
    (libc::SYS_epoll_ctl, "epoll_ctl"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_fadvise64, "fadvise64"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fstatfs, "fstatfs"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_getrandom, "getrandom"),
    (libc::SYS_getrusage, "getrusage"),
    (libc::SYS_io_submit, "io_submit"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_kill, "kill"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_mremap, "mremap"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_rt_sigaction, "rt_sigaction"),
    (libc::SYS_rt_sigprocmask, "rt_sigprocmask"),
    (libc::SYS_rt_sigreturn, "rt_sigreturn"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_setitimer, "setitimer"),
    (libc::SYS_socket, "socket"),
    (libc::SYS_wait4, "wait4"),
];

#[cfg(target_arch = "x86_64")]
const NAMES_OF_THIS_MACHINE: [(libc::c_long, &str); 9] = [
    (libc::SYS_access, "access"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_fork, "fork"),
    (libc::SYS_link, "link"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_readlink, "readlink"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_select, "select"),
];
#[cfg(not(target_arch = "x86_64"))]
const NAMES_OF_THIS_MACHINE: [(libc::c_long, &str); 0] = [];

/// The name of a call that is counted by number alone.
pub(super) fn name_of(number: usize) -> String {
    let all = NAMES.iter().chain(&NAMES_OF_THIS_MACHINE);
    let known = all.into_iter().find(|(known, _)| usize::try_from(*known) == Ok(number));
    match known {
        Some((_, name)) => (*name).to_owned(),
        None if number == SYSCALLS - 1 => "numbers beyond the table".to_owned(),
        None => format!("number {number}"),
    }
}

fn tables() -> ([u8; SYSCALLS], [u8; SYSCALLS]) {
    let (mut kinds, mut ways) = ([0; SYSCALLS], [0; SYSCALLS]);
    for (number, _, kind, way) in BY_NUMBER.iter().chain(&OF_THIS_MACHINE) {
        let place = KINDS.iter().position(|known| known == kind).expect("the tables use the names of KINDS");
        let number = usize::try_from(*number).expect("numbers of calls are not negative");
        (kinds[number], ways[number]) = (place as u8 + 1, *way);
    }
    let beside = NEVER_RETURN.iter().map(|number| (number, 1)).chain(RETURN_TWICE.iter().map(|number| (number, 2)));
    for (&number, behind) in beside {
        kinds[usize::try_from(number).expect("numbers of calls are not negative")] = KINDS.len() as u8 + behind;
    }
    (kinds, ways)
}

/// The tracepoints of every call of a kind: of its entry, and of its end.
pub(super) fn tracepoints() -> impl Iterator<Item = [&'static str; 2]> {
    BY_NUMBER.iter().chain(&OF_THIS_MACHINE).map(|(_, tracepoints, _, _)| *tracepoints)
}

/// `struct settings`: the target's folder, how calls are met, and the tables.
pub(super) fn settings(known: &Known, files: &Files, met: Counted) -> Result<Vec<u8>, Refusal> {
    let root = real(&files.folder)?;
    let found = file_system_of(&root)?;
    let device = Known::key_device(&found, true);
    let mut name = root.to_string_lossy().into_owned().into_bytes();
    name.push(b'/');
    if name.len() >= ROOT_BYTES {
        return Err(Refusal::from(format!("{} is longer than {ROOT_BYTES} bytes", root.display())));
    }
    let mut words = folders::words(&known.devices(), true)?;
    words.extend([libc::O_APPEND as u32, name.len() as u32, device]);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(found.inode.to_ne_bytes());
    name.resize(ROOT_BYTES, 0);
    bytes.extend(name);
    let names_tell = u32::from(files.layout == Layout::Postgres);
    let words = [libc::SYS_rt_sigreturn as u32, met as u32, names_tell, 0];
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    let (kinds, ways) = tables();
    bytes.extend(kinds);
    bytes.extend(ways);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_number() {
        let (kinds, ways) = tables();
        let kind = |number: libc::c_long| KINDS[usize::from(kinds[number as usize]) - 1];
        assert_eq!(kind(libc::SYS_pread64), "pread");
        assert_eq!(kind(libc::SYS_statx), "stat");
        assert_eq!(ways[libc::SYS_close as usize], DESCRIPTOR);
        assert_eq!(kinds[libc::SYS_sendto as usize], 0);
        assert_eq!(name_of(libc::SYS_sendto as usize), "sendto");
        assert_eq!(name_of(SYSCALLS - 2), "number 510");
    }
}
