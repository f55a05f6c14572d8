//! What a line of the kernel's log tells of. The first rule that fits decides, so what is special stands before what is general.
//!
//! The fact that constrains it: the kernel promises no wording. Rules name the fixed part of what kernels from 5.15 on write, a line
//! that no rule knows has no class, and the golden lines beside say which kernels' words were looked at.

/// What a line tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Panic,
    Oops,
    Lockup,
    HungTask,
    RcuStall,
    Bug,
    Warning,
    Oom,
    Allocation,
    Io,
    FileSystem,
    MachineCheck,
    Thermal,
}

use Class::{
    Allocation, Bug, FileSystem, HungTask, Io, Lockup, MachineCheck, Oom, Oops, Panic, RcuStall, Thermal, Warning,
};

/// All of them, in the order of the series' columns.
pub(super) const CLASSES: [Class; 13] =
    [Panic, Oops, Lockup, HungTask, RcuStall, Bug, Warning, Oom, Allocation, Io, FileSystem, MachineCheck, Thermal];

impl Class {
    /// As records have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Panic => "panic",
            Oops => "oops",
            Lockup => "lockup",
            HungTask => "hung_task",
            RcuStall => "rcu_stall",
            Bug => "bug",
            Warning => "warning",
            Oom => "oom",
            Allocation => "allocation",
            Io => "io",
            FileSystem => "file_system",
            MachineCheck => "machine_check",
            Thermal => "thermal",
        }
    }
}

/// A line fits where it begins with the first and has each of the others somewhere after it.
type Rule = (Class, &'static str, &'static [&'static str]);

const RULES: [Rule; 63] = [
    (Panic, "Kernel panic - not syncing", &[]),
    (Oops, "BUG: unable to handle", &[]),
    (Oops, "BUG: kernel NULL pointer dereference", &[]),
    (Oops, "Unable to handle kernel", &[]),
    (Oops, "Oops:", &[]),
    (Oops, "Internal error: Oops", &[]),
    (Oops, "general protection fault", &[]),
    (Oops, "kernel tried to execute NX-protected page", &[]),
    (Lockup, "", &["BUG: soft lockup"]),
    (Lockup, "", &["hard LOCKUP"]),
    (Lockup, "BUG: workqueue lockup", &[]),
    (HungTask, "INFO: task ", &[" blocked for more than "]),
    (RcuStall, "rcu: INFO: ", &["detected", "stall"]),
    (RcuStall, "rcu: ", &["kthread starved for"]),
    (RcuStall, "rcu: ", &["kthread timer wakeup didn't happen"]),
    (RcuStall, "INFO: rcu_", &["detected", "stall"]),
    (Bug, "kernel BUG at ", &[]),
    (Bug, "BUG: ", &[]),
    (Bug, "Internal error: ", &[]),
    (Bug, "UBSAN: ", &[]),
    (Warning, "WARNING: ", &[]),
    (Warning, "INFO: possible ", &["lock"]),
    (Warning, "refcount_t: ", &[]),
    (Warning, "list_", &["corruption"]),
    (Oom, "", &["invoked oom-killer:"]),
    (Oom, "Out of memory: Killed process", &[]),
    (Oom, "Memory cgroup out of memory: Killed process", &[]),
    (Oom, "oom-kill:", &[]),
    (Oom, "Out of memory and no killable processes", &[]),
    (Allocation, "", &["page allocation failure: order:"]),
    (Allocation, "SLUB: Unable to allocate memory", &[]),
    (FileSystem, "EXT4-fs error", &[]),
    (FileSystem, "EXT4-fs warning", &[]),
    (FileSystem, "EXT4-fs (", &["emounting filesystem read-only"]),
    (FileSystem, "EXT4-fs (", &["elayed block allocation failed"]),
    (FileSystem, "EXT4-fs (", &["I/O error"]),
    (FileSystem, "EXT2-fs", &["error"]),
    (FileSystem, "Aborting journal on device", &[]),
    (FileSystem, "JBD2: ", &["rror"]),
    (FileSystem, "XFS (", &["orruption"]),
    (FileSystem, "XFS (", &["I/O error"]),
    (FileSystem, "XFS (", &["hutting down filesystem"]),
    (FileSystem, "XFS (", &["has been shut down"]),
    (FileSystem, "XFS (", &["possible memory allocation deadlock"]),
    (FileSystem, "BTRFS error", &[]),
    (FileSystem, "BTRFS critical", &[]),
    (FileSystem, "BTRFS: error", &[]),
    (FileSystem, "BTRFS: ", &["ransaction aborted"]),
    (FileSystem, "nfs: server ", &[" not responding"]),
    (Io, "", &["I/O error, dev "]),
    (Io, "Buffer I/O error on dev", &[]),
    (Io, "critical ", &[" error, dev "]),
    (Io, "nvme ", &["timeout"]),
    (Io, "nvme ", &["controller is down"]),
    (Io, "ata", &["exception Emask"]),
    (Io, "ata", &["failed command:"]),
    (Io, "sd ", &["FAILED Result:"]),
    (Io, "md/raid", &["failure"]),
    (MachineCheck, "", &["[Hardware Error]"]),
    (MachineCheck, "EDAC ", &["CE ", " on "]),
    (MachineCheck, "EDAC ", &["UE ", " on "]),
    (MachineCheck, "Memory failure: ", &[]),
    (Thermal, "", &["temperature", "above threshold"]),
];
/// Beside the rules: the firmware's own words for a machine that is too hot.
const TOO_HOT: &str = "critical temperature reached";

/// What a line tells of; None of most lines.
pub(super) fn class_of(text: &str) -> Option<Class> {
    let rest = text.trim_start();
    let fits = |(_, begin, parts): &&Rule| {
        let mut left = rest.strip_prefix(begin);
        for part in *parts {
            left = left.and_then(|left| left.split_once(part)).map(|(_, after)| after);
        }
        left.is_some()
    };
    let found = RULES.iter().find(fits).map(|(class, ..)| *class);
    found.or_else(|| rest.contains(TOO_HOT).then_some(Thermal))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kernel_log::record::parsed;

    /// Lines `class`, a tab, and a record as the kernel gives it; "-" is none.
    const GOLDEN: [(&str, &str); 3] = [
        ("failures.txt", include_str!("golden/failures.txt")),
        ("devices.txt", include_str!("golden/devices.txt")),
        ("quiet.txt", include_str!("golden/quiet.txt")),
    ];

    #[test]
    fn golden_lines_have_their_classes() {
        for (file, text) in GOLDEN {
            for (number, line) in text.lines().enumerate() {
                let (expected, raw) = line.split_once('\t').unwrap();
                let found = class_of(&parsed(raw).unwrap().text).map_or("-", Class::name);
                assert_eq!(found, expected, "{file}:{}: {raw}", number + 1);
            }
        }
    }

    #[test]
    fn every_class_has_a_golden_line() {
        for class in CLASSES {
            let has =
                |(_, text): &(&str, &str)| text.lines().any(|line| line.starts_with(&format!("{}\t", class.name())));
            assert!(GOLDEN.iter().any(has), "{}", class.name());
        }
    }
}
