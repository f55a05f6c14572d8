//! Equal stacks are counted together, and get their names when the segment is over.

use super::images::Symbols;
use super::kernel_names::KernelNames;
use super::records::Sample;
use super::spaces::{Place, Spaces};
use crate::breakdown::processes::role_of;
use plimsoll_record::{ProfileSamples, ProfiledImage};
use std::collections::{BTreeMap, HashMap};

/// Different stacks that are kept; a server has some thousands.
const STACKS_MAX: usize = 200_000;

/// The role of the process that is sampled beside its children: it is then the load itself.
const LOAD: &str = "load";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stack {
    role: &'static str,
    /// Innermost first.
    user: Box<[Place]>,
    kernel: Box<[u64]>,
}

/// What was sampled.
pub(crate) struct Stacks {
    spaces: Spaces,
    roles: HashMap<u32, &'static str>,
    counts: HashMap<Stack, u64>,
    pub(crate) samples: ProfileSamples,
    /// Samples of stacks that there was no room for.
    pub(crate) no_room: u64,
    pub(crate) unreadable: u64,
}

/// Stacks with names.
pub(crate) struct Named {
    /// "role;outermost;...;innermost" and how many samples; by name.
    pub(crate) folded: BTreeMap<String, u64>,
    /// Files that were run, those with most samples first.
    pub(crate) images: Vec<ProfiledImage>,
    pub(crate) samples: ProfileSamples,
}

/// A name as one frame: the format of collapsed stacks has no way to write these characters.
fn frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

impl Stacks {
    /// Of the children of `parent`.
    pub(crate) fn new(parent: u32) -> Self {
        Self {
            spaces: Spaces::new(parent),
            roles: HashMap::new(),
            counts: HashMap::new(),
            samples: ProfileSamples::default(),
            no_room: 0,
            unreadable: 0,
        }
    }

    pub(crate) fn begin_round(&mut self) {
        self.spaces.begin_round();
    }

    /// Counts one.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(sample) = Sample::decode(bytes) else {
            self.unreadable += 1;
            return;
        };
        let kernel: Box<[u64]> = sample.kernel().collect();
        let user = self.spaces.unwind(&sample).unwrap_or_default();
        let parent = self.spaces.parent();
        let role = |pid| if pid == parent { LOAD } else { role_of(pid) };
        let role = *self.roles.entry(sample.pid).or_insert_with(|| role(sample.pid));
        let stack = Stack { role, user: user.places.into(), kernel };
        let samples = &mut self.samples;
        samples.taken += 1;
        samples.in_kernel += u64::from(!stack.kernel.is_empty());
        samples.complete += u64::from(user.is_complete && !sample.kernel_is_full());
        if let Some(count) = self.counts.get_mut(&stack) {
            *count += 1;
        } else if self.counts.len() < STACKS_MAX {
            self.counts.insert(stack, 1);
        } else {
            self.no_room += 1;
        }
    }

    /// Gives every frame its name.
    pub(crate) fn named(&self) -> Named {
        let images = self.spaces.images();
        let symbols: Vec<Symbols> = images.iter().map(super::images::Image::symbols).collect();
        let kernel = KernelNames::read();
        let mut files: Vec<ProfiledImage> = images
            .iter()
            .zip(&symbols)
            .map(|(image, symbols)| ProfiledImage {
                path: image.path.clone(),
                build_id: image.build_id.clone(),
                symbols: symbols.from.to_owned(),
                ..ProfiledImage::default()
            })
            .collect();
        let mut samples = self.samples;
        samples.stacks = self.counts.len() as u64;
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, count) in &self.counts {
            let name_of = |place: &Place| match place.image() {
                Some(image) => symbols[image].name(place.address()).ok_or_else(|| images[image].bracketed()),
                None => Err("[no file]".to_owned()),
            };
            let user =
                stack.user.iter().rev().map(|place| frame(&name_of(place).map_or_else(|name| name, str::to_owned)));
            let in_kernel = stack.kernel.iter().rev().map(|address| match kernel.name(*address) {
                Some(name) => frame(name) + "_[k]",
                None => "[kernel]_[k]".to_owned(),
            });
            let frames: Vec<String> = std::iter::once(frame(stack.role)).chain(user).chain(in_kernel).collect();
            *folded.entry(frames.join(";")).or_insert(0) += count;
            let user_is_named = stack.user.first().map(|place| name_of(place).is_ok());
            let is_named = match stack.kernel.first() {
                Some(address) => kernel.name(*address).is_some(),
                None => user_is_named == Some(true),
            };
            samples.named += if is_named { *count } else { 0 };
            let outside = stack.kernel.is_empty();
            samples.named_outside += if outside && is_named { *count } else { 0 };
            if let (true, Some(image)) = (outside, stack.user.first().and_then(|place| place.image())) {
                files[image].samples += count;
                files[image].unnamed += if is_named { 0 } else { *count };
            }
        }
        files.retain(|file| file.samples > 0);
        files.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.path.cmp(&b.path)));
        samples.kernel_has_names = !kernel.is_empty();
        Named { folded, images: files, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_frame() {
        assert_eq!(frame("operator new[](unsigned long); x"), "operator_new[](unsigned_long)__x");
    }
}
