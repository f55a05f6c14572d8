//! What a process waits for where the server does not tell its wait events: by the system call in which it blocks, and by
//! what the call's descriptor is. The tables of `struct settings`, the names, and the same for a process that only /proc knows.
//!
//! The fact that constrains it: a lock of a table or a row, a worker and mere time are waited for in the same call and on the
//! same descriptors. They are `other_wait` together, and only waits on semaphores (light locks, the log's write lock too) are
//! `lock`.

use super::buckets::{
    CLIENT, DATA_READ, DATA_SYNC, DATA_WRITE, LOCK, NETWORK_SEND, OTHER_WAIT, TEMP_IO, UNATTRIBUTED, WAL_SYNC,
    WAL_WRITE,
};
use super::records::SYSTEM_CALL;
use crate::folders::{self, Class, Tree};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// System calls that the program's table has room for.
pub(super) const CALLS: usize = 512;

/// `enum way`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Unknown,
    Semaphore,
    Pause,
    Epoll,
    Read,
    Write,
    Sync,
}

const WAYS: usize = 8;
const PLACES: usize = 8;
const PLACE_NONE: usize = 0;
const PLACE_SOCKET: usize = 6;
const PLACE_ELSEWHERE: usize = 7;
/// Bits of a wait that tell the place begin here.
const PLACE_SHIFT: u32 = 16;
/// Blocked in no system call.
const NO_CALL: u32 = 0xff_ffff;
const FILE_FAULT: u32 = 0xff_fffe;

type Entry = (libc::c_long, &'static str, Way);

const BY_NUMBER: [Entry; 28] = [
    (libc::SYS_futex, "futex", Way::Semaphore),
    (libc::SYS_semop, "semop", Way::Semaphore),
    (libc::SYS_semtimedop, "semtimedop", Way::Semaphore),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", Way::Pause),
    (libc::SYS_nanosleep, "nanosleep", Way::Pause),
    (libc::SYS_pselect6, "pselect6", Way::Pause),
    (libc::SYS_ppoll, "ppoll", Way::Pause),
    (libc::SYS_wait4, "wait4", Way::Pause),
    (libc::SYS_epoll_pwait, "epoll_pwait", Way::Epoll),
    (libc::SYS_read, "read", Way::Read),
    (libc::SYS_readv, "readv", Way::Read),
    (libc::SYS_pread64, "pread64", Way::Read),
    (libc::SYS_preadv, "preadv", Way::Read),
    (libc::SYS_preadv2, "preadv2", Way::Read),
    (libc::SYS_recvfrom, "recvfrom", Way::Read),
    (libc::SYS_fadvise64, "fadvise64", Way::Read),
    (libc::SYS_write, "write", Way::Write),
    (libc::SYS_writev, "writev", Way::Write),
    (libc::SYS_pwrite64, "pwrite64", Way::Write),
    (libc::SYS_pwritev, "pwritev", Way::Write),
    (libc::SYS_pwritev2, "pwritev2", Way::Write),
    (libc::SYS_sendto, "sendto", Way::Write),
    (libc::SYS_ftruncate, "ftruncate", Way::Write),
    (libc::SYS_fallocate, "fallocate", Way::Write),
    (libc::SYS_sync_file_range, "sync_file_range", Way::Write),
    (libc::SYS_fsync, "fsync", Way::Sync),
    (libc::SYS_fdatasync, "fdatasync", Way::Sync),
    (libc::SYS_io_uring_enter, "io_uring_enter", Way::Pause),
];

/// Calls that newer machines do without.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: [Entry; 3] = [
    (libc::SYS_epoll_wait, "epoll_wait", Way::Epoll),
    (libc::SYS_poll, "poll", Way::Pause),
    (libc::SYS_select, "select", Way::Pause),
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: [Entry; 0] = [];

fn known(number: u32) -> Option<&'static Entry> {
    let same = |entry: &&Entry| u32::try_from(entry.0) == Ok(number);
    BY_NUMBER.iter().chain(&OF_THIS_MACHINE).find(same)
}

fn way_of(number: u32) -> Way {
    known(number).map_or(Way::Unknown, |(_, _, way)| *way)
}

/// By number.
pub(super) fn call_ways() -> [u8; CALLS] {
    std::array::from_fn(|number| way_of(number as u32) as u8)
}

fn class_at(place: usize) -> Option<Class> {
    folders::CLASSES.get(place.checked_sub(1)?).and_then(|name| Class::named(name))
}

