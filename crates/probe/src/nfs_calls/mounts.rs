//! Mounts of NFS, as mountinfo has them: which of them hold the target's files, and where their servers are.
//!
//! The fact that constrains it: the client counts by mount, and a packet belongs to a server. So of a server that a target's
//! mount is of, all mounts are listed.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The kernel's names of its file systems of NFS.
pub(crate) const KINDS: [&str; 2] = ["nfs", "nfs4"];
const PORT: u16 = 2049;

/// A mount of NFS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Its number in mountinfo.
    pub(super) id: u64,
    /// Major and minor number: mounts that share them share what the client counts.
    pub(super) device: String,
    pub(super) place: PathBuf,
    /// "server:/export".
    pub(super) source: String,
    /// Effective ones, of the mount and of its file system.
    pub(super) options: String,
    /// None where mountinfo does not say, as of a host that is known by its name alone.
    pub(super) server: Option<(IpAddr, u16)>,
    pub(super) is_tcp: bool,
}

/// The mounts of NFS of a text of mountinfo (proc_pid_mountinfo(5)).
pub(super) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let own: Vec<&str> = left.split(' ').collect();
    let [kind, source, options] = right.splitn(3, ' ').collect::<Vec<_>>().try_into().ok()?;
    if !KINDS.contains(&kind) {
        return None;
    }
    let value = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    // An address of a link has its interface behind it.
    let address = value("addr").and_then(|address| address.split('%').next()?.parse().ok());
    let port = value("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != 0).unwrap_or(PORT);
    Some(Mount {
        id: own.first()?.parse().ok()?,
        device: (*own.get(2)?).to_owned(),
        place: PathBuf::from(unescaped(own.get(4)?)),
        source: unescaped(source),
        options: format!("{},{options}", own.get(5)?),
        server: address.map(|address| (address, port)),
        is_tcp: value("proto").is_none_or(|protocol| protocol.starts_with("tcp")),
    })
}

/// Blanks and the like stand as octal numbers.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => bytes.extend([&b"\\"[..], part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The mount that `path` lies on, if it is one of these.
pub(super) fn holding<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let wanted = rustix::fs::StatxFlags::MNT_ID;
    let found = rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), wanted).ok()?;
    mounts.iter().find(|mount| mount.id == found.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:38 / /mnt/db\\040one rw,noatime shared:9 - nfs4 10.0.0.2:/srv/db rw,vers=4.2,rsize=8192,wsize=8192,hard,\
proto=tcp,timeo=600,sec=sys,clientaddr=10.0.0.1,local_lock=none,addr=10.0.0.2
41 22 0:39 / /mnt/wal rw - nfs filer:/wal rw,vers=3,rsize=1024,proto=udp,port=20049,mountaddr=10.0.0.3,addr=10.0.0.3
42 22 0:40 / /six rw - nfs4 [fe80::1%eth0]:/ rw,vers=4.1,proto=tcp6,addr=fe80::1%eth0
43 22 0:41 / /odd rw - nfs4 server:/ rw,vers=4.1
";

    #[test]
    fn mounts_of_nfs_have_their_servers() {
        let mounts = parse(TEXT);
        let told: Vec<_> = mounts.iter().map(|one| (one.place.to_str().unwrap(), one.server, one.is_tcp)).collect();
        let server = |address: &str, port| Some((address.parse().unwrap(), port));
        assert_eq!(
            told,
            [
                ("/mnt/db one", server("10.0.0.2", 2049), true),
                ("/mnt/wal", server("10.0.0.3", 20049), false),
                ("/six", server("fe80::1", 2049), true),
                ("/odd", None, true),
            ]
        );
        assert_eq!(
            (mounts[0].id, mounts[0].device.as_str(), mounts[0].source.as_str()),
            (40, "0:38", "10.0.0.2:/srv/db")
        );
        assert!(mounts[0].options.starts_with("rw,noatime,rw,vers=4.2,rsize=8192"));
    }

    #[test]
    fn a_path_is_held_by_the_mount_that_the_kernel_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut mounts = parse(TEXT);
        mounts.retain(|one| holding(std::slice::from_ref(one), folder.path()).is_none());
        assert_eq!(holding(&mounts, folder.path()), None);
        let found = rustix::fs::statx(
            rustix::fs::CWD,
            folder.path(),
            rustix::fs::AtFlags::empty(),
            rustix::fs::StatxFlags::MNT_ID,
        );
        mounts.push(Mount { id: found.unwrap().stx_mnt_id, ..parse(TEXT)[3].clone() });
        assert_eq!(holding(&mounts, folder.path()).unwrap().place, Path::new("/odd"));
    }

    #[test]
    fn odd_escapes_stay_as_they_are() {
        assert_eq!(unescaped("a\\040b\\9c\\"), "a b\\9c\\");
    }
}
