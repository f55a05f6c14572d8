//! File classes by folder: what a file is to its target is told by where it lies.

#[cfg(feature = "bpf")]
mod known;

#[cfg(feature = "bpf")]
pub(crate) use known::{Known, is_temp};

use crate::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

/// What a file is to its target; the order is the programs'.
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
    /// Everything else of the target.
    Other,
}

/// Names in the record, in the programs' order.
pub const CLASSES: [&str; 5] = ["data", "wal", "global", "temp", "other"];
/// `CLASS_SELF_TEST`.
#[cfg(feature = "bpf")]
pub(crate) const SELF_TEST: u32 = 5;
/// `CLASS_OWN`: the number of the first class of a workload's own in the programs that know such classes.
#[cfg(feature = "bpf")]
pub(crate) const OWN: u32 = SELF_TEST + 1;
/// `OWN_CLASSES`.
const OWN_CLASSES: usize = 8;
/// `NAME_BYTES`: what a program reads of a file's name, its end included.
const NAME_BYTES: usize = 16;
/// File systems that a target may lie on.
#[cfg(feature = "bpf")]
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
#[cfg(feature = "bpf")]
pub(crate) fn words(devices: &[u32], by_subvolume: bool) -> Result<Vec<u32>, Refusal> {
    if devices.len() > DEVICES {
        return Err(Refusal::from(format!("the target lies on more than {DEVICES} file systems")));
    }
    let mut words = devices.to_vec();
    words.resize(DEVICES, 0);
    words.push(u32::from(by_subvolume));
    Ok(words)
}

/// A class of a workload's own: of the files of another class, those whose names begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnClass {
    /// What the record calls it.
    pub name: String,
    /// What the names of its files begin with.
    pub begins: String,
    /// The class that they would have otherwise, of which it is a part.
    pub within: Class,
}

impl OwnClass {
    /// Whether a file of this name, in a folder of this class, is one of its.
    #[cfg(feature = "bpf")]
    pub(crate) fn has(&self, name: &str, within: Class) -> bool {
        self.within == within && name.starts_with(&self.begins)
    }

    /// `struct own_class`.
    #[cfg(feature = "bpf")]
    fn words(&self) -> impl Iterator<Item = u32> {
        let (mut begins, mut mask) = ([0; NAME_BYTES], [0; NAME_BYTES]);
        for (at, byte) in self.begins.bytes().take(NAME_BYTES).enumerate() {
            (begins[at], mask[at]) = (byte, u8::MAX);
        }
        let of = |bytes: [u8; NAME_BYTES]| {
            let (words, _) = bytes.as_chunks::<4>();
            words.iter().map(|word| u32::from_ne_bytes(*word)).collect::<Vec<_>>()
        };
        of(begins).into_iter().chain(of(mask)).chain([self.within as u32])
    }
}

/// Whether a request may have these classes of a workload's own.
///
/// # Errors
/// A sentence that names the class and says what is allowed.
pub fn check_own(own: &[OwnClass]) -> Result<(), String> {
    if own.len() > OWN_CLASSES {
        return Err(format!("{} classes; allowed: at most {OWN_CLASSES}", own.len()));
    }
    for (at, one) in own.iter().enumerate() {
        let name = &one.name;
        if name.is_empty() || CLASSES.contains(&name.as_str()) || own[..at].iter().any(|other| other.name == *name) {
            return Err(format!("\"{name}\"; allowed: a name that no other class has"));
        }
        if one.begins.is_empty() || one.begins.len() >= NAME_BYTES || one.begins.contains(['/', '\0']) {
            let most = NAME_BYTES - 1;
            return Err(format!("\"{name}\" begins with \"{}\"; allowed: 1 to {most} bytes of a name", one.begins));
        }
    }
    Ok(())
}

/// `own` of the settings of a program that knows such classes; the first that fits a file has it.
#[cfg(feature = "bpf")]
pub(crate) fn own_words(own: &[OwnClass]) -> Vec<u32> {
    let mut words: Vec<u32> = own.iter().flat_map(OwnClass::words).collect();
    words.resize(OWN_CLASSES * (2 * NAME_BYTES / 4 + 1), 0);
    words
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

/// What the names of files below a folder tell of their class, where no open file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Those of a data directory of PostgreSQL.
    Postgres,
    /// Nothing: all files are of one class, [`Class::Other`].
    Plain,
}

/// The folders of a target with the classes of their files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// What its names begin with; on its file system self-tests make files without a name.
    pub(crate) folder: PathBuf,
    pub(crate) trees: Vec<Tree>,
    pub(crate) layout: Layout,
}

impl Files {
    /// Those of a folder that is no database's: they are of one class, [`Class::Other`].
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn of_folder(folder: &Path) -> Result<Self, Refusal> {
        let path = real(folder)?;
        let trees = vec![Tree { path: path.clone(), class: Class::Other }];
        Ok(Self { folder: path, trees, layout: Layout::Plain })
    }

    /// Those of folders that are no database's, each with the class of its files.
    ///
    /// # Errors
    /// When there is none, or one of them is not there.
    pub fn of_trees(mut trees: Vec<Tree>) -> Result<Self, Refusal> {
        for tree in &mut trees {
            tree.path = real(&tree.path)?;
        }
        let folder = trees.first().ok_or_else(|| Refusal::from("no folder to watch".to_owned()))?.path.clone();
        Ok(Self { folder, trees, layout: Layout::Plain })
    }

    /// The same, with the files of one more folder, below the first, of another class.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn with(mut self, folder: &Path, class: Class) -> Result<Self, Refusal> {
        self.trees.push(Tree { path: real(folder)?, class });
        Ok(self)
    }

    /// Each folder with its class; a deeper one wins.
    #[must_use]
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// What programs in the kernel are told of them.
    #[cfg(feature = "bpf")]
    pub(crate) fn known(&self) -> Result<Known, Refusal> {
        Known::of(&self.trees, true)
    }
}
