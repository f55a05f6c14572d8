//! Reading the kernel's text files.

use crate::ProbeError;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A file that is opened once and read again for every sample.
#[derive(Debug)]
pub(crate) struct Rereadable {
    file: File,
    text: String,
}

impl Rereadable {
    pub(crate) fn open(path: &Path) -> Result<Self, ProbeError> {
        let named = |source| ProbeError::File { path: path.display().to_string(), source };
        let mut opened = Self { file: File::open(path).map_err(named)?, text: String::new() };
        opened.read().map_err(named)?;
        Ok(opened)
    }

    /// Its text now.
    pub(crate) fn read(&mut self) -> io::Result<&str> {
        self.text.clear();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut self.text)?;
        Ok(&self.text)
    }
}

/// The number after the line's first word `key`, which may end in a colon.
pub(crate) fn keyed(text: &str, key: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()?.trim_end_matches(':') == key).then(|| words.next()?.parse().ok()).flatten()
    })
}
