//! Columns that are numbers in the kernel's text files: those that this machine gives, read anew for every row.
//!
//! The fact that constrains it: each file is opened once and read once a row, however many columns it gives.

use crate::text::{Rereadable, keyed};
use plimsoll_record::ABSENT_SAMPLE;
use std::path::{Path, PathBuf};

/// Where in a file's text the number stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    /// After a line's first word.
    Key(&'static str),
    /// After all first words that begin so, summed.
    Keys(&'static str),
    /// The n-th word of the file.
    Word(usize),
    /// The n-th number of the line `cpu`.
    Cpu(usize),
    /// The total in a line of a pressure file.
    Pressure(&'static str),
    /// Free blocks of 2^n pages, in all zones: `Node 0, zone   Normal  10423 ...`.
    FreeBlocks(usize),
}

impl Field {
    fn value(self, text: &str) -> Option<i64> {
        match self {
            Self::Key(key) => keyed(text, key),
            Self::Keys(begin) => {
                summed(text.lines().filter(|line| line.starts_with(begin)).map(|line| number(line, 1)))
            }
            Self::Word(place) => number(text, place),
            Self::Cpu(place) => number(text.lines().find(|line| line.starts_with("cpu "))?, place + 1),
            Self::Pressure(line) => {
                let line = text.lines().find(|candidate| candidate.starts_with(line))?;
                line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
            }
            Self::FreeBlocks(order) => summed(text.lines().map(|line| number(line, 4 + order))),
        }
    }
}

fn number(text: &str, place: usize) -> Option<i64> {
    text.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// The sum of what is known; None of nothing.
fn summed(numbers: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    numbers.flatten().fold(None, |sum: Option<i64>, number| Some(sum.unwrap_or(0) + number))
}

/// The columns that there are, in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<&'static str>,
    files: Vec<File>,
    row: Vec<i64>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    opened: Rereadable,
    /// Places in the row, and where each is found.
    gives: Vec<(usize, Field)>,
}

impl Columns {
    /// Of those asked for (name, file, place in it) the ones that can be read now.
    pub(crate) fn open(asked: impl IntoIterator<Item = (&'static str, PathBuf, Field)>) -> Self {
        let mut columns = Self { names: Vec::new(), files: Vec::new(), row: Vec::new() };
        for (name, path, field) in asked {
            let place = columns.names.len();
            let Some(file) = columns.file(&path) else { continue };
            if file.opened.read().is_ok_and(|text| field.value(text).is_some()) {
                file.gives.push((place, field));
                columns.names.push(name);
            }
        }
        columns
    }

    /// The file, opened if it was not yet; None of one that cannot be.
    fn file(&mut self, path: &Path) -> Option<&mut File> {
        let known = self.files.iter().position(|file| file.path == path);
        let place = known.or_else(|| {
            let opened = Rereadable::open(path).ok()?;
            self.files.push(File { path: path.to_owned(), opened, gives: Vec::new() });
            Some(self.files.len() - 1)
        })?;
        self.files.get_mut(place)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.names.clone()
    }

    /// Calls `row` with one; what cannot be read any more is absent.
    pub(crate) fn sample(&mut self, row: &mut dyn FnMut(&[i64])) {
        self.row.clear();
        self.row.resize(self.names.len(), ABSENT_SAMPLE);
        for file in &mut self.files {
            let Ok(text) = file.opened.read() else { continue };
            for &(place, field) in &file.gives {
                self.row[place] = field.value(text).unwrap_or(ABSENT_SAMPLE);
            }
        }
        row(&self.row);
    }
}
