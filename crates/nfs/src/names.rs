//! Names of programs and their procedures, and the list of operations that a capture had.

use crate::rpc;
use std::collections::HashMap;

/// Operations that are told apart; more are nonsense.
const OPERATIONS_MAX: usize = 4096;
const COMPOUNDS_MAX: usize = 16_384;

/// An operation that a capture had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its program and version: "nfs3", "nfs4.1", "mount3".
    pub protocol: String,
    /// Its name in the standard, or its number.
    pub name: String,
}

pub(crate) const NFS3: [&str; 22] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    "READ",
    "WRITE",
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
];
const NFS2: [&str; 18] = [
    "NULL",
    "GETATTR",
    "SETATTR",
    "ROOT",
    "LOOKUP",
    "READLINK",
    "READ",
    "WRITECACHE",
    "WRITE",
    "CREATE",
    "REMOVE",
    "RENAME",
    "LINK",
    "SYMLINK",
    "MKDIR",
    "RMDIR",
    "READDIR",
    "STATFS",
];
const NFS4: [&str; 2] = ["NULL", "COMPOUND"];
const CALLBACK: [&str; 2] = ["CB_NULL", "CB_COMPOUND"];
const NFS_ACL: [&str; 3] = ["NULL", "GETACL", "SETACL"];
const MOUNT: [&str; 6] = ["NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"];
const NLM: [&str; 24] = [
    "NULL",
    "TEST",
    "LOCK",
    "CANCEL",
    "UNLOCK",
    "GRANTED",
    "TEST_MSG",
    "LOCK_MSG",
    "CANCEL_MSG",
    "UNLOCK_MSG",
    "GRANTED_MSG",
    "TEST_RES",
    "LOCK_RES",
    "CANCEL_RES",
    "UNLOCK_RES",
    "GRANTED_RES",
    "SM_NOTIFY",
    "17",
    "18",
    "19",
    "SHARE",
    "UNSHARE",
    "NM_LOCK",
    "FREE_ALL",
];
const NSM: [&str; 7] = ["NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"];
const PORTMAP: [&str; 6] = ["NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"];

fn program(number: u32, version: u32) -> (String, &'static [&'static str]) {
    let (name, procedures): (_, &[&str]) = match (number, version) {
        (rpc::NFS, 2) => ("nfs", &NFS2),
        (rpc::NFS, 3) => ("nfs", &NFS3),
        (rpc::NFS, _) => ("nfs", &NFS4),
        (rpc::NFS_ACL, _) => ("nfsacl", &NFS_ACL),
        (rpc::MOUNT, _) => ("mount", &MOUNT),
        (rpc::NLM, _) => ("nlm", &NLM),
        (rpc::NSM, _) => ("nsm", &NSM),
        (rpc::PORTMAP, _) => ("portmap", &PORTMAP),
        (number, _) if rpc::is_callback(number) => return ("nfs4-callback".to_owned(), &CALLBACK),
        (number, version) => return (format!("program {number} version {version}"), &[]),
    };
    (format!("{name}{version}"), procedures)
}

/// What an operation is, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A procedure of a program and version.
    Procedure(u32, u32, u32),
    /// The main operation of a compound of NFS 4 and a minor version.
    Compound(u32, u32),
    /// The same of a server's calls to its client.
    Callback(u32),
}

/// The operations and the compounds that a capture had, in the order in which they were seen.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Key, u32>,
    pub(crate) operations: Vec<Operation>,
    compound_numbers: HashMap<Box<[u32]>, u32>,
    pub(crate) compounds: Vec<Vec<String>>,
}

impl Names {
    pub(crate) fn operation(&mut self, key: Key) -> u32 {
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.operations.len() >= OPERATIONS_MAX {
            return crate::call::NOT_NAMED;
        }
        let operation = match key {
            Key::Procedure(number, version, procedure) => {
                let (protocol, procedures) = program(number, version);
                let name = procedures.get(procedure as usize).map_or_else(|| procedure.to_string(), |&n| n.to_owned());
                Operation { protocol, name }
            }
            Key::Compound(minor, operation) => {
                Operation { protocol: format!("nfs4.{minor}"), name: crate::nfs4::name(operation) }
            }
            Key::Callback(operation) => {
                Operation { protocol: "nfs4-callback".to_owned(), name: crate::nfs4::callback_name(operation) }
            }
        };
        let number = self.operations.len() as u32;
        self.operations.push(operation);
        self.numbers.insert(key, number);
        number
    }

    /// The number of a list of operations, as compounds have them.
    pub(crate) fn compound(&mut self, operations: &[u32], name: fn(u32) -> String) -> u32 {
        if let Some(&number) = self.compound_numbers.get(operations) {
            return number;
        }
        if self.compounds.len() >= COMPOUNDS_MAX {
            return crate::call::NOT_NAMED;
        }
        let number = self.compounds.len() as u32;
        self.compounds.push(operations.iter().map(|&operation| name(operation)).collect());
        self.compound_numbers.insert(operations.into(), number);
        number
    }
}
