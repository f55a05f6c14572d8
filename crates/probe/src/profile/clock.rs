//! A clock for each CPU: events of the kernel's perf subsystem that run the program so many times a second.
//!
//! The software clock is used, which every machine has, virtual ones too. It is a timer: what runs with interrupts off is
//! seen where it switches them on again.

use crate::Refusal;
use crate::bpf::{Programs, online_cpus};
use libbpf_rs::Link;
use std::os::fd::{FromRawFd, OwnedFd};

/// The program runs while this lives.
pub(crate) struct Clock {
    _links: Vec<Link>,
    pub(crate) cpus: Vec<u32>,
}

#[allow(unsafe_code)]
fn open(cpu: u32, hz: u32) -> std::io::Result<OwnedFd> {
    let mut wanted = libbpf_sys::perf_event_attr::default();
    wanted.size = size_of_val(&wanted) as u32;
    wanted.type_ = libbpf_sys::PERF_TYPE_SOFTWARE;
    wanted.config = u64::from(libbpf_sys::PERF_COUNT_SW_CPU_CLOCK);
    wanted.__bindgen_anon_1.sample_freq = u64::from(hz);
    wanted.set_freq(1);
    wanted.set_exclude_idle(1);
    let (any_process, no_group) = (-1, -1);
    // SAFETY: the kernel reads `size` bytes of what the pointer shows, and gives a new descriptor or a negative number.
    let descriptor = unsafe {
        let flags = libbpf_sys::PERF_FLAG_FD_CLOEXEC;
        libc::syscall(libc::SYS_perf_event_open, &raw const wanted, any_process, cpu, no_group, flags)
    };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

impl Clock {
    /// Runs `function` of `programs` on every CPU that is online, `hz` times a second.
    pub(crate) fn start(programs: &Programs, function: &str, hz: u32) -> Result<Self, Refusal> {
        let mut links = Vec::new();
        let cpus = online_cpus()?;
        for &cpu in &cpus {
            let event = open(cpu, hz).map_err(|error| {
                let reason = format!("no clock of {hz} Hz on CPU {cpu}: {error}");
                Refusal::with_remedy(reason, "a rate within /proc/sys/kernel/perf_event_max_sample_rate")
            })?;
            // The link closes the event when it goes.
            links.push(programs.attach_to_event(function, event)?);
        }
        Ok(Self { _links: links, cpus })
    }
}
