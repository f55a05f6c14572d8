//! What each process has mapped, so that its stack can be unwound by the tables that compilers leave for exceptions.
//!
//! Packages of servers are built without frame pointers: following those would end after a function or two.

use super::images::Image;
use super::records::Sample;
use framehop::{ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Native};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Native};

/// Frames of a stack that are kept; recursion may be deep.
const FRAMES_MAX: usize = 256;
const IMAGE_SHIFT: u32 = 48;
/// The image of code that is in no file: compiled while the server runs, for one.
const NO_IMAGE: u64 = 0xffff;

/// Where code is: an image, and the address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    fn new(image: usize, address: u64) -> Self {
        Self((image as u64) << IMAGE_SHIFT | address & ((1 << IMAGE_SHIFT) - 1))
    }

    /// None if it is in no file.
    pub(crate) fn image(self) -> Option<usize> {
        let image = self.0 >> IMAGE_SHIFT;
        (image != NO_IMAGE).then_some(image as usize)
    }

    pub(crate) fn address(self) -> u64 {
        self.0 & ((1 << IMAGE_SHIFT) - 1)
    }
}

/// A part of a file that is mapped to be run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    /// Device and inode: another file may come to have the same name.
    file: String,
    path: String,
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = after;
        (!word.is_empty()).then_some(word)
    };
    let (range, rights, offset, device, inode) = (word()?, word()?, word()?, word()?, word()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = rest.trim_start();
    let (start, end, offset) = (number(start)?, number(end)?, number(offset)?);
    let is_code = rights.contains('x') && (path.starts_with('/') || path == "[vdso]");
    is_code.then(|| Mapping { start, end, offset, file: format!("{device} {inode}"), path: path.to_owned() })
}

fn mappings(pid: u32) -> Option<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let found: Vec<Mapping> = text.lines().filter_map(mapping).collect();
    // A process that is about to be gone has none any more.
    (!found.is_empty()).then_some(found)
}

/// Processes with the same mappings, as forks have.
struct Space {
    mappings: Vec<(Mapping, usize, u64)>,
    unwinder: Native<Arc<[u8]>>,
}

impl Space {
    fn place(&self, address: u64) -> Place {
        let after = self.mappings.partition_point(|(mapping, ..)| mapping.start <= address);
        let found = self.mappings[..after].last().filter(|(mapping, ..)| address < mapping.end);
        match found {
            Some((_, image, bias)) => Place::new(*image, address.wrapping_sub(*bias)),
            None => Place::new(NO_IMAGE as usize, 0),
        }
    }
}

fn module(image: &Image, mapping: &Mapping, bias: u64) -> Module<Arc<[u8]>> {
    let bytes = |section: &Option<super::images::Section>| section.as_ref().map(|(_, bytes)| Arc::clone(bytes));
    let range = |section: &Option<super::images::Section>| section.as_ref().map(|(range, _)| range.clone());
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(&image.text),
        got_svma: image.got.clone(),
        eh_frame_svma: range(&image.eh_frame),
        eh_frame: bytes(&image.eh_frame),
        eh_frame_hdr_svma: range(&image.eh_frame_hdr),
        eh_frame_hdr: bytes(&image.eh_frame_hdr),
        ..Default::default()
    };
    Module::new(image.path.clone(), mapping.start..mapping.end, bias, sections)
}

/// The stack outside of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unwound {
    /// Innermost first.
    pub(crate) places: Vec<Place>,
    /// Down to where the process began; else it ends early.
    pub(crate) is_complete: bool,
}

/// All of them.
pub(crate) struct Spaces {
    parent: u32,
    images: Vec<Image>,
    by_file: HashMap<(String, String), usize>,
    by_mappings: HashMap<Vec<Mapping>, Arc<Space>>,
    by_process: HashMap<u32, Arc<Space>>,
    /// Looked at again since the last call of `begin_round`.
    looked_again: HashSet<u32>,
    cache: Cache<MayAllocateDuringUnwind>,
}

impl Spaces {
    /// Whose children they are.
    pub(crate) fn parent(&self) -> u32 {
        self.parent
    }

    /// Of the children of `parent`, whose own mappings stand for those of a child that is gone already.
    pub(crate) fn new(parent: u32) -> Self {
        Self {
            parent,
            images: Vec::new(),
            by_file: HashMap::new(),
            by_mappings: HashMap::new(),
            by_process: HashMap::new(),
            looked_again: HashSet::new(),
            cache: Cache::new(),
        }
    }

    pub(crate) fn images(&self) -> &[Image] {
        &self.images
    }

    /// Mappings may be looked at again from here on: libraries are loaded when they are needed.
    pub(crate) fn begin_round(&mut self) {
        self.looked_again.clear();
    }

