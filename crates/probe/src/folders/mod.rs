//! File classes by folder: what a file is to the database is told by where it lies.

mod known;

pub(crate) use known::{Known, is_temp};

use crate::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// What a file is to the database; the order is the programs'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tables and indexes.
    Data,
    /// The write-ahead log.
    Wal,
    /// What belongs to no database.
    Global,
    /// Temporary files and relations.
    Temp,
    /// Everything else of the server.
    Other,
}

/// Names in the record, in the programs' order.
pub const CLASSES: [&str; 5] = ["data", "wal", "global", "temp", "other"];
/// `CLASS_SELF_TEST`.
pub(crate) const SELF_TEST: u32 = 5;
/// File systems that a target may lie on.
const DEVICES: usize = 8;

impl Class {
    /// By its name in the record.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Data, Self::Wal, Self::Global, Self::Temp, Self::Other];
        all.into_iter().zip(CLASSES).find_map(|(class, known)| (known == name).then_some(class))
    }
}

/// `struct folders` of folders.h.
pub(crate) fn words(devices: &[u32], by_subvolume: bool) -> Result<Vec<u32>, Refusal> {
    if devices.len() > DEVICES {
        return Err(Refusal::from(format!("the target lies on more than {DEVICES} file systems")));
    }
    let mut words = devices.to_vec();
    words.resize(DEVICES, 0);
    words.push(u32::from(by_subvolume));
    Ok(words)
}

/// A folder and the class of the files in it and below it; a deeper folder wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The folder.
    pub path: PathBuf,
    /// Its class.
    pub class: Class,
}

/// Where `path` really is.
pub(crate) fn real(path: &Path) -> Result<PathBuf, Refusal> {
    fs::canonicalize(path).map_err(|error| Refusal::from(format!("{}: {error}", path.display())))
}

/// The folders of a PostgreSQL server: its data directory, with WAL and tablespaces where their links lead.
///
/// # Errors
/// When the folder is not a data directory.
pub fn of_postgres(data_directory: &Path) -> Result<Vec<Tree>, Refusal> {
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
    Ok(trees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_a_folder_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (data, wal, space) = (folder.path().join("data"), folder.path().join("wal"), folder.path().join("space"));
        for name in ["base/5", "global", "pg_tblspc"] {
            fs::create_dir_all(data.join(name)).unwrap();
        }
        assert!(of_postgres(&data).unwrap_err().reason.contains("pg_wal"));
        fs::create_dir(&wal).unwrap();
        fs::create_dir(&space).unwrap();
        std::os::unix::fs::symlink(&wal, data.join("pg_wal")).unwrap();
        std::os::unix::fs::symlink(&space, data.join("pg_tblspc/16390")).unwrap();
        let found = of_postgres(&data).unwrap();
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
