"""A program beside a view of the whole file system that nobody can write to, not even root in a guest.

    python -I read_only.py VIEW PROGRAM ARGUMENT...

VIEW, an empty folder, shows "/" with all that is mounted below it, each read-only, in a mount namespace of the
program's own: it is gone with the program, and nobody else sees it. What shows the host's root to a guest shows this,
for the guest's own `-o ro` is the guest's to lift.

It runs by itself, before anything of ours is imported. mount_setattr(2) is Linux 5.12's.
Exit code: the program's; 1 where the kernel refuses, with what it says on standard error.
"""

import ctypes
import os
import sys

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 0x1
_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def _done(what: str, result: int) -> None:
    if result != 0:
        sys.exit(f"read_only.py: {what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str | None, target: str, flags: int) -> int:
    named = None if source is None else os.fsencode(source)
    return int(_libc.mount(named, os.fsencode(target), None, ctypes.c_ulong(flags), None))


def main(view: str, program: list[str]) -> None:
    """Does not return."""
    _done("unshare", _libc.unshare(_CLONE_NEWNS))
    _done("mount --make-rprivate /", _mount(None, "/", _MS_REC | _MS_PRIVATE))
    _done(f"mount --rbind / {view}", _mount("/", view, _MS_BIND | _MS_REC))
    attr = _MountAttr(attr_set=_RDONLY)
    result = _libc.syscall(
        *(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(view), _AT_RECURSIVE),
        *(ctypes.byref(attr), ctypes.c_size_t(ctypes.sizeof(attr))),
    )
    _done(f"mount_setattr {view}", result)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
