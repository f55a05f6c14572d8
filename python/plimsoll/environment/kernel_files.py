"""Small files of the kernel (procfs, sysfs, cgroups): read without surprise, write with the file's name in every error.

The constraint: the kernel refuses a setting at write(2), not at open(2), and reports only an errno. The name of the
file and the value that was refused have to be added here, or nobody can act on the message.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from plimsoll.environment.fault import Fault

_MEANING = {
    errno.EINVAL: "the kernel does not accept this value",
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted",
    errno.ENOENT: "this kernel does not have it",
    errno.EBUSY: "it is in use",
    errno.EROFS: "it is mounted read-only (a container?)",
    errno.ENOMEM: "there is not enough memory",
    errno.ENOSPC: "something it needs is empty or full",
}


def read(path: Path) -> str | None:
    """The content without surrounding space, or None where it cannot be read. Absence is an answer, not an error."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    text = read(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def write(path: Path, value: str, *, remedy: str = "", folder: int | None = None) -> None:
    """One write(2) into an existing file; never creates one. `folder`: it lies in this one, whatever its path says."""
    try:
        descriptor = os.open(path if folder is None else path.name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        meaning = _MEANING.get(error.errno or 0, error.strerror or str(error))
        advice = remedy or (
            "run as root"
            if error.errno in (errno.EACCES, errno.EPERM)
            else "see `plimsoll doctor` for what is possible"
        )
        raise Fault(f"{path}: could not write {value!r}: {meaning}", remedy=advice) from error


_MARKS = {"[": "]", "(": ")"}


def _is_marked(word: str) -> bool:
    return len(word) > 2 and _MARKS.get(word[0]) == word[-1]


def selected(text: str) -> str:
    """The choice in brackets of a file like `always [madvise] never`; the text itself where none is in brackets."""
    return next((word[1:-1] for word in text.split() if _is_marked(word)), text)


def choices(text: str) -> list[str]:
    """All choices of such a file."""
    return [word[1:-1] if _is_marked(word) else word for word in text.split()]


def pairs(text: str) -> dict[str, int]:
    """`name number` lines, as in memory.stat and memory.events."""
    numbers = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().lstrip("-").isdigit():
            numbers[name] = int(value)
    return numbers
