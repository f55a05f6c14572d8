//! Operations of sessions on an io_uring.
//!
//! The fact that constrains it: the kernel reads and writes memory after the call that asked it to has returned. So an operation,
//! its buffer and its file belong to the ring until the kernel has told of its end. A ring that is dropped cancels what is under
//! way and waits; what the kernel has not let go of by then (a device or a file server that does not answer) is never freed.
//! Files and buffers that were registered are its own for as long as the ring lives ([`Ring::register`]).

mod entry;
mod held;
mod registered;

use entry::completed;
use held::Held;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use plimsoll_session::{Buffer, Completed, Operation};
use registered::Known;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest submission queue that the kernel makes.
const ENTRIES_MAX: u32 = 32_768;
/// What is cancelled when a ring is dropped is let go of within this, or leaked.
const LET_GO_WITHIN: Duration = Duration::from_secs(1);
/// The number of requests to cancel; no operation has it.
const CANCEL: u64 = u64::MAX;

/// An io_uring with operations under way. Each has a token, by which whoever submitted it knows it again.
///
/// It may be made and told of files and buffers by any thread; the first that submits is the only one that may.
pub struct Ring<T> {
    ring: IoUring,
    /// Closed to operations until its own thread submits the first.
    is_enabled: bool,
    held: Held<T>,
    /// Dropped after the ring itself, which the order of these fields sees to.
    known: Known,
    /// Not yet in the submission queue, which has a bound.
    queued: VecDeque<squeue::Entry>,
}

impl<T> Ring<T> {
    /// A ring that is handed about `depth` operations at a time; there may be more.
    ///
    /// # Errors
    /// When the kernel has no io_uring, an old one, or does not give one to this process; the text says what to do.
    pub fn new(depth: u32) -> io::Result<Self> {
        let entries = depth.clamp(1, ENTRIES_MAX).next_power_of_two();
        let ring = built(entries).map_err(explained)?;
        if !(ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop()) {
            return Err(io::Error::other("this kernel's io_uring cannot wait with a timeout: Linux 5.11 or later can"));
        }
        let is_enabled = !ring.params().is_setup_single_issuer();
        Ok(Self { ring, is_enabled, held: Held::new(), known: Known::default(), queued: VecDeque::new() })
    }

