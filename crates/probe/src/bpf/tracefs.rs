//! Classic tracepoints are attached through tracefs, which a machine may not have mounted. Then it is mounted where nobody
//! else sees it: in a mount namespace of one thread's own, which ends with the thread.

use crate::Refusal;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::path::Path;

const SYSFS: &str = "/sys";
const TRACEFS: &str = "/sys/kernel/tracing";

#[allow(unsafe_code)]
fn mount_privately() -> Result<(), Refusal> {
    let failed = |what: &str, error: Errno| {
        Refusal::with_remedy(format!("{what}: {error}"), format!("mount tracefs on {TRACEFS}, or use BTF tracepoints"))
    };
    // SAFETY: what may not be shared no more are descriptors, which a mount namespace leaves as they are.
    let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    unshared.map_err(|error| failed("no mount namespace of its own", error))?;
    // Of the mount that it stands on, and not of the root, which in a chroot is none.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change(SYSFS, private).map_err(|error| failed(SYSFS, error))?;
    mount("tracefs", TRACEFS, "tracefs", MountFlags::empty(), None).map_err(|error| failed(TRACEFS, error))
}

/// Does `what` where tracefs can be seen; it gets the folder of the events.
pub(crate) fn with_tracefs<T: Send>(what: impl FnOnce(&Path) -> Result<T, Refusal> + Send) -> Result<T, Refusal> {
    let events = Path::new(TRACEFS).join("events");
    if events.is_dir() {
        return what(&events);
    }
    let inside = || mount_privately().and_then(|()| what(&events));
    std::thread::scope(|scope| scope.spawn(inside).join())
        .unwrap_or_else(|_| Err(Refusal::from("attaching to classic tracepoints panicked".to_owned())))
}

/// Where an event has a field, in bytes, by the text of its format file.
pub(crate) fn offset(format: &str, field: &str) -> Option<u32> {
    let declared = |line: &&str| {
        let declaration = line.trim().strip_prefix("field:")?.split(';').next()?;
        let name = declaration.rsplit([' ', '*']).next()?;
        (name.split('[').next()? == field).then_some(())
    };
    let line = format.lines().find(|line| declared(line).is_some())?;
    line.split("offset:").nth(1)?.split(';').next()?.trim().parse().ok()
}