fn bucket(way: Way, place: usize) -> u8 {
    let class = class_at(place);
    match (way, class) {
        (Way::Unknown, _) => UNATTRIBUTED,
        (Way::Semaphore, _) => LOCK,
        (Way::Read, _) if place == PLACE_SOCKET => CLIENT,
        (Way::Write, _) if place == PLACE_SOCKET => NETWORK_SEND,
        (Way::Read | Way::Write, Some(Class::Temp)) => TEMP_IO,
        (Way::Read, Some(Class::Data | Class::Global)) => DATA_READ,
        (Way::Write, Some(Class::Data | Class::Global)) => DATA_WRITE,
        (Way::Write, Some(Class::Wal)) => WAL_WRITE,
        (Way::Sync, Some(Class::Data | Class::Global)) => DATA_SYNC,
        (Way::Sync, Some(Class::Wal)) => WAL_SYNC,
        _ => OTHER_WAIT,
    }
}

/// By way, then by place.
pub(super) fn way_buckets() -> [u8; WAYS * PLACES] {
    const ALL: [Way; WAYS] =
        [Way::Unknown, Way::Semaphore, Way::Pause, Way::Epoll, Way::Read, Way::Write, Way::Sync, Way::Unknown];
    std::array::from_fn(|at| bucket(ALL[at / PLACES], at % PLACES))
}

/// What stands for a wait event where there was none; None where `event` is one.
pub(super) fn name_of(event: u32) -> Option<String> {
    let of = event.checked_sub(SYSTEM_CALL)?;
    match of {
        NO_CALL => return Some("page fault".to_owned()),
        FILE_FAULT => return Some("page fault on a file".to_owned()),
        _ => {}
    }
    let (place, number) = ((of >> PLACE_SHIFT) as usize, of & ((1 << PLACE_SHIFT) - 1));
    let call = known(number).map_or_else(|| number.to_string(), |(_, name, _)| (*name).to_owned());
    let of_what = match place {
        PLACE_SOCKET => Some("client"),
        PLACE_ELSEWHERE => Some("elsewhere"),
        place => folders::CLASSES.get(place.wrapping_sub(1)).copied(),
    };
    Some(of_what.map_or(format!("system call {call}"), |what| format!("system call {call} ({what})")))
}

/// What a sleeping process waits for, as the program would tell it, by /proc: the wait, and its bucket. `trees` are the
/// server's folders; a process without a client has sockets, too.
pub(super) fn doing(pid: u32, has_client: bool, trees: &[Tree]) -> Option<(u32, u8)> {
    let line = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?.parse::<i64>().ok()?;
    let descriptor = words.next().and_then(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    let Ok(number) = u32::try_from(number) else { return Some((SYSTEM_CALL | NO_CALL, UNATTRIBUTED)) };
    let (way, place) = match (way_of(number), descriptor) {
        (Way::Epoll, Some(descriptor)) => epoll(pid, descriptor),
        (way @ (Way::Read | Way::Write | Way::Sync), Some(descriptor)) => (way, place_of(pid, descriptor, trees)),
        (way, _) => (way, PLACE_NONE),
    };
    let place = if place == PLACE_SOCKET && !has_client { PLACE_ELSEWHERE } else { place };
    let event = SYSTEM_CALL | (place as u32) << PLACE_SHIFT | (number & ((1 << PLACE_SHIFT) - 1));
    Some((event, bucket(way, place)))
}

fn is_socket(pid: u32, descriptor: u32) -> bool {
    fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).is_ok_and(|found| found.file_type().is_socket())
}

/// Whether the instance has a socket in it, and for which event.
fn epoll(pid: u32, descriptor: u32) -> (Way, usize) {
    const WRITABLE: u32 = 4;
    let lines = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    // "tfd:       10 events:       19 data: ..."
    let of_target = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let target: u32 = words.next()?.parse().ok()?;
        Some((target, u32::from_str_radix(words.nth(1)?, 16).ok()?))
    };
    match lines.lines().filter_map(of_target).find(|(target, _)| is_socket(pid, *target)) {
        Some((_, events)) if events & WRITABLE != 0 => (Way::Write, PLACE_SOCKET),
        Some(_) => (Way::Read, PLACE_SOCKET),
        None => (Way::Pause, PLACE_NONE),
    }
}

fn place_of(pid: u32, descriptor: u32, trees: &[Tree]) -> usize {
    if is_socket(pid, descriptor) {
        return PLACE_SOCKET;
    }
    let Ok(file) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else { return PLACE_NONE };
    place_of_file(&file, trees)
}

