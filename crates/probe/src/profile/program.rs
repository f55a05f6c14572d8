//! The program in the kernel: its name, and whom it samples.

use crate::Refusal;
use crate::bpf::Programs;
use libbpf_rs::{MapCore, MapFlags};

pub(super) const PROGRAM: &str = "on_clock";

/// Makes the children of `parent` the ones that are watched, and `itself` with them.
pub(super) fn aim(programs: &Programs, parent: u32, itself: bool) -> Result<(), Refusal> {
    let target = programs.map_of_section(".data.target")?;
    let told = [parent.to_ne_bytes(), u32::from(itself).to_ne_bytes()].concat();
    let told = target.update(&0_u32.to_ne_bytes(), &told, MapFlags::ANY);
    told.map_err(|error| Refusal::from(format!("the target cannot be set: {error}")))
}
