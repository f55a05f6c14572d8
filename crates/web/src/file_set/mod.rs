//! The set of files: directories of 36 files in four classes of size.
//!
//! Sizes of class c are 1 to 9 times 0.1, 1, 10 and 100 KiB, cut to whole bytes.

mod contents;
mod laid_out;

pub(crate) use contents::first_line;
pub use contents::{Contents, LINE_BYTES, PLACEHOLDER, Part};
pub use laid_out::{FileSet, FileSetError};

use std::ops::Range;

/// Classes of size.
pub const CLASSES: u8 = 4;
/// Files of a class in a directory.
pub const FILES_A_CLASS: u8 = 9;
/// Bytes of a directory's files.
pub const DIRECTORY_BYTES: u64 = 5_119_484;
/// Bytes of a path: `/file_set/dir00000/class0_0`.
pub const PATH_BYTES: usize = 27;
/// Where in it the directory's number is, and those of the class and the file.
const DIRECTORY_AT: Range<usize> = 13..18;
const CLASS_AT: usize = 24;
const FILE_AT: usize = 26;
/// Directories have five digits.
pub(crate) const DIRECTORIES_MAX: u32 = 100_000;

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// From 0, below 100,000.
    pub directory: u32,
    /// From 0 to 3.
    pub class: u8,
    /// From 0 to 8.
    pub file: u8,
}

impl Place {
    /// Its bytes.
    pub fn size(self) -> usize {
        (usize::from(self.file) + 1) * 1024 * 10usize.pow(u32::from(self.class)) / 10
    }

    /// Its path below the document root, as a server is asked for it.
    pub fn path(self) -> String {
        self.path_bytes().into_iter().map(char::from).collect()
    }

    /// The same for what may not allocate.
    pub(crate) fn path_bytes(self) -> [u8; PATH_BYTES] {
        let mut path = *b"/file_set/dir00000/class0_0";
        write_right(&mut path[DIRECTORY_AT], self.directory as usize);
        path[CLASS_AT] += self.class;
        path[FILE_AT] += self.file;
        path
    }

    /// The inverse of [`Place::path`].
    pub fn of_path(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/file_set/dir")?;
        let (directory, rest) = rest.split_at_checked(5)?;
        let digits = rest.strip_prefix("/class")?.as_bytes();
        let &[class @ b'0'..=b'3', b'_', file @ b'0'..=b'8'] = digits else { return None };
        let all_digits = directory.bytes().all(|digit| digit.is_ascii_digit());
        let directory = directory.parse().ok().filter(|_| all_digits)?;
        Some(Self { directory, class: class - b'0', file: file - b'0' })
    }

    /// Place of its class and number among a directory's files.
    pub(crate) fn in_directory(self) -> usize {
        usize::from(self.class) * usize::from(FILES_A_CLASS) + usize::from(self.file)
    }

    /// All files of a directory.
    pub fn all_of(directory: u32) -> impl Iterator<Item = Self> {
        (0..CLASSES).flat_map(move |class| (0..FILES_A_CLASS).map(move |file| Self { directory, class, file }))
    }
}

/// Writes a number's digits to the right end of `text`, and leaves what is before them.
fn write_right(text: &mut [u8], number: usize) {
    let mut left = number;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
}

/// Directories for so many simultaneous connections: 25, and a fifth of how many requests of 122,000 bits the connections' line
/// speed of 400,000 bit/s carries in a second.
pub fn directories_for(connections: u32) -> u32 {
    25 + (u64::from(connections) * 400_000 / (5 * 122_000)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_four_classes() {
        let sizes = |class| -> Vec<usize> { (0..9).map(|file| Place { directory: 0, class, file }.size()).collect() };
        assert_eq!(sizes(0), [102, 204, 307, 409, 512, 614, 716, 819, 921]);
        assert_eq!((sizes(1)[0], sizes(1)[8]), (1_024, 9_216));
        assert_eq!((sizes(2)[0], sizes(2)[8]), (10_240, 92_160));
        assert_eq!((sizes(3)[0], sizes(3)[8]), (102_400, 921_600));
        let bytes: usize = Place::all_of(0).map(Place::size).sum();
        assert_eq!((bytes as u64, Place::all_of(0).count()), (DIRECTORY_BYTES, 36));
    }

    #[test]
    fn paths_are_read_back_and_nothing_else_is_a_path() {
        for place in Place::all_of(12_345) {
            assert_eq!((Place::of_path(&place.path()), place.path().len()), (Some(place), PATH_BYTES));
        }
        for wrong in [
            "/file_set/dir00000/class4_0",
            "/file_set/dir00000/class0_9",
            "/file_set/dir0000/class0_0",
            "/file_set/dir+0000/class0_0",
            "/file_set/dir00000/class0_00",
            "/etc/passwd",
            PLACEHOLDER,
        ] {
            assert_eq!(Place::of_path(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn directories_follow_the_connections() {
        assert_eq!([0, 100, 500, 1000].map(directories_for), [25, 90, 352, 680]);
    }
}