/// The deepest folder wins.
fn place_of_file(file: &Path, trees: &[Tree]) -> usize {
    let above = trees.iter().filter(|tree| file.starts_with(&tree.path));
    let Some(tree) = above.max_by_key(|tree| tree.path.as_os_str().len()) else { return PLACE_ELSEWHERE };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let class = if tree.class == Class::Data && folders::is_temp(&name) { Class::Temp } else { tree.class };
    class as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::buckets::BUCKETS;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn place(class: &str) -> usize {
        folders::CLASSES.iter().position(|known| *known == class).unwrap() + 1
    }

    fn bucket_by_tables(call: libc::c_long, place: usize) -> &'static str {
        let way = usize::from(call_ways()[call as usize]);
        BUCKETS[usize::from(way_buckets()[way * PLACES + place])]
    }

    #[test]
    fn call_and_class_tell_the_bucket() {
        for (call, class, expected) in [
            (libc::SYS_pread64, "data", "data_read"),
            (libc::SYS_preadv, "global", "data_read"),
            (libc::SYS_pread64, "temp", "temp_io"),
            (libc::SYS_pwrite64, "data", "data_write"),
            (libc::SYS_pwrite64, "wal", "wal_write"),
            (libc::SYS_fdatasync, "wal", "wal_sync"),
            (libc::SYS_fsync, "data", "data_sync"),
            (libc::SYS_fsync, "other", "other_wait"),
            (libc::SYS_unlinkat, "data", "unattributed"),
        ] {
            assert_eq!(bucket_by_tables(call, place(class)), expected, "{call} {class}");
        }
        assert_eq!(bucket_by_tables(libc::SYS_futex, PLACE_NONE), "lock");
        assert_eq!(bucket_by_tables(libc::SYS_clock_nanosleep, PLACE_NONE), "other_wait");
        assert_eq!(bucket_by_tables(libc::SYS_recvfrom, PLACE_SOCKET), "client");
        assert_eq!(bucket_by_tables(libc::SYS_sendto, PLACE_SOCKET), "network_send");
    }

    #[test]
    fn names_have_call_and_class() {
        let event = |call: libc::c_long, place: usize| SYSTEM_CALL | (place as u32) << PLACE_SHIFT | call as u32;
        let name = |event| name_of(event).unwrap();
        assert_eq!(name(event(libc::SYS_fdatasync, place("wal"))), "system call fdatasync (wal)");
        assert_eq!(name(event(libc::SYS_recvfrom, PLACE_SOCKET)), "system call recvfrom (client)");
        assert_eq!(name(event(libc::SYS_futex, PLACE_NONE)), "system call futex");
        assert_eq!(name(event(511, PLACE_NONE)), "system call 511");
        assert_eq!(name(SYSTEM_CALL | NO_CALL), "page fault");
        assert_eq!(name(SYSTEM_CALL | FILE_FAULT), "page fault on a file");
        assert_eq!(name_of(0x0a00_0000), None);
    }

    #[test]
    fn files_are_of_the_deepest_folder() {
        let tree = |path: &str, class| Tree { path: path.into(), class };
        let trees = [tree("/s", Class::Other), tree("/s/base", Class::Data), tree("/wal", Class::Wal)];
        let of = |path: &str| place_of_file(Path::new(path), &trees);
        assert_eq!((of("/s/base/5/1234"), of("/s/base/5/t3_99")), (place("data"), place("temp")));
        assert_eq!((of("/s/pg_xact/0000"), of("/wal/0001")), (place("other"), place("wal")));
        assert_eq!(of("/somewhere/else"), PLACE_ELSEWHERE);
    }

    /// What is told of a child when it has blocked.
    fn told(command: &mut Command) -> (String, &'static str) {
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut found = None;
        // Until it has come to what it is to do, it is seen in something else.
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(10));
            found = doing(child.id(), true, &[]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (event, bucket) = found.unwrap();
        (name_of(event).unwrap(), BUCKETS[usize::from(bucket)])
    }

    #[test]
    fn a_process_that_was_never_seen_is_told_by_proc() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"a line\n").unwrap();
        let of_client = told(Command::new("cat").stdin(std::os::fd::OwnedFd::from(theirs)));
        assert_eq!(of_client, ("system call read (client)".to_owned(), "client"));
        let (name, bucket) = told(Command::new("sleep").arg("5"));
        assert!(name.ends_with("nanosleep") && bucket == "other_wait", "{name} {bucket}");
    }
}
