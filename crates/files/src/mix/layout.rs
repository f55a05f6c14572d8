//! Laying out: the files that a load begins with, every block of version 1.

use super::names::write_all;
use super::places::{Place, Places};
use super::plan::{CHUNK, Plan};
use super::state::State;
use crate::tree::Tree;
use crate::workload::FilesError;
use rustix::fs::{Mode, OFlags, mkdirat, syncfs};
use rustix::io::Errno;
use std::collections::HashMap;

/// What failed on a file.
pub(super) fn of_file(name: &str, errno: Errno) -> FilesError {
    FilesError::File { path: format!("data/{name}"), error: errno.into() }
}

/// Makes them all, and has them reach the device.
pub(super) fn lay_out(plan: &Plan, tree: &Tree, tell: &mut dyn FnMut(u64)) -> Result<(), FilesError> {
    let state = State::laid_out(plan);
    let all: Vec<Place> = state.places.iter().map(Place::of).collect();
    let places = Places::new(plan.seed, plan.fanout, all, HashMap::new());
    let (mut name, mut buffer) = (String::new(), vec![0; CHUNK as usize]);
    for directory in 0..places.directories() {
        Places::directory_name(directory, &mut name);
        let made = mkdirat(tree.data(), name.as_str(), Mode::from_raw_mode(0o700));
        made.map_err(|errno| of_file(&name, errno))?;
    }
    for place in 0..plan.count as u32 {
        places.name(place, &mut name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = tree.file(&name, flags).map_err(|errno| of_file(&name, errno))?;
        let (stamps, bytes) = (places.stamps(place), state.places[place as usize].body);
        for offset in (0..bytes).step_by(CHUNK as usize) {
            let part = &mut buffer[..(bytes - offset).min(CHUNK) as usize];
            stamps.write(part, offset, 1);
            write_all(&file, part, offset).0.map_err(|errno| of_file(&name, errno))?;
            tell(part.len() as u64);
        }
    }
    state.create(tree, plan)?;
    syncfs(tree.data()).map_err(|errno| of_file("", errno))
}
