//! The files of a synthetic client while its script is made: which are there, how long they are, which are open.

use super::draw::Draw;

/// The client's own folder, and what is in it.
pub(super) const HOME: &str = "/clients/client1";
pub(super) const DESK: &str = "/clients/client1/desk";
/// Folders of files.
pub(super) const AREAS: [&str; 9] =
    ["letters", "figures", "tables", "mail", "plans", "notes", "slides", "books", "index"];
/// Names of files in each.
const NAMES: usize = 26;
/// How many files there are, once there are so many.
pub(super) const FILES_KEPT: usize = 57;

/// A file that is there.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) is_bulk: bool,
    /// Handles that are open.
    pub(super) open: u32,
}

/// All of them, the oldest first, and the names that are free.
pub(super) struct Desk {
    documents: Vec<Document>,
    free: Vec<String>,
}

impl Desk {
    pub(super) fn new() -> Self {
        let names = AREAS.iter().flat_map(|area| (0..NAMES).map(move |name| format!("{DESK}/{area}/D{name:03}.DAT")));
        Self { documents: Vec::new(), free: names.collect() }
    }

    /// The path of a folder of files.
    pub(super) fn area(draw: &mut Draw) -> String {
        format!("{DESK}/{}", draw.one_of(&AREAS))
    }

    /// A name at which there is nothing.
    pub(super) fn free(&self, draw: &mut Draw) -> &str {
        &self.free[draw.below(self.free.len())]
    }

    /// Makes a file; gives its path.
    pub(super) fn make(&mut self, draw: &mut Draw, is_bulk: bool) -> String {
        let path = self.free.swap_remove(draw.below(self.free.len()));
        self.documents.push(Document { path: path.clone(), size: 0, is_bulk, open: 0 });
        path
    }

    pub(super) fn named(&mut self, path: &str) -> Option<&mut Document> {
        self.documents.iter_mut().find(|document| document.path == path)
    }

    /// The path of a file of `size` bytes or more: any that is met soon, else a large one.
    pub(super) fn with(&self, draw: &mut Draw, size: u64) -> Option<&str> {
        const TRIES: usize = 4;
        for _ in 0..TRIES {
            let document = &self.documents[draw.below(self.documents.len())];
            if document.size >= size {
                return Some(&document.path);
            }
        }
        self.bulk(draw)
    }

    /// The path of a large file that has been written.
    pub(super) fn bulk(&self, draw: &mut Draw) -> Option<&str> {
        let bulks: Vec<&Document> =
            self.documents.iter().filter(|document| document.is_bulk && document.size > 1 << 19).collect();
        (!bulks.is_empty()).then(|| bulks[draw.below(bulks.len())].path.as_str())
    }

    /// The path of a file that nobody has open.
    pub(super) fn idle(&self, draw: &mut Draw) -> Option<&str> {
        let idle: Vec<&Document> = self.documents.iter().filter(|document| document.open == 0).collect();
        (!idle.is_empty()).then(|| idle[draw.below(idle.len())].path.as_str())
    }

    /// Gives a file another name, which is returned.
    pub(super) fn rename(&mut self, draw: &mut Draw, path: &str) -> Option<String> {
        let to = self.free.swap_remove(draw.below(self.free.len()));
        let document = self.named(path)?;
        let from = std::mem::replace(&mut document.path, to.clone());
        self.free.push(from);
        Some(to)
    }

    /// Takes away a file, where there are more than are kept: `latest` if it stayed empty, a large one if there are
    /// more than `bulks_kept`, else any; one that nobody has open.
    pub(super) fn take(&mut self, draw: &mut Draw, latest: &str, bulks_kept: usize) -> Option<String> {
        if self.documents.len() <= FILES_KEPT {
            return None;
        }
        let bulks = self.documents.iter().filter(|document| document.is_bulk).count();
        let is_idle = |document: &Document| document.open == 0;
        let is_latest = |document: &Document| document.path == latest && document.size == 0;
        let place =
            self.documents.iter().position(|document| is_idle(document) && is_latest(document)).or_else(|| {
                let removes_bulk = bulks > bulks_kept;
                let of_kind = |document: &Document| is_idle(document) && document.is_bulk == removes_bulk;
                if removes_bulk {
                    return self.documents.iter().position(of_kind);
                }
                let places: Vec<usize> =
                    (0..self.documents.len()).filter(|place| of_kind(&self.documents[*place])).collect();
                (!places.is_empty()).then(|| draw.one_of(&places))
            })?;
        let path = self.documents.remove(place).path;
        self.free.push(path.clone());
        Some(path)
    }
}
