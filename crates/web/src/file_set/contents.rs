//! What is in the files: lines of text, of which the first says which file it is and the others belong to its place in a directory.
//!
//! The fact that constrains it: the check of a body must cost less than its transfer. So files of one name differ between
//! directories in the first line only, and the rest is compared with 36 texts that are made once (5 MB).

use super::{PATH_BYTES, Place, write_right};
use plimsoll_keys::{Words, word_text};

/// Bytes of a line, its end included.
pub const LINE_BYTES: usize = 64;
/// Where in the first line the size ends, and where the path begins.
const SIZE_END: usize = 12;
const PATH_AT: usize = LINE_BYTES - 1 - PATH_BYTES;
/// What an advertisement's tag names until a server puts a path in its place: as long, and no file.
pub const PLACEHOLDER: &str = "/file_set/dirNNNNN/classX_Y";
const TAG_BEGINS: &str = "<!WEB99CAD><IMG SRC=\"";
const TAG_ENDS: &str = "\"><!/WEB99CAD>";
/// The first tag is here; one before would be in the first lines of the smallest file that has any.
const FIRST_TAG_AT: usize = 4 * LINE_BYTES;
/// The texts are the same under every seed: a set of files is known again by its first lines alone.
const TEXT_SEED: u64 = 99;
const LETTERS_A_WORD: usize = 12;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// So many bytes that a server sends as they are.
    Text(usize),
    /// The path in a tag, from its so manieth byte on.
    AdPath(usize),
}

/// What is in every file.
#[derive(Clone, Debug)]
pub struct Contents {
    texts: Vec<Box<[u8]>>,
    ad_every_bytes: usize,
}

impl Contents {
    /// With a tag for an advertisement in each `ad_every_bytes` of the files of class 1 and 2; a multiple of [`LINE_BYTES`].
    ///
    /// # Panics
    /// When it is none, or 0.
    pub fn new(ad_every_bytes: usize) -> Self {
        assert!(ad_every_bytes > 0 && ad_every_bytes.is_multiple_of(LINE_BYTES), "tags are lines");
        let texts = Place::all_of(0).map(|place| text(place, ad_every_bytes)).collect();
        Self { texts, ad_every_bytes }
    }

    /// All of a file but its first line, at its place: the first [`LINE_BYTES`] are not those of the file.
    pub fn text(&self, place: Place) -> &[u8] {
        &self.texts[place.in_directory()]
    }

    /// The whole file.
    pub fn file(&self, place: Place) -> Vec<u8> {
        let mut file = self.text(place).to_vec();
        file[..LINE_BYTES].copy_from_slice(&first_line(place));
        file
    }

    /// Where in the file the paths of its tags begin, each [`PATH_BYTES`] long.
    pub fn ad_paths(&self, place: Place) -> impl Iterator<Item = usize> + use<> {
        ad_paths(place, self.ad_every_bytes)
    }

    /// What of the file is at `offset`, which is below its size.
    pub fn part(&self, place: Place, offset: usize) -> Part {
        let (size, every) = (place.size(), self.ad_every_bytes);
        let first = FIRST_TAG_AT + TAG_BEGINS.len();
        let end = if has_ads(place) { size / LINE_BYTES * LINE_BYTES } else { 0 };
        let is_there = |path: usize| path - TAG_BEGINS.len() < end;
        let tag = offset.checked_sub(first).map(|since| (since / every, since % every));
        let next = match tag {
            Some((tag, inside)) if inside < PATH_BYTES && is_there(first + tag * every) => return Part::AdPath(inside),
            Some((tag, _)) => first + (tag + 1) * every,
            None => first,
        };
        Part::Text(if is_there(next) { next } else { size } - offset)
    }

    /// The file as a server sends it that puts the path of `ad` into every tag.
    pub fn with_ads(&self, place: Place, ad: Place) -> Vec<u8> {
        let (mut file, path) = (self.file(place), ad.path());
        for at in self.ad_paths(place) {
            file[at..at + PATH_BYTES].copy_from_slice(path.as_bytes());
        }
        file
    }
}

