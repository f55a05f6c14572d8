"""The kernel's NFS server, by the kernel's own files: threads, versions, and what it exports to whom.

The constraint: rpc.nfsd, exportfs, mountd and rpcbind are programs around these files, and their packages start them
for good when they are installed. What a trial needs is a few lines written once: the server asks nobody where its
caches know the answer, and they are told it for ever. It listens on the loopback address alone, and takes calls from
privileged ports alone, which only root has.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import step
from plimsoll.environment.places.nfs import registered

ADDRESS: Final = "127.0.0.1"
GRACE_SECONDS: Final = 10  # the least that the kernel takes
SETTINGS: Final = ("versions", "max_block_size", "nfsv4recoverydir", "nfsv4gracetime")  # that outlive its threads
VERSIONS: Final = ("3", "4.0", "4.1", "4.2")
_DOMAIN: Final = "plimsoll"  # the clients that we export to
_FOR_EVER: Final = 2**31 - 1
_CACHES: Final = ("auth.unix.ip", "nfsd.fh", "nfsd.export")
_PROC: Final = Path("/proc/net/rpc")
# Export flags (include/uapi/linux/nfsd/export.h).
_READ_ONLY, _ASYNC, _WDELAY, _NO_SUBTREE_CHECK, _FSID, _V4_ROOT = 0x1, 0x10, 0x20, 0x400, 0x2000, 0x10000
_NUMBERED: Final = 1  # FSID_NUM, of file handles: the file system by a number of ours
_NOBODY: Final = 65534


@dataclass(frozen=True)
class Exported:
    """A folder that is exported, with its options."""

    path: str
    sync: bool
    wdelay: bool

    @property
    def flags(self) -> int:
        """As the kernel takes them. Root stays root: whoever may call from a privileged port has it anyway."""
        how = (0 if self.sync else _ASYNC) | (_WDELAY if self.wdelay and self.sync else 0)
        return _NO_SUBTREE_CHECK | _FSID | how


@dataclass(frozen=True)
class Wanted:
    """What the server is to be. `root`: the folder that all exports lie in, of which clients see nothing else."""

    files: str  # where nfsd's file system is mounted
    clients: str  # the folder in which it remembers who has files open
    root: str
    exports: list[Exported]
    versions: list[str]
    threads: int
    port: int
    max_block_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        """As a journal holds it."""
        return asdict(self)

    @staticmethod
    def of(stored: dict[str, Any]) -> Wanted:
        """What a journal holds."""
        return Wanted(**{**stored, "exports": [Exported(**one) for one in stored["exports"]]})


def default_block_bytes(memory_bytes: int) -> int:
    """What the kernel takes for max_block_size where nobody has said anything: it tells 0 until its first start, and
    takes no 0 back. A 4096th of the memory at most, in halves of 1 MiB."""
    found = 1 << 20
    while found > memory_bytes >> 12 and found >= 16 << 10:
        found //= 2
    return found


def path_of(export: str, root: str) -> str:
    """What clients of version 4 name it by."""
    return f"/{Path(export).relative_to(root)}"


def versions_text(versions: Sequence[str]) -> str:
    """What is written so that these are served and no others."""
    fours = [one for one in versions if one != "3"]
    minor = "".join(f" {'+' if one in fours else '-'}{one}" for one in VERSIONS if one != "3")
    return f"{'+' if '3' in versions else '-'}3 {'+' if fours else '-'}4{minor if fours else ''}"


def cache_lines(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """What each cache is told: who calls from the loopback address, which folders there are, and their handles."""
    yield "auth.unix.ip", f"nfsd {ADDRESS} {_FOR_EVER} {_DOMAIN}"
    root = (wanted.root, _READ_ONLY | _NO_SUBTREE_CHECK | _FSID | _V4_ROOT)
    for number, (path, flags) in enumerate([root, *((one.path, one.flags) for one in wanted.exports)]):
        quoted, handle = _quoted(path), struct.pack("=I", number).hex()
        yield "nfsd.export", f"{_DOMAIN} {quoted} {_FOR_EVER} {flags} {_NOBODY} {_NOBODY} {number}"
        yield "nfsd.fh", f"{_DOMAIN} {_NUMBERED} \\x{handle} {_FOR_EVER} {quoted}"


def _quoted(path: str) -> str:
    """As the caches take a word: what would end it in octal."""
    return "".join(f"\\{byte:03o}" if byte <= 0x20 or byte in b"\\" or byte > 0x7E else chr(byte)
                   for byte in os.fsencode(path))  # fmt: skip


def start(wanted: Wanted) -> None:
    """Starts it, and tells it all that it would ask for. Raises Fault where the kernel refuses."""
    files = Path(wanted.files)
    _write(files / "versions", versions_text(wanted.versions), "choose another nfs.version")
    step("after versions")
    if wanted.max_block_bytes is not None:
        _write(files / "max_block_size", str(wanted.max_block_bytes), "leave environment.nfsd.max_block_size out")
        step("after max_block_size")
    for name, text in (("nfsv4recoverydir", wanted.clients), ("nfsv4gracetime", str(GRACE_SECONDS))):
        if (files / name).exists():
            _write(files / name, text, "see `dmesg`")
            step(f"after {name}")
    folder = os.open(files, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with registered.rpcbind_for(lambda: _listen(wanted, folder)):
            # Not where the thread is: what the kernel looks up now (the folder of clients) may be hidden there.
            _write(files / "threads", str(wanted.threads), "see `dmesg`")
    finally:
        os.close(folder)
    step("after threads")
    if any(one != "3" for one in wanted.versions):
        # Nobody has files open from before, for whom new opens would have to wait. A kernel that keeps no account of
        # clients by itself does not end that time before it is over.
        with suppress(Fault):
            _write(files / "v4_end_grace", "Y", "")
    for cache, line in cache_lines(wanted):
        _write(_PROC / cache / "channel", line, "the file system below cannot be exported; choose another for nfs.on")
        step(f"after {cache}")


def _listen(wanted: Wanted, folder: int) -> None:
    """`folder`: nfsd's files, whose path may not be seen from there."""
    files = Path(wanted.files)
    with socket.create_server((ADDRESS, wanted.port)) as listening:
        _write(files / "portlist", str(listening.fileno()), "see `dmesg`", folder)
    step("after portlist")


