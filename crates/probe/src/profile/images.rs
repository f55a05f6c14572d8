//! Files that processes run code from: how they are unwound, and what their functions are called.
//!
//! Server packages are stripped: of the server's own program only the functions are named that extensions may call (the
//! dynamic symbols), unless the package with its debug symbols is installed.

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SegmentFlags, SymbolKind};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";
/// More than the kernel's own code in the memory of every process has.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// A section: where it is, and its bytes.
pub(crate) type Section = (Range<u64>, Arc<[u8]>);

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// As the process's memory map has it.
    pub(crate) path: String,
    pub(crate) build_id: Option<String>,
    /// Where the parts with code are to be loaded: offsets in the file, and the address of the first.
    parts: Vec<(Range<u64>, u64)>,
    pub(crate) text: Option<Section>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) got: Option<Range<u64>>,
    /// Where it can be read again, for its symbols.
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    File(Arc<File>),
    Memory(Arc<[u8]>),
    Nowhere,
}

fn section<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, name: &str, with_bytes: bool) -> Option<Section> {
    let section = file.section_by_name(name)?;
    let bytes = if with_bytes { Arc::from(section.data().ok()?) } else { Arc::from([]) };
    Some((section.address()..section.address() + section.size(), bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Image {
    fn of<'data, R: ReadRef<'data>>(path: &str, data: R, source: Source) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let is_code = |part: &object::Segment<'data, '_, R>| match part.flags() {
            SegmentFlags::Elf { p_flags } => p_flags & object::elf::PF_X != 0,
            _ => false,
        };
        let parts = file.segments().filter(is_code).map(|part| {
            let (at, bytes) = part.file_range();
            (at..at + bytes, part.address())
        });
        Some(Self {
            path: path.to_owned(),
            build_id: file.build_id().ok().flatten().map(hex),
            parts: parts.collect(),
            text: section(&file, ".text", false),
            eh_frame: section(&file, ".eh_frame", true),
            eh_frame_hdr: section(&file, ".eh_frame_hdr", true),
            got: section(&file, ".got", false).map(|(range, _)| range),
            source,
        })
    }

    /// One that is known by its name only.
    fn unread(path: &str) -> Self {
        let (parts, source) = (Vec::new(), Source::Nowhere);
        let (text, eh_frame, eh_frame_hdr) = (None, None, None);
        Self { path: path.to_owned(), build_id: None, parts, text, eh_frame, eh_frame_hdr, got: None, source }
    }

    /// The file at `open`, which the memory map calls `path`.
    pub(crate) fn read(open: &Path, path: &str) -> Self {
        let known = File::open(open).ok().and_then(|file| {
            let file = Arc::new(file);
            let cache = ReadCache::new(&*file);
            Self::of(path, &cache, Source::File(Arc::clone(&file)))
        });
        known.unwrap_or_else(|| Self::unread(path))
    }

    /// The kernel's code in the memory of every process, which is the same in all of them: read from our own.
    pub(crate) fn vdso(name: &str) -> Self {
        let read = || {
            let maps = fs::read_to_string("/proc/self/maps").ok()?;
            let line = maps.lines().find(|line| line.ends_with(name))?;
            let (from, to) = line.split_whitespace().next()?.split_once('-')?;
            let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
            let mut bytes = vec![0; usize::try_from((to - from).min(VDSO_BYTES_MAX)).ok()?];
            File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, from).ok()?;
            let bytes: Arc<[u8]> = bytes.into();
            Self::of(name, &*bytes, Source::Memory(Arc::clone(&bytes)))
        };
        read().unwrap_or_else(|| Self::unread(name))
    }

    /// The last part of its path, in brackets: what a function without a name is called.
    pub(crate) fn bracketed(&self) -> String {
        let name = self.path.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or_default();
        format!("[{}]", name.trim_matches(['[', ']']))
    }

    /// By how much the addresses of a mapping of the file's `offset` at `start` are above those of the file.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // A mapping begins at a whole page, a part need not.
        let holds = |(file, _): &&(Range<u64>, u64)| file.start & !0xfff <= offset && offset < file.end;
        let (file, address) = self.parts.iter().find(holds)?;
        Some(start.wrapping_sub(address.wrapping_sub(file.start).wrapping_add(offset)))
    }

    /// Functions by their addresses, and where their names come from.
    pub(crate) fn symbols(&self) -> Symbols {
        let debug = self.build_id.as_deref().filter(|id| id.len() > 2).map(|id| {
            let (folder, rest) = id.split_at(2);
            PathBuf::from(DEBUG_FILES).join(folder).join(format!("{rest}.debug"))
        });
        let debug = debug.and_then(|path| File::open(path).ok());
        if let Some(found) = debug.and_then(|file| Symbols::of(&ReadCache::new(&file), "debug file")) {
            return found;
        }
        let own = match &self.source {
            Source::File(file) => Symbols::of(&ReadCache::new(&**file), "symbol table"),
            Source::Memory(bytes) => Symbols::of(&**bytes, "symbol table"),
            Source::Nowhere => None,
        };
        own.unwrap_or_default()
    }
}