/// The first line of a file: its size and its path, each to the right.
pub(crate) fn first_line(place: Place) -> [u8; LINE_BYTES] {
    let mut line = [b' '; LINE_BYTES];
    write_right(&mut line[..SIZE_END], place.size());
    line[PATH_AT..LINE_BYTES - 1].copy_from_slice(&place.path_bytes());
    line[LINE_BYTES - 1] = b'\n';
    line
}

fn has_ads(place: Place) -> bool {
    matches!(place.class, 1 | 2)
}

fn ad_paths(place: Place, every: usize) -> impl Iterator<Item = usize> + use<> {
    let lines = if has_ads(place) { place.size() / LINE_BYTES } else { 0 };
    let tags = (FIRST_TAG_AT..(lines * LINE_BYTES).max(FIRST_TAG_AT)).step_by(every);
    tags.map(|tag| tag + TAG_BEGINS.len())
}

fn text(place: Place, ad_every_bytes: usize) -> Box<[u8]> {
    let mut text = vec![b'\n'; place.size()];
    for (number, line) in text.chunks_mut(LINE_BYTES).enumerate().skip(1) {
        let words = Words::new(TEXT_SEED, place.in_directory() as u64, number as u64);
        let end = line.len() - 1;
        for (field, letters) in line[..end].chunks_mut(LETTERS_A_WORD).enumerate() {
            word_text(words.word(field as u64), letters);
        }
    }
    for path in ad_paths(place, ad_every_bytes) {
        let tag = format!("{TAG_BEGINS}{PLACEHOLDER}{TAG_ENDS} \n");
        text[path - TAG_BEGINS.len()..][..LINE_BYTES].copy_from_slice(tag.as_bytes());
    }
    text.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS_1: Place = Place { directory: 7, class: 1, file: 0 };

    #[test]
    fn files_are_as_long_as_they_say_and_say_who_they_are() {
        let contents = Contents::new(1024);
        for place in Place::all_of(7) {
            let file = contents.file(place);
            assert_eq!(file.len(), place.size());
            let text = String::from_utf8(file).unwrap();
            let first: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
            assert_eq!(first, [place.size().to_string().as_str(), &place.path()]);
            assert!(text.ends_with('\n') && text.lines().all(|line| line.len() < LINE_BYTES));
            let whole = text.len() / LINE_BYTES * LINE_BYTES;
            assert_eq!(text[..whole].lines().count(), whole / LINE_BYTES, "whole lines are {LINE_BYTES} bytes");
        }
    }

    #[test]
    fn tags_are_where_they_are_said_to_be() {
        let contents = Contents::new(1024);
        for place in Place::all_of(0) {
            let text = String::from_utf8(contents.file(place)).unwrap();
            let found: Vec<usize> = text.match_indices(PLACEHOLDER).map(|(at, _)| at).collect();
            assert_eq!(found, contents.ad_paths(place).collect::<Vec<_>>());
            assert_eq!(found.is_empty(), !matches!(place.class, 1 | 2), "{place:?}");
            let (mut at, mut paths) = (0, Vec::new());
            while at < text.len() {
                match contents.part(place, at) {
                    Part::Text(bytes) => at += bytes,
                    Part::AdPath(inside) => {
                        assert_eq!(inside, 0);
                        assert_eq!(contents.part(place, at + PATH_BYTES - 1), Part::AdPath(PATH_BYTES - 1));
                        paths.push(at);
                        at += PATH_BYTES;
                    }
                }
            }
            assert_eq!((paths, at), (found, text.len()), "{place:?}");
        }
        assert_eq!(contents.ad_paths(CLASS_1).count(), 1);
        assert_eq!(contents.ad_paths(Place { directory: 0, class: 2, file: 8 }).count(), 90);
    }

    #[test]
    fn a_server_replaces_paths_and_nothing_else() {
        let contents = Contents::new(256);
        let ad = Place { directory: 3, class: 2, file: 1 };
        let (before, after) = (contents.file(CLASS_1), contents.with_ads(CLASS_1, ad));
        let text = String::from_utf8(before).unwrap();
        assert_eq!(text.replace(PLACEHOLDER, &ad.path()).into_bytes(), after);
        assert_eq!(contents.ad_paths(CLASS_1).count(), 3);
    }
}