def stop(files: Path) -> None:
    """No threads, no sockets, nothing exported."""
    _write(files / "threads", "0", "see `dmesg`, then `plimsoll undo`")
    step("after threads")
    flush()


def flush() -> None:
    """Forgets all exports, so that what they hold can be unmounted."""
    now = int(time.time()) + 1
    for cache in _CACHES:
        if (_PROC / cache / "flush").exists():
            _write(_PROC / cache / "flush", str(now), "see `dmesg`")


def handle_of(files: Path, export: str) -> bytes:
    """The file handle of an export's root, as version 3 has it."""
    descriptor = os.open(files / "filehandle", os.O_RDWR | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{_DOMAIN} {_quoted(export)} 64\n".encode())
        told = os.read(descriptor, 4096).decode().strip()
    except OSError as error:
        raise Fault(f"{files}/filehandle: {export}: {error.strerror}", remedy="see `dmesg`") from error
    finally:
        os.close(descriptor)
    return bytes.fromhex(told.removeprefix("\\x"))


def in_force(files: Path, export: str) -> dict[str, Any]:
    """What the kernel tells of the server and of one export."""
    found: dict[str, Any] = {name: kernel_files.read_int(files / name) for name in ("threads", "max_block_size")}
    found["versions"] = kernel_files.read(files / "versions")
    for line in (kernel_files.read(files / "exports") or "").splitlines():
        path, _, rest = line.partition("\t")
        if path == _quoted(export):
            found["export"] = rest.partition("(")[2].rstrip(")").split(",")
    return found


def _write(path: Path, text: str, remedy: str, folder: int | None = None) -> None:
    kernel_files.write(path, f"{text}\n", remedy=remedy, folder=folder)
