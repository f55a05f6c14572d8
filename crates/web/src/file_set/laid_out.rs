//! The files in a folder: written, found again, checked and removed.
//!
//! The fact that constrains it: a folder with anything else in it is not touched. What is written is marked first and named complete
//! last, so that what a kill has left is known for what it is.

use super::contents::{Contents, first_line};
use super::{DIRECTORIES_MAX, DIRECTORY_BYTES, LINE_BYTES, Place};
use plimsoll_record::Check;
use std::fs::{self, File};
use std::io::{self, IoSlice, Read, Write};
use std::path::{Path, PathBuf};

/// Beside the files: whose they are and how many.
const MARK: &str = ".plimsoll-web";
const FILES: &str = "file_set";
/// Files that differ are named up to here.
const NAMED_MAX: usize = 5;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileSetError {
    /// It holds something else, or another set of files.
    #[error("{folder}: {why}")]
    NotOurs {
        /// Its path.
        folder: PathBuf,
        /// What is in it, and what to do.
        why: String,
    },
    /// A call on a file failed.
    #[error("{path}: {error}")]
    File {
        /// Of what.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
}

/// A set of files.
#[derive(Clone, Debug)]
pub struct FileSet {
    directories: u32,
    ad_every_bytes: usize,
    contents: Contents,
}

impl FileSet {
    /// A set of so many directories, with a tag in each `ad_every_bytes` of classes 1 and 2.
    ///
    /// # Errors
    /// A sentence that names the parameter.
    pub fn new(directories: u32, ad_every_bytes: u32) -> Result<Self, String> {
        if !(1..=DIRECTORIES_MAX).contains(&directories) {
            return Err(format!("directories: {directories} is not between 1 and {DIRECTORIES_MAX}"));
        }
        let ad_every_bytes = ad_every_bytes as usize;
        if ad_every_bytes == 0 || !ad_every_bytes.is_multiple_of(LINE_BYTES) {
            return Err(format!("ad_every_bytes: {ad_every_bytes} is not a multiple of {LINE_BYTES}"));
        }
        Ok(Self { directories, ad_every_bytes, contents: Contents::new(ad_every_bytes) })
    }

    /// How many directories it has.
    pub fn directories(&self) -> u32 {
        self.directories
    }

    /// What is in the files.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        u64::from(self.directories) * DIRECTORY_BYTES
    }

    /// Writes all files into the empty folder `root`, and has them reach the device. `tell` hears of the bytes done.
    ///
    /// # Errors
    /// When there is anything in it, or a file cannot be written.
    pub fn lay_out(&self, root: &Path, tell: &mut dyn FnMut(u64)) -> Result<(), FileSetError> {
        if let Some(other) = fs::read_dir(root).map_err(failed(root))?.next() {
            let name = other.map_err(failed(root))?.file_name();
            return Err(not_ours(root, format!("it holds {}: give a folder that is empty", name.display())));
        }
        write(&root.join(MARK), &[b"incomplete\n"])?;
        for directory in 0..self.directories {
            let folder = root.join(FILES).join(format!("dir{directory:05}"));
            fs::create_dir_all(&folder).map_err(failed(&folder))?;
            for place in Place::all_of(directory) {
                let path = at(root, place);
                write(&path, &[&first_line(place), &self.contents.text(place)[LINE_BYTES..]])?;
            }
            tell(DIRECTORY_BYTES);
        }
        // One call for the file system and not one for each of many thousand files.
        let folder = File::open(root).map_err(failed(root))?;
        rustix::fs::syncfs(&folder).map_err(|error| failed(root)(error.into()))?;
        write(&root.join(MARK), &[self.mark().as_bytes()])?;
        File::open(root.join(MARK)).and_then(|mark| mark.sync_all()).map_err(failed(root))
    }

    /// Makes sure that `root` holds this set, by its mark.
    ///
    /// # Errors
    /// When it does not.
    pub fn recognise(&self, root: &Path) -> Result<(), FileSetError> {
        match fs::read_to_string(root.join(MARK)) {
            Ok(mark) if mark == self.mark() => Ok(()),
            Ok(mark) => {
                let why = format!("its files are \"{}\" and not \"{}\"", mark.trim(), self.mark().trim());
                Err(not_ours(root, format!("{why}: drop them and load again")))
            }
            Err(_) => Err(not_ours(root, "no set of files was loaded into it: load one first".to_owned())),
        }
    }

    /// Reads every file.
    ///
    /// # Errors
    /// When the set is not there at all.
    pub fn check(&self, root: &Path) -> Result<Vec<Check>, FileSetError> {
        self.recognise(root)?;
        let (mut wrong, mut named, mut bytes, mut found) = (0u64, Vec::new(), 0, Vec::new());
        for place in (0..self.directories).flat_map(Place::all_of) {
            found.clear();
            let read = File::open(at(root, place)).and_then(|mut file| file.read_to_end(&mut found));
            bytes += found.len() as u64;
            if read.is_err() || !self.is(place, &found) {
                wrong += 1;
                if named.len() < NAMED_MAX {
                    named.push(place.path());
                }
            }
        }
        let others = if wrong == 0 { "0".to_owned() } else { format!("{wrong}: {}", named.join(", ")) };
        Ok(vec![
            check("bytes of the file set", self.bytes().to_string(), bytes.to_string()),
            check("files that are not as loaded", "0".to_owned(), others),
        ])
    }

    /// Removes the files, and says whether there were any.
    ///
    /// # Errors
    /// When the folder holds something else, or a file cannot be removed.
    pub fn remove(root: &Path) -> Result<bool, FileSetError> {
        let names = match fs::read_dir(root) {
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => Err(error),
        };
        let names = names.map_err(failed(root))?;
        if names.is_empty() {
            return Ok(false);
        }
        if !names.iter().any(|name| name == MARK) {
            let why = format!("it holds {} and no set of files: nothing was removed", names[0].display());
            return Err(not_ours(root, why));
        }
        let files = root.join(FILES);
        match fs::remove_dir_all(&files) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&files)(error)),
            _ => {}
        }
        // Last, so that what a kill leaves of the files is still known as ours.
        let mark = root.join(MARK);
        fs::remove_file(&mark).map_err(failed(&mark))?;
        Ok(true)
    }

    /// Whether `bytes` are the file at `place`.
    fn is(&self, place: Place, bytes: &[u8]) -> bool {
        let text = self.contents.text(place);
        bytes.len() == text.len()
            && bytes[..LINE_BYTES] == first_line(place)
            && bytes[LINE_BYTES..] == text[LINE_BYTES..]
    }

    fn mark(&self) -> String {
        format!("file set 1, {} directories, ads every {} bytes\n", self.directories, self.ad_every_bytes)
    }
}

fn at(root: &Path, place: Place) -> PathBuf {
    root.join(&place.path()[1..])
}

/// Writes a file from its parts with one call where the kernel takes them all.
fn write(path: &Path, parts: &[&[u8]]) -> Result<(), FileSetError> {
    let written = File::create(path).and_then(|mut file| {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let done = file.write_vectored(&slices)?;
        if done == all { Ok(()) } else { file.write_all(&parts.concat()[done..]) }
    });
    written.map_err(failed(path))
}

fn check(name: &str, expected: String, found: String) -> Check {
    let ok = expected == found;
    Check { name: name.to_owned(), expected, found, ok }
}

fn not_ours(folder: &Path, why: String) -> FileSetError {
    FileSetError::NotOurs { folder: folder.to_owned(), why }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> FileSetError + use<> {
    let path = path.to_owned();
    move |error| FileSetError::File { path: path.clone(), error }
}