/// Functions of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// By their first address: the first one after them, and the name.
    functions: BTreeMap<u64, (u64, String)>,
    /// "debug file", "symbol table", "dynamic symbols", or "" if there are none.
    pub(crate) from: &'static str,
}

impl Symbols {
    fn of<'data, R: ReadRef<'data>>(data: R, from: &'static str) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let of_table = collect(file.symbols());
        let of_dynamic = collect(file.dynamic_symbols());
        let from = match (of_table.is_empty(), of_dynamic.is_empty()) {
            (false, _) => from,
            (true, false) => "dynamic symbols",
            (true, true) => return None,
        };
        let functions = of_dynamic.into_iter().chain(of_table).collect();
        Some(Self { functions, from })
    }

    /// The function that holds an address. One that only comes before it is not it: between two functions that are named
    /// there are others that are not.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }
}

fn collect<'data>(symbols: impl Iterator<Item = impl ObjectSymbol<'data>>) -> BTreeMap<u64, (u64, String)> {
    let functions =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0);
    let named = functions.filter_map(|symbol| {
        // A version of an exported symbol follows its name: "send@@GLIBC_2.2.5".
        let name = symbol.name().ok()?.split('@').next().filter(|name| !name.is_empty())?;
        Some((symbol.address(), (symbol.address() + symbol.size(), name.to_owned())))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_knows_its_functions() {
        let own = Image::read(Path::new("/proc/self/exe"), "/bin/this one");
        assert!(own.eh_frame.is_some() && own.eh_frame_hdr.is_some());
        assert_eq!(own.bracketed(), "[this one]");
        assert!(!own.symbols().functions.is_empty());
        assert_eq!(own.symbols().name(0), None);
    }

    #[test]
    fn the_kernels_code_in_every_process_can_be_unwound() {
        let vdso = Image::vdso("[vdso]");
        assert!(vdso.eh_frame.is_some());
        assert_eq!(vdso.symbols().from, "dynamic symbols");
        assert_eq!(vdso.bracketed(), "[vdso]");
    }

    #[test]
    fn an_address_between_functions_has_no_name() {
        let functions = [(10, (20, "one".to_owned())), (30, (31, "two".to_owned()))].into();
        let symbols = Symbols { functions, from: "symbol table" };
        assert_eq!([9, 10, 19, 20, 30].map(|at| symbols.name(at)), [None, Some("one"), Some("one"), None, Some("two")]);
    }

    #[test]
    fn what_is_no_file_is_known_by_its_name() {
        let image = Image::read(Path::new("/nowhere"), "/nowhere (deleted)");
        assert_eq!((image.bracketed().as_str(), image.bias(0x1000, 0), image.symbols().from), ("[nowhere]", None, ""));
    }
}
