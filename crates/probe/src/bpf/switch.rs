//! Programs that are detached for a while and attached again: what is not attached costs nothing.

use crate::Refusal;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Programs of tracepoints with type information; detached when it goes.
pub(crate) struct Switch {
    programs: Vec<OwnedFd>,
    /// Each is attached while its link is open.
    links: Vec<OwnedFd>,
}

#[allow(unsafe_code)]
fn attach(program: &OwnedFd) -> Result<OwnedFd, Refusal> {
    // SAFETY: a program of this kind knows its tracepoint, so no name is given; the call keeps nothing of its arguments.
    let link = unsafe { libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) };
    if link < 0 {
        let error = std::io::Error::from_raw_os_error(-link);
        return Err(Refusal::from(format!("a program cannot be attached again: {error}")));
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

impl Switch {
    pub(crate) fn on_with(programs: Vec<OwnedFd>) -> Result<Self, Refusal> {
        let mut switch = Self { programs, links: Vec::new() };
        switch.on()?;
        Ok(switch)
    }

    pub(crate) fn on(&mut self) -> Result<(), Refusal> {
        self.links = self.programs.iter().map(attach).collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(crate) fn off(&mut self) {
        self.links.clear();
    }
}
