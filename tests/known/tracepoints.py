"""Which tracepoints this kernel has, whether or not anybody has mounted tracefs.

The constraint: a machine that nobody prepared has tracefs mounted nowhere. The agent mounts it where nobody else sees
it; whoever asks /sys/kernel/tracing alone hears that there are no tracepoints.
"""

from __future__ import annotations

import functools
import subprocess

TRACEFS = "/sys/kernel/tracing"


@functools.cache
def of_single_system_calls() -> bool:
    """Whether each system call has tracepoints of its own (CONFIG_FTRACE_SYSCALLS). Needs root."""
    # Private from /sys on: in a chroot the root is no mount that could be made private.
    mounted = f"test -d {TRACEFS}/events || mount -t tracefs tracefs {TRACEFS}"
    script = f"mount --make-rprivate /sys; {mounted} && test -d {TRACEFS}/events/syscalls"
    apart = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", script]
    return subprocess.run(apart, check=False, capture_output=True).returncode == 0