    fn image(&mut self, pid: u32, mapping: &Mapping) -> usize {
        let key = (mapping.file.clone(), mapping.path.clone());
        if let Some(known) = self.by_file.get(&key) {
            return *known;
        }
        let image = if mapping.path.starts_with('[') {
            Image::vdso(&mapping.path)
        } else {
            // By way of the process, so that it is the file that runs even if it was replaced.
            let open = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end));
            Image::read(&open, &mapping.path)
        };
        self.images.push(image);
        self.by_file.insert(key, self.images.len() - 1);
        self.images.len() - 1
    }

    fn read(&mut self, pid: u32) -> Option<Arc<Space>> {
        let found = mappings(pid)?;
        if let Some(known) = self.by_mappings.get(&found) {
            return Some(Arc::clone(known));
        }
        let mut space = Space { mappings: Vec::new(), unwinder: Native::new() };
        for mapping in &found {
            let at = self.image(pid, mapping);
            let image = &self.images[at];
            // One that cannot be read is known by its name; addresses in it are offsets in the file.
            let otherwise = mapping.start.wrapping_sub(mapping.offset);
            let bias = image.bias(mapping.start, mapping.offset).unwrap_or(otherwise);
            space.unwinder.add_module(module(image, mapping, bias));
            space.mappings.push((mapping.clone(), at, bias));
        }
        let space = Arc::new(space);
        self.by_mappings.insert(found, Arc::clone(&space));
        Some(space)
    }

    fn of(&mut self, pid: u32) -> Option<Arc<Space>> {
        if let Some(known) = self.by_process.get(&pid) {
            return Some(Arc::clone(known));
        }
        let space = self.read(pid).or_else(|| self.read(self.parent))?;
        self.by_process.insert(pid, Arc::clone(&space));
        Some(space)
    }

    fn unwind_in(&mut self, space: &Space, sample: &Sample<'_>) -> Unwound {
        #[cfg(target_arch = "x86_64")]
        let registers = Registers::new(sample.ip, sample.sp, sample.fp);
        #[cfg(target_arch = "aarch64")]
        let registers = Registers::new(sample.lr, sample.sp, sample.fp);
        let mut on_stack = |address| sample.on_stack(address).ok_or(());
        let mut frames = space.unwinder.iter_frames(sample.ip, registers, &mut self.cache, &mut on_stack);
        let mut unwound = Unwound::default();
        while unwound.places.len() < FRAMES_MAX {
            match frames.next() {
                // A return address may be the first of the next function already.
                Ok(Some(frame @ FrameAddress::ReturnAddress(_))) => {
                    unwound.places.push(space.place(frame.address_for_lookup()));
                }
                Ok(Some(frame)) => unwound.places.push(space.place(frame.address())),
                Ok(None) => {
                    unwound.is_complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        unwound
    }

    /// The stack of a sample outside of the kernel; None if nothing is known of the process.
    pub(crate) fn unwind(&mut self, sample: &Sample<'_>) -> Option<Unwound> {
        let space = self.of(sample.pid)?;
        let unwound = self.unwind_in(&space, sample);
        if unwound.is_complete || !self.looked_again.insert(sample.pid) {
            return Some(unwound);
        }
        match self.read(sample.pid) {
            Some(now) if !Arc::ptr_eq(&now, &space) => {
                self.by_process.insert(sample.pid, Arc::clone(&now));
                Some(self.unwind_in(&now, sample))
            }
            _ => Some(unwound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_maps_are_understood() {
        let line = "55f0-55f8 r-xp 00001000 fe:00 77    /usr/lib/a program (deleted)";
        let found = mapping(line).unwrap();
        assert_eq!((found.start, found.end, found.offset), (0x55f0, 0x55f8, 0x1000));
        assert_eq!((found.file.as_str(), found.path.as_str()), ("fe:00 77", "/usr/lib/a program (deleted)"));
        assert_eq!(mapping("55f0-55f8 r--p 00001000 fe:00 77    /usr/lib/a"), None, "no code");
        assert_eq!(mapping("55f0-55f8 rwxp 00000000 00:00 0 "), None, "no file");
        assert_eq!(mapping("7f00-7f02 r-xp 00000000 00:00 0    [vdso]").unwrap().path, "[vdso]");
        assert_eq!(mapping(""), None);
    }

    #[test]
    fn a_place_keeps_image_and_address() {
        let place = Place::new(3, 0x1234);
        assert_eq!((place.image(), place.address()), (Some(3), 0x1234));
        assert_eq!(Place::new(NO_IMAGE as usize, 0).image(), None);
    }
}