    /// Has the kernel look up `files` and map `buffers` now and not with each operation on them; both stay its own as long as the ring
    /// lives. Once for a ring, before its first operation.
    ///
    /// # Errors
    /// When the kernel refuses: above all because the memory that may be locked is too little, which the text says.
    #[allow(unsafe_code)]
    pub fn register(&mut self, files: Vec<Arc<OwnedFd>>, buffers: Vec<&mut Buffer>) -> io::Result<()> {
        let numbers = self.known.take(files);
        let submitter = self.ring.submitter();
        if !numbers.is_empty() {
            submitter.register_files(&numbers).map_err(|error| registered::refused("files", &error))?;
        }
        if buffers.is_empty() {
            return Ok(());
        }
        if buffers.len() > usize::from(u16::MAX) {
            return Err(io::Error::other(format!("{} buffers are more than an io_uring can register", buffers.len())));
        }
        let mut memory = Vec::with_capacity(buffers.len());
        for (place, buffer) in (0..).zip(buffers) {
            // From here on its memory outlives the ring, registered or not.
            buffer.fix(&self.known.keeper, place);
            memory.push(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
        }
        // SAFETY: each is the memory of a buffer that never moves, and that `known.keeper` has when the buffer is dropped: it is valid
        // until the ring is gone. The kernel touches it for operations alone that name its address, and those own the buffer.
        unsafe { submitter.register_buffers(&memory) }.map_err(|error| registered::refused("buffers", &error))
    }

    /// Takes an operation; it is handed to the kernel by the next [`Ring::submit_and_wait`].
    pub fn push(&mut self, token: T, operation: Operation) {
        let entry = self.held.keep(token, operation, &self.known);
        self.queued.push_back(entry);
    }

    /// Asks the kernel to give up those operations whose token is meant, with the next [`Ring::submit_and_wait`]. Each completes
    /// as any other: cancelled, or as it went if it could not be.
    pub fn cancel(&mut self, is_meant: impl Fn(&T) -> bool) {
        let cancels =
            self.held.numbers(is_meant).map(|number| opcode::AsyncCancel::new(number).build().user_data(CANCEL));
        self.queued.extend(cancels);
    }

    /// How many operations are under way: taken, and not yet given back.
    pub fn under_way(&self) -> usize {
        self.held.len()
    }

    /// Hands over what was pushed, and waits until something has completed, for `timeout` at most. It may come back earlier, with
    /// nothing.
    ///
    /// # Errors
    /// When the kernel refuses the call itself; an operation that it refuses completes with its error.
    #[allow(unsafe_code)]
    pub fn submit_and_wait(&mut self, timeout: Duration) -> io::Result<()> {
        if !self.is_enabled {
            self.ring.submitter().register_enable_rings()?;
            self.is_enabled = true;
        }
        let (submitter, mut submissions, completions) = self.ring.split();
        while let Some(entry) = self.queued.front() {
            // SAFETY: what the entry names by address or number is in `held` until the kernel has told of its end, and never
            // freed if it does not; a request to cancel names none.
            if unsafe { submissions.push(entry) }.is_err() {
                break;
            }
            self.queued.pop_front();
        }
        drop(submissions);
        let is_to_wait = self.queued.is_empty() && completions.is_empty() && !timeout.is_zero();
        drop(completions);
        let timeout = Timespec::from(timeout);
        match submitter.submit_with_args(usize::from(is_to_wait), &SubmitArgs::new().timespec(&timeout)) {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // BUSY: completions are to be taken first. AGAIN: for want of memory it takes no more just now.
                Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// An operation that has completed, and its token; `None` if there is none yet.
    pub fn completed(&mut self) -> Option<(T, Completed)> {
        loop {
            let told = self.ring.completion().next()?;
            if let Some((token, operation)) = self.held.release(told.user_data()) {
                return Some((token, completed(operation, told.result())));
            }
        }
    }

    /// Cancels everything, and waits until the kernel has let go of it. False if it has not in time.
    fn let_go(&mut self) -> bool {
        self.cancel(|_| true);
        let until = Instant::now() + LET_GO_WITHIN;
        while self.under_way() > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.submit_and_wait(left).is_err() {
                return false;
            }
            while self.completed().is_some() {}
        }
        true
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        if !self.let_go() {
            self.held.leak();
        }
    }
}

/// A ring whose completions are worked off when its thread asks for them: by default the kernel interrupts the thread for each
/// that another one of its threads has performed (on tmpfs all of them), which costs more than the operation. Since Linux 6.1;
/// an older kernel gives the default.
fn built(entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_r_disabled();
    match builder.build(entries) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
            IoUring::builder().dontfork().build(entries)
        }
        built => built,
    }
}

/// Why there is no io_uring, and what to do.
fn explained(error: io::Error) -> io::Error {
    let (why, remedy) = match Errno::from_io_error(&error) {
        Some(Errno::NOSYS) => ("this kernel has no io_uring", "one with CONFIG_IO_URING is needed"),
        Some(Errno::PERM | Errno::ACCESS) => (
            "io_uring is forbidden here",
            "set the sysctl kernel.io_uring_disabled to 0, and allow its calls where a container filters them (seccomp)",
        ),
        // Before Linux 5.12 the ring itself counts.
        Some(Errno::NOMEM) => ("no io_uring can be created", "raise the limit of locked memory (ulimit -l)"),
        Some(Errno::MFILE) => ("no io_uring can be created", "raise the limit of open files (ulimit -n)"),
        _ => return io::Error::new(error.kind(), format!("no io_uring can be created: {error}")),
    };
    io::Error::new(error.kind(), format!("{why} ({error}): {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_io_uring_is_told_what_to_do() {
        let told = |errno: Errno| explained(errno.into()).to_string();
        assert!(told(Errno::PERM).contains("kernel.io_uring_disabled"), "{}", told(Errno::PERM));
        assert!(told(Errno::NOSYS).starts_with("this kernel has no io_uring"));
        assert!(told(Errno::MFILE).contains("ulimit -n") && told(Errno::NOMEM).contains("ulimit -l"));
        assert!(told(Errno::INVAL).contains("no io_uring can be created"));
    }
}
