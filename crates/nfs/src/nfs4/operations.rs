//! The operations of NFS 4.0 to 4.2: numbers, names, and what their arguments and results are made of.
//!
//! From RFC 7530, 8881, 7862 and 8276. The letters are those of `grammar`.

/// An operation.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// Of its arguments.
    pub(super) arguments: &'static str,
    /// Of its results where it succeeded.
    pub(super) results: &'static str,
}

const fn of(name: &'static str, arguments: &'static str, results: &'static str) -> Shape {
    Shape { name, arguments, results }
}

pub(super) const CREATE: u32 = 6;
pub(super) const GETATTR: u32 = 9;
pub(super) const GETFH: u32 = 10;
pub(super) const LOCK: u32 = 12;
pub(super) const LOCKT: u32 = 13;
pub(super) const LOOKUP: u32 = 15;
pub(super) const LOOKUPP: u32 = 16;
pub(super) const OPEN: u32 = 18;
pub(super) const PUTFH: u32 = 22;
pub(super) const PUTPUBFH: u32 = 23;
pub(super) const PUTROOTFH: u32 = 24;
pub(super) const READ: u32 = 25;
pub(super) const RESTOREFH: u32 = 31;
pub(super) const SAVEFH: u32 = 32;
pub(super) const SETATTR: u32 = 34;
pub(super) const SETCLIENTID: u32 = 35;
pub(super) const WRITE: u32 = 38;
pub(super) const GETDEVICEINFO: u32 = 47;
pub(super) const SEQUENCE: u32 = 53;
pub(super) const COPY: u32 = 60;
pub(super) const READ_PLUS: u32 = 68;
const FIRST: u32 = 3;
const ACCESS: u32 = 3;
const LAYOUTRETURN: u32 = 51;

const OPERATIONS: [Shape; 73] = [
    of("ACCESS", "u", "uu"),
    of("CLOSE", "us", "s"),
    of("COMMIT", "Uu", "U"),
    of("CREATE", "Cof", "uUUb"),
    of("DELEGPURGE", "U", ""),
    of("DELEGRETURN", "s", ""),
    of("GETATTR", "b", "f"),
    of("GETFH", "", "o"),
    of("LINK", "o", "uUU"),
    of("LOCK", "uuUUK", "s"),
    of("LOCKT", "uUUUo", ""),
    of("LOCKU", "uusUU", "s"),
    of("LOOKUP", "o", ""),
    of("LOOKUPP", "", ""),
    of("NVERIFY", "f", ""),
    of("OPEN", "O", "suUUubD"),
    of("OPENATTR", "u", ""),
    of("OPEN_CONFIRM", "su", "s"),
    of("OPEN_DOWNGRADE", "suuu", "s"),
    of("PUTFH", "o", ""),
    of("PUTPUBFH", "", ""),
    of("PUTROOTFH", "", ""),
    of("READ", "sUu", "uo"),
    of("READDIR", "UUuub", "U{Uof}u"),
    of("READLINK", "", "o"),
    of("REMOVE", "o", "uUU"),
    of("RENAME", "oo", "uUUuUU"),
    of("RENEW", "U", ""),
    of("RESTOREFH", "", ""),
    of("SAVEFH", "", ""),
    of("SECINFO", "o", "[N]"),
    of("SETATTR", "sf", "b"),
    of("SETCLIENTID", "Uouoou", "UU"),
    of("SETCLIENTID_CONFIRM", "UU", ""),
    of("VERIFY", "f", ""),
    of("WRITE", "sUuo", "uuU"),
    of("RELEASE_LOCKOWNER", "Uo", ""),
    of("BACKCHANNEL_CTL", "u[P]", ""),
    of("BIND_CONN_TO_SESSION", "Suu", "Suu"),
    of("EXCHANGE_ID", "UouX[ooUu]", "UuuYUoo[ooUu]"),
    of("CREATE_SESSION", "Uuuuuuuuubuuuuuubu[P]", "Suuuuuuuubuuuuuub"),
    of("DESTROY_SESSION", "S", ""),
    of("FREE_STATEID", "s", ""),
    of("GET_DIR_DELEGATION", "ubUuUubb", "G"),
    of("GETDEVICEINFO", "Suub", "uob"),
    of("GETDEVICELIST", "uuUU", "UU[S]u"),
    of("LAYOUTCOMMIT", "UUus(U)(Uu)uo", "(U)"),
    of("LAYOUTGET", "uuuUUUsu", "us[UUuuo]"),
    of("LAYOUTRETURN", "uuuL", "(s)"),
    of("SECINFO_NO_NAME", "u", "[N]"),
    of("SEQUENCE", "Suuuu", "Suuuuu"),
    of("SET_SSV", "oo", "o"),
    of("TEST_STATEID", "[s]", "[u]"),
    of("WANT_DELEGATION", "?", "?"),
    of("DESTROY_CLIENTID", "U", ""),
    of("RECLAIM_COMPLETE", "u", ""),
    of("ALLOCATE", "sUU", ""),
    of("COPY", "ssUUUuu[A]", "[s]UuUuu"),
    of("COPY_NOTIFY", "sA", "Uus[A]"),
    of("DEALLOCATE", "sUU", ""),
    of("IO_ADVISE", "sUUb", "b"),
    of("LAYOUTERROR", "UUs[Suu]", ""),
    of("LAYOUTSTATS", "UUsUUUUSuo", ""),
    of("OFFLOAD_CANCEL", "s", ""),
    of("OFFLOAD_STATUS", "s", "U[u]"),
    of("READ_PLUS", "sUu", "u[R]"),
    of("SEEK", "sUu", "uU"),
    of("WRITE_SAME", "?", "?"),
    of("CLONE", "ssUUU", ""),
    of("GETXATTR", "o", "o"),
    of("SETXATTR", "uoo", "uUU"),
    of("LISTXATTRS", "Uu", "U[o]u"),
    of("REMOVEXATTR", "o", "uUU"),
];

