//! Files as NFS names them (handles), and what they are called where that was seen.

use std::collections::HashMap;

/// Files that are told apart; those beyond have no number.
const FILES_MAX: usize = 1_000_000;
/// Folders above a file that its path is made of.
const DEPTH_MAX: usize = 64;

/// What a file is to a PostgreSQL database, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileClass {
    /// Nothing is known of it.
    Unknown,
    /// The write-ahead log.
    Wal,
    /// Tables and indexes.
    Data,
    /// Shared catalogues.
    Global,
    /// Spilled sorts and hashes.
    Temp,
    /// Any other.
    Other,
}

impl FileClass {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Wal => "wal",
            Self::Data => "data",
            Self::Global => "global",
            Self::Temp => "temp",
            Self::Other => "other",
        }
    }

    /// By its word.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Unknown, Self::Wal, Self::Data, Self::Global, Self::Temp, Self::Other];
        all.into_iter().find(|class| class.name() == name)
    }

    fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some((&name, folders)) = parts.split_last() else { return Self::Other };
        let within = |folder: &str| parts.contains(&folder);
        if within("pgsql_tmp") {
            Self::Temp
        } else if within("pg_wal") || within("pg_xlog") || is_segment(name) {
            Self::Wal
        } else if folders.contains(&"global") {
            Self::Global
        } else if folders.contains(&"base") || within("pg_tblspc") || is_relation(name) {
            Self::Data
        } else {
            Self::Other
        }
    }
}

/// A segment of the WAL: 24 hexadecimal digits.
fn is_segment(name: &str) -> bool {
    name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
}

/// A relation: its number, its fork, the number of its segment.
fn is_relation(name: &str) -> bool {
    let stem = name.split(['.', '_']).next().unwrap_or("");
    !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit())
}

/// A file whose name was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Its path, as far up as folders' names were seen; it begins with `/` if that is up to the export.
    pub path: String,
    /// What it is to a database.
    pub class: FileClass,
}

#[derive(Debug, Default)]
struct File {
    folder: Option<u32>,
    name: Option<Box<str>>,
    /// What it was told to be, as is what lies in it unless that was told, too.
    told: Option<FileClass>,
}

/// The files of a capture.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<Box<[u8]>, u32>,
    files: Vec<File>,
    key: Vec<u8>,
}

impl Files {
    /// The number of a file by its handle at a server.
    pub(crate) fn number(&mut self, server: u32, handle: &[u8]) -> Option<u32> {
        self.key.clear();
        self.key.extend_from_slice(&server.to_le_bytes());
        self.key.extend_from_slice(handle);
        if let Some(&number) = self.numbers.get(&self.key[..]) {
            return Some(number);
        }
        if self.files.len() >= FILES_MAX {
            return None;
        }
        let number = u32::try_from(self.files.len()).ok()?;
        self.numbers.insert(self.key.clone().into_boxed_slice(), number);
        self.files.push(File::default());
        Some(number)
    }

    /// Learns what a file is called in its folder; the last name holds.
    pub(crate) fn name(&mut self, file: u32, folder: Option<u32>, name: &str) {
        if let Some(known) = self.files.get_mut(file as usize) {
            *known = File { folder, name: Some(name.into()), told: known.told };
        }
    }

    /// Is told what a file is called, with all folders above it, and what it is.
    pub(crate) fn tell(&mut self, file: u32, path: &str, class: FileClass) {
        if let Some(known) = self.files.get_mut(file as usize) {
            *known = File { folder: None, name: Some(path.into()), told: Some(class) };
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// What is known of a file.
    pub(crate) fn named(&self, number: u32) -> Option<NamedFile> {
        let mut names = Vec::new();
        let mut told = None;
        let mut next = Some(number);
        while let Some(file) = next.and_then(|number| self.files.get(number as usize)) {
            told = told.or(file.told);
            let Some(name) = &file.name else { break };
            names.push(name.as_ref());
            if names.len() >= DEPTH_MAX {
                break;
            }
            next = file.folder;
        }
        if names.is_empty() {
            return None;
        }
        names.reverse();
        let path = names.join("/").replace("//", "/");
        let class = match told {
            Some(FileClass::Data) if FileClass::of(&path) == FileClass::Temp => FileClass::Temp,
            Some(told) => told,
            None => FileClass::of(&path),
        };
        Some(NamedFile { path, class })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_of_the_folders_that_were_seen() {
        let mut files = Files::default();
        let number = |files: &mut Files, handle: &[u8]| files.number(1, handle).unwrap();
        let (root, base, one) = (number(&mut files, b"r"), number(&mut files, b"b"), number(&mut files, b"f"));
        assert_eq!(number(&mut files, b"b"), base);
        assert_ne!(files.number(2, b"b"), Some(base));
        files.name(root, None, "/");
        files.name(base, Some(root), "base");
        files.name(one, Some(base), "16384.1");
        assert_eq!(files.named(one).unwrap(), NamedFile { path: "/base/16384.1".to_owned(), class: FileClass::Data });
        assert_eq!(files.named(3), None);
    }

    #[test]
    fn folders_in_a_circle_end() {
        let mut files = Files::default();
        let (one, two) = (files.number(1, b"1").unwrap(), files.number(1, b"2").unwrap());
        files.name(one, Some(two), "one");
        files.name(two, Some(one), "two");
        assert!(files.named(one).unwrap().path.starts_with("two/one/"));
    }

    #[test]
    fn what_was_told_is_not_guessed_and_goes_down_to_what_is_found_in_it() {
        let mut files = Files::default();
        let number = |files: &mut Files, handle: &[u8]| files.number(1, handle).unwrap();
        let (tree, space) = (number(&mut files, b"t"), number(&mut files, b"s"));
        files.tell(tree, "/tree", FileClass::Other);
        files.tell(space, "/space/PG_15/5", FileClass::Data);
        for (folder, name, class) in [
            (tree, "16384", FileClass::Other),
            (space, "anything", FileClass::Data),
            (space, "pgsql_tmp", FileClass::Temp),
        ] {
            let file = number(&mut files, name.as_bytes());
            files.name(file, Some(folder), name);
            assert_eq!(files.named(file).unwrap().class, class, "{name}");
        }
        assert_eq!(files.named(tree).unwrap(), NamedFile { path: "/tree".to_owned(), class: FileClass::Other });
    }

    #[test]
    fn classes_go_by_names() {
        for (path, class) in [
            ("/data/pg_wal/000000010000000000000001", FileClass::Wal),
            ("000000010000000000000001", FileClass::Wal),
            ("base/5/16384_fsm", FileClass::Data),
            ("16384.12", FileClass::Data),
            ("/data/global/1262", FileClass::Global),
            ("/data/base/pgsql_tmp/pgsql_tmp12.0", FileClass::Temp),
            ("/data/postgresql.conf", FileClass::Other),
            ("/", FileClass::Other),
        ] {
            assert_eq!(FileClass::of(path), class, "{path}");
        }
    }
}
