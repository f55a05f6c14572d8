//! Stands in for `ptrace` in user-mode-linux 6.1, by `LD_PRELOAD`, so that it boots where CPUs have AMX.
//!
//! The fact that constrains it: Linux takes a process's vector registers by `PTRACE_SETREGSET` as a whole XSAVE area or not at
//! all (EFAULT; `copy_uabi_to_xstate`'s caller `xstateregs_set`). user-mode-linux has room for AVX-512 and hands back what it was
//! given, which on a CPU with AMX is a quarter of the area; it then panics: "ptrace set fp regs failed". What it leaves out is the
//! state of AMX, which no process has that has not asked for it (`ARCH_REQ_XCOMP_PERM`), and which nothing in such a kernel can ask
//! for. So the rest of the area is zeros, and its header says that it is unused.
//!
//! It runs on the stacks of a kernel, and within its signal handlers: nothing is allocated, and nothing panics.

use libc::{
    PTRACE_GETREGSET, PTRACE_PEEKTEXT, PTRACE_PEEKUSER, PTRACE_SETREGSET, SYS_ptrace, c_long, c_uint, c_void, iovec,
    pid_t,
};
use std::cell::UnsafeCell;
use std::ptr::{addr_of_mut, copy_nonoverlapping};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The set of registers that XSAVE saves (elf.h).
const NT_X86_XSTATE: usize = 0x202;
/// More than any CPU's XSAVE area: 11,008 bytes with AMX.
const ROOM: usize = 1 << 16;

/// The area as it is handed on, zeros behind what user-mode-linux knows of it; and by its size whether that is needed.
struct Area(UnsafeCell<[u8; ROOM]>);

// SAFETY: user-mode-linux traces from one thread, and is not preempted within a call.
#[allow(unsafe_code)]
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new([0; ROOM]));
static AREA_BYTES: AtomicUsize = AtomicUsize::new(0);

/// As ptrace(2) of glibc, which differs from the system call in that what is peeked at is returned.
///
/// # Safety
/// As ptrace(2): `data` is what the request says; of a set of registers an `iovec`.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(request: c_uint, pid: pid_t, addr: *mut c_void, data: *mut c_void) -> c_long {
    // SAFETY: what the caller promises.
    unsafe {
        if (PTRACE_PEEKTEXT..=PTRACE_PEEKUSER).contains(&request) {
            let mut word: c_long = 0;
            let answer = asked(request, pid, addr, addr_of_mut!(word).cast());
            return if answer < 0 { answer } else { word };
        }
        if request == PTRACE_SETREGSET && addr as usize == NT_X86_XSTATE {
            let given = *data.cast::<iovec>();
            let whole = area_bytes(pid);
            if given.iov_len < whole && whole <= ROOM {
                copy_nonoverlapping(given.iov_base.cast::<u8>(), AREA.0.get().cast::<u8>(), given.iov_len);
                let mut area = iovec { iov_base: AREA.0.get().cast(), iov_len: whole };
                return asked(request, pid, addr, addr_of_mut!(area).cast());
            }
        }
        asked(request, pid, addr, data)
    }
}

/// The size of this CPU's XSAVE area in bytes: what the kernel fills of one that has room. 0 where it does not say.
#[allow(unsafe_code)]
unsafe fn area_bytes(pid: pid_t) -> usize {
    let known = AREA_BYTES.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let mut area = iovec { iov_base: AREA.0.get().cast(), iov_len: ROOM };
    // SAFETY: there is that much room, and the area is written by one thread.
    unsafe {
        if asked(PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut c_void, addr_of_mut!(area).cast()) != 0 {
            return 0;
        }
        AREA.0.get().cast::<u8>().write_bytes(0, ROOM);
    }
    AREA_BYTES.store(area.iov_len, Ordering::Relaxed);
    area.iov_len
}

#[allow(unsafe_code)]
unsafe fn asked(request: c_uint, pid: pid_t, addr: *mut c_void, data: *mut c_void) -> c_long {
    // SAFETY: what the caller of ptrace promises.
    unsafe { libc::syscall(SYS_ptrace, c_long::from(request), c_long::from(pid), addr, data) }
}
