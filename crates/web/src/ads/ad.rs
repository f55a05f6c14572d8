//! An advertisement, and the file that is its picture.

use crate::file_set::{CLASSES, FILES_A_CLASS, Place};

/// Files of a directory: an advertisement's picture is one of them.
const FILES_A_DIRECTORY: u16 = CLASSES as u16 * FILES_A_CLASS as u16;

/// An advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ad {
    /// Its number, from 0.
    pub id: u16,
    /// Whom it is for: bits of all five fields.
    pub demographics: u32,
    /// What a match in each of the fields counts, four bits each, the first field's highest.
    pub weights: u32,
    /// It is shown where the matches count so much together.
    pub minimum: u32,
    /// When it expires, in seconds since 1970.
    pub expires_s: i64,
}

impl Ad {
    /// Its picture. There are pictures in ten directories; a set with fewer has them in those that it has.
    pub fn picture(self, directories: u32) -> Place {
        let file = self.id % FILES_A_DIRECTORY;
        Place {
            directory: u32::from(self.id / FILES_A_DIRECTORY) % directories,
            class: (file / u16::from(FILES_A_CLASS)) as u8,
            file: (file % u16::from(FILES_A_CLASS)) as u8,
        }
    }
}
