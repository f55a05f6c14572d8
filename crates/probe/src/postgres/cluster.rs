//! A running server of PostgreSQL by its data directory: its first process, and the class of each of its folders.

use crate::Refusal;
use crate::folders::{Class, Files, Layout, Tree, real};
use crate::subject::Subject;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Its first process, of which all others are children.
    pub(crate) postmaster: u32,
    /// Its version.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "read by the probes that this build is without"))]
    pub(crate) major: u32,
    #[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "read by the probes that this build is without"))]
    folder: PathBuf,
}

/// Whether the process works in `folder`, as the first process of a server does.
fn works_in(process: &Path, folder: &Path) -> bool {
    let (Ok(its), Ok(folder)) = (fs::metadata(process.join("cwd")), fs::metadata(folder)) else { return false };
    (its.dev(), its.ino()) == (folder.dev(), folder.ino())
}

fn number(path: &Path) -> Result<u32, Refusal> {
    let text = fs::read_to_string(path).map_err(|error| {
        let reason = format!("{}: {error}", path.display());
        let remedy = (error.kind() == ErrorKind::PermissionDenied).then(|| "run as root".to_owned());
        Refusal { reason, remedy }
    })?;
    let first = text.lines().next().unwrap_or_default().trim();
    first.parse().map_err(|_| Refusal::from(format!("{}: \"{first}\" is not a number", path.display())))
}

impl Cluster {
    /// The one that runs on the cluster in `folder`.
    pub(crate) fn of(folder: &Path) -> Result<Self, Refusal> {
        let (postmaster, major) = (number(&folder.join("postmaster.pid"))?, number(&folder.join("PG_VERSION"))?);
        let process = PathBuf::from(format!("/proc/{postmaster}"));
        if !process.exists() {
            let remedy = "start the server; a stale postmaster.pid does no harm";
            return Err(Refusal::with_remedy(format!("no server runs on {}", folder.display()), remedy));
        }
        // The file is left behind by a server that was killed, and numbers are given again.
        if !works_in(&process, folder) {
            let program = fs::read_link(process.join("exe"));
            let is =
                program.map_or("has ended".to_owned(), |it| format!("is {} and runs in another folder", it.display()));
            let folder = folder.display();
            let reason = format!("no server runs on {folder}: process {postmaster}, which postmaster.pid names, {is}");
            let remedy = "start the server; for one in a container run the agent in the container's process namespace";
            return Err(Refusal::with_remedy(reason, remedy));
        }
        Ok(Self { postmaster, major, folder: folder.to_owned() })
    }

    /// It has not ended since.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "asked by the probes that this build is without"))]
    pub(crate) fn runs(&self) -> bool {
        works_in(&PathBuf::from(format!("/proc/{}", self.postmaster)), &self.folder)
    }
}

/// The first process of the server that runs on `data_directory`.
///
/// # Errors
/// When none does.
pub fn first_process(data_directory: &Path) -> Result<u32, Refusal> {
    Ok(Cluster::of(data_directory)?.postmaster)
}

/// The processes and files of the server that runs on `data_directory`.
///
/// # Errors
/// When none does, or the folder is not a data directory.
pub fn subject(data_directory: &Path) -> Result<Subject, Refusal> {
    let process = first_process(data_directory)?;
    Ok(Subject { process, files: files(data_directory)? })
}

/// The folders of a cluster, whether a server runs on it or not: its data directory, with WAL and tablespaces where their links
/// lead.
///
/// # Errors
/// When the folder is not a data directory.
pub fn files(data_directory: &Path) -> Result<Files, Refusal> {
    let tree = |path: &Path, class| real(path).map(|path| Tree { path, class });
    let mut trees = vec![tree(data_directory, Class::Other)?];
    for (name, class) in [("base", Class::Data), ("global", Class::Global), ("pg_wal", Class::Wal)] {
        trees.push(tree(&data_directory.join(name), class)?);
    }
    if let Ok(spaces) = fs::read_dir(data_directory.join("pg_tblspc")) {
        for space in spaces.flatten() {
            trees.push(tree(&space.path(), Class::Data)?);
        }
    }
    Ok(Files { folder: data_directory.to_owned(), trees, layout: Layout::Postgres })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_server_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Cluster::of(folder.path()).unwrap_err().reason.contains("postmaster.pid"));
        fs::write(folder.path().join("PG_VERSION"), "15\n").unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", u32::MAX)).unwrap();
        assert!(Cluster::of(folder.path()).unwrap_err().reason.contains("no server runs on"));
    }

    #[test]
    fn a_number_that_was_given_again_is_no_server() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("PG_VERSION"), "15\n").unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", std::process::id())).unwrap();
        let refused = Cluster::of(folder.path()).unwrap_err();
        assert!(refused.reason.contains("runs in another folder"), "{refused}");
        let mut server = std::process::Command::new("sleep").arg("5").current_dir(folder.path()).spawn().unwrap();
        fs::write(folder.path().join("postmaster.pid"), format!("{}\n/data\n", server.id())).unwrap();
        // It is there before it has gone to the folder.
        let found = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Cluster::of(folder.path()).ok()
        });
        let found = found.unwrap();
        assert!(found.runs() && found.postmaster == server.id());
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(!found.runs());
    }

    #[test]
    fn links_are_followed_and_a_folder_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (data, wal, space) = (folder.path().join("data"), folder.path().join("wal"), folder.path().join("space"));
        for name in ["base/5", "global", "pg_tblspc"] {
            fs::create_dir_all(data.join(name)).unwrap();
        }
        assert!(files(&data).unwrap_err().reason.contains("pg_wal"));
        fs::create_dir(&wal).unwrap();
        fs::create_dir(&space).unwrap();
        std::os::unix::fs::symlink(&wal, data.join("pg_wal")).unwrap();
        std::os::unix::fs::symlink(&space, data.join("pg_tblspc/16390")).unwrap();
        let found = files(&data).unwrap().trees;
        let class_of = |path: &Path| {
            let path = fs::canonicalize(path).unwrap();
            found.iter().find(|tree| tree.path == path).map(|tree| tree.class)
        };
        assert_eq!(class_of(&wal), Some(Class::Wal));
        assert_eq!(class_of(&space), Some(Class::Data));
        assert_eq!(class_of(&data), Some(Class::Other));
        assert_eq!(class_of(&data.join("base")), Some(Class::Data));
    }
}
