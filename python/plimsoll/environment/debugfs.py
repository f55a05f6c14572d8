"""debugfs, whether or not anybody has mounted it: where nobody has, it is mounted where nobody else sees it.

The constraint: a mount in the tree would be a change of the machine, which a kill leaves behind. One that is attached
nowhere (fsmount(2)) is reached by its descriptor alone, and goes with the process.
"""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

MOUNTED = Path("/sys/kernel/debug")
# Their numbers are the same on every architecture.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC, _CREATE = 1, 6
_libc = ctypes.CDLL(None, use_errno=True)


@functools.cache
def folder() -> Path:
    """Its root. Raises OSError where it cannot be had: not as root, in a container, or the kernel has none."""
    if (MOUNTED / "sched").is_dir():
        return MOUNTED
    return Path(f"/proc/self/fd/{_mounted_nowhere()}")


def _mounted_nowhere() -> int:
    context = _call(_FSOPEN, b"debugfs", _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)


def _call(number: int, *arguments: object) -> int:
    done = int(_libc.syscall(number, *arguments))
    if done < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "debugfs")
    return done
