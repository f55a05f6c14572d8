//! What the lines of a script leave: names, and by which line each byte of each file was written. No file is touched.

use super::script::{Expected, HANDLES_MAX, HOLE, How, Segment, Step};

/// Bytes of a file that one line has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The line, counted from 0.
    pub(super) writer: u32,
}

/// A file's bytes; between its extents are holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) size: u64,
    extents: Vec<Extent>,
}

impl Contents {
    fn write(&mut self, start: u64, end: u64, writer: u32) {
        if end <= start {
            return;
        }
        let first = self.extents.partition_point(|extent| extent.end <= start);
        let past = self.extents.partition_point(|extent| extent.start < end);
        let new = Extent { start, end, writer };
        if first == past {
            self.extents.insert(first, new);
        } else {
            let (left, right) = (self.extents[first], self.extents[past - 1]);
            let before = (left.start < start).then_some(Extent { end: start, ..left });
            let after = (right.end > end).then_some(Extent { start: end, ..right });
            self.extents.splice(first..past, before.into_iter().chain([new]).chain(after));
        }
        self.size = self.size.max(end);
    }

    /// What a read of `start` up to `end` finds, both within the file.
    pub(super) fn segments(&self, start: u64, end: u64, found: &mut Vec<Segment>) {
        let mut at = start;
        let first = self.extents.partition_point(|extent| extent.end <= start);
        let mut part = |from: u64, writer| found.push(Segment { at: (from - start) as u32, writer });
        for extent in self.extents[first..].iter().take_while(|extent| extent.start < end) {
            if at < extent.start {
                part(at, HOLE);
            }
            part(at.max(extent.start), extent.writer);
            at = extent.end;
        }
        if at < end {
            part(at, HOLE);
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    /// Its place among all files that there ever were.
    File(usize),
}

/// Names and files after some lines.
#[derive(Debug)]
pub(super) struct World {
    /// By name; `None` if it is not there.
    nodes: Vec<Option<Node>>,
    files: Vec<Contents>,
    /// The files that are open, by slot.
    slots: [Option<usize>; HANDLES_MAX],
}

impl World {
    /// One with nothing in it.
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), files: Vec::new(), slots: [None; HANDLES_MAX] }
    }

    /// What there is by `name`.
    pub(super) fn node(&self, name: u32) -> Option<Node> {
        self.nodes.get(name as usize).copied().flatten()
    }

    /// Names with what they stand for.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, Node)> {
        (0..).zip(&self.nodes).filter_map(|(name, node)| node.map(|node| (name, node)))
    }

    /// A file's bytes.
    pub(super) fn file(&self, place: usize) -> &Contents {
        &self.files[place]
    }

    /// The bytes of what is open in `slot`, if that is a file.
    pub(super) fn open_file(&self, slot: u8) -> Option<&Contents> {
        self.slots[usize::from(slot)].map(|place| &self.files[place])
    }

    fn put(&mut self, name: u32, node: Option<Node>) {
        let place = name as usize;
        if self.nodes.len() <= place {
            self.nodes.resize(place + 1, None);
        }
        self.nodes[place] = node;
    }

    /// Line number `line` is performed, and ends as it is expected to.
    pub(super) fn apply(&mut self, line: u32, step: &Step, expected: Expected, names: &[String]) {
        if !expected.is_ok {
            return;
        }
        match *step {
            Step::Open { name, slot, how } => {
                let file = self.open(name, how);
                if let Some(open) = self.slots.get_mut(usize::from(slot)) {
                    *open = file;
                }
            }
            Step::Close { slot } => self.slots[usize::from(slot)] = None,
            Step::Write { slot, offset, size } => {
                if let Some(place) = self.slots[usize::from(slot)] {
                    self.files[place].write(offset, offset + u64::from(size), line);
                }
            }
            Step::Unlink { name } if matches!(self.node(name), Some(Node::File(_))) => self.put(name, None),
            Step::Rename { from, to } => {
                let node = self.node(from);
                self.put(from, None);
                self.put(to, node);
            }
            Step::MakeDirectory { name } if self.node(name).is_none() => self.put(name, Some(Node::Directory)),
            Step::RemoveDirectory { name } => self.put(name, None),
            Step::RemoveTree { name } => self.remove_tree(name, names),
            _ => {}
        }
    }

    /// The file that is open then; `None` of a directory, and where there is none.
    fn open(&mut self, name: u32, how: How) -> Option<usize> {
        match (self.node(name), how) {
            (None, How::Directory) => {
                self.put(name, Some(Node::Directory));
                None
            }
            (None, How::Create | How::Truncate) => {
                self.files.push(Contents::default());
                self.put(name, Some(Node::File(self.files.len() - 1)));
                Some(self.files.len() - 1)
            }
            (Some(Node::File(place)), How::Truncate) => {
                self.files[place] = Contents::default();
                Some(place)
            }
            (Some(Node::File(place)), How::Plain | How::Create) => Some(place),
            _ => None,
        }
    }

    fn remove_tree(&mut self, root: u32, names: &[String]) {
        let root = &names[root as usize];
        let is_below = |name: &String| name.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/'));
        for (node, name) in self.nodes.iter_mut().zip(names) {
            if name == root || is_below(name) {
                *node = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(contents: &Contents, start: u64, end: u64) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        contents.segments(start, end, &mut found);
        found.into_iter().map(|segment| (segment.at, segment.writer)).collect()
    }

    #[test]
    fn each_byte_is_its_last_writers() {
        // Against a file of one number a byte, over many writes of all sizes and places.
        let (mut contents, mut bytes) = (Contents::default(), Vec::new());
        let words = plimsoll_keys::Words::new(3, 0, 0);
        for line in 0..500_u32 {
            let start = words.below(2 * u64::from(line), 300);
            let end = start + words.below(2 * u64::from(line) + 1, 60);
            contents.write(start, end, line);
            if end > start {
                bytes.resize(bytes.len().max(end as usize), HOLE);
                bytes[start as usize..end as usize].fill(line);
            }
            assert_eq!(contents.size, bytes.len() as u64);
            let (from, to) = (contents.size / 3, contents.size);
            let mut found = vec![None; bytes.len()];
            for (at, writer) in segments(&contents, from, to) {
                found[from as usize + at as usize..].fill(Some(writer));
            }
            let found: Vec<u32> = found.into_iter().flatten().collect();
            assert_eq!(found, bytes[from as usize..], "after line {line}");
        }
    }

    #[test]
    fn what_lies_between_writes_is_a_hole() {
        let mut contents = Contents::default();
        contents.write(100, 101, 7);
        contents.write(0, 50, 8);
        assert_eq!(segments(&contents, 0, 101), [(0, 8), (50, HOLE), (100, 7)]);
        assert_eq!(segments(&contents, 60, 90), [(0, HOLE)]);
        assert_eq!(segments(&contents, 20, 40), [(0, 8)]);
    }
}