const CALLBACKS: [&str; 13] = [
    "CB_GETATTR",
    "CB_RECALL",
    "CB_LAYOUTRECALL",
    "CB_NOTIFY",
    "CB_PUSH_DELEG",
    "CB_RECALL_ANY",
    "CB_RECALLABLE_OBJ_AVAIL",
    "CB_RECALL_SLOT",
    "CB_SEQUENCE",
    "CB_WANTS_CANCELLED",
    "CB_NOTIFY_LOCK",
    "CB_NOTIFY_DEVICEID",
    "CB_OFFLOAD",
];
/// The callback that precedes others in a session.
pub(super) const CB_SEQUENCE: u32 = 11;

fn shape(number: u32) -> Option<&'static Shape> {
    OPERATIONS.get(number.checked_sub(FIRST)? as usize)
}

/// What an operation is made of; of one that is not known nothing is.
pub(super) fn known(number: u32) -> Shape {
    shape(number).map_or(of("", "?", "?"), |known| of(known.name, known.arguments, known.results))
}

/// Its name, or its number.
pub(crate) fn name(number: u32) -> String {
    shape(number).map_or_else(|| number.to_string(), |known| known.name.to_owned())
}

/// The same of a callback.
pub(crate) fn callback_name(number: u32) -> String {
    let place = number.checked_sub(FIRST).map(|place| place as usize);
    place.and_then(|place| CALLBACKS.get(place)).map_or_else(|| number.to_string(), |&name| name.to_owned())
}

/// How much an operation is what its compound is about; the first of the highest is the main one.
pub(super) fn weight(number: u32) -> u8 {
    match number {
        SEQUENCE => 0,
        PUTFH | PUTPUBFH | PUTROOTFH | SAVEFH | RESTOREFH => 1,
        GETFH => 2,
        GETATTR => 3,
        ACCESS => 4,
        LAYOUTRETURN => 5,
        _ => 6,
    }
}
