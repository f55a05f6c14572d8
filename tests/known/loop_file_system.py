"""A file system in an image on a loop device with direct I/O; whatever happens, nothing of it stays.

The constraint: without direct I/O the loop reads its image through the page cache too, and what it brings would be
seen by every probe of the page cache.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
_TOOLS = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q"],
    "btrfs": ["mkfs.btrfs", "-q"],
}


def call(*argv: str) -> str:
    """What a tool says; raises with its message if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, env=_TOOLS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout.strip()


_PREFIX = "plimsoll-known-"
# In a process of its own, so that the file system thaws whatever becomes of the test. Gives when nothing could be
# written any more and when it could again, by the monotonic clock.
_FREEZES = """
import fcntl, os, sys, time
point = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
fcntl.ioctl(point, 0xC0045877, 0)  # FIFREEZE
try:
    frozen = time.monotonic_ns()
    time.sleep(float(sys.argv[2]))
    thaws = time.monotonic_ns()
finally:
    fcntl.ioctl(point, 0xC0045878, 0)  # FITHAW
print(frozen, thaws)
"""


@dataclass
class FileSystem:
    kind: str
    point: Path
    loop: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def fresh(self) -> Path:
        """A folder for one test."""
        root = self.point / f"world{next(self._numbers)}"
        root.mkdir()
        return root

    def remove(self, root: Path) -> None:
        """The folder again, with what is in it (btrfs: with its subvolumes)."""
        shutil.rmtree(root)

    def sectors_read(self) -> int:
        """By the device, since it was made."""
        return int(Path("/sys/block", Path(self.loop).name, "stat").read_text().split()[2])

    def stand_still(self, seconds: float) -> tuple[int, int]:
        """Whoever writes waits meanwhile. From when to when at least, in nanoseconds."""
        frozen, thaws = call(sys.executable, "-I", "-S", "-c", _FREEZES, str(self.point), str(seconds)).split()
        return int(frozen), int(thaws)


@contextlib.contextmanager
def loop_file_system(kind: str, size: int = 400 * MIB, within: Path | None = None) -> Iterator[FileSystem]:
    """`kind`: ext4, xfs or btrfs. The image is sparse, in /var/tmp (a real disk, unlike /tmp on some machines).

    `within`: the image lies in that folder, whose file system need not know direct I/O.
    """
    _clear_what_the_killed_left()
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{kind}-", dir="/var/tmp"))
        undo.callback(shutil.rmtree, folder)
        image, point = (within or folder) / "image", folder / "mounted"
        with image.open("wb") as file:
            file.truncate(size)
        point.mkdir()
        call(*_MAKE[kind], str(image))
        loop = call("losetup", "--find", "--show", f"--direct-io={'off' if within else 'on'}", str(image))
        undo.callback(call, "losetup", "--detach", loop)
        if not within and Path("/sys/block", Path(loop).name, "loop/dio").read_text().strip() != "1":
            raise RuntimeError(f"{loop}: direct I/O is not on")
        call("mount", loop, str(point))
        undo.callback(_unmount, point)
        folder.chmod(0o755)
        yield FileSystem(kind, point, loop)


def _clear_what_the_killed_left() -> None:
    """File systems of test processes that are no more."""
    for left in Path("/var/tmp").glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).split("-")[0]
        if not pid.isdigit() or Path("/proc", pid).exists():
            continue
        if (left / "mounted").is_mount():
            _unmount(left / "mounted")
        # An image lies in a folder with its mount, or by itself (`disk` of test_places_undo).
        image = left / "image" if left.is_dir() else left
        for line in call("losetup", "--associated", str(image)).splitlines():
            call("losetup", "--detach", line.split(":")[0])
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def _unmount(point: Path) -> None:
    """A process that was just killed may hold a file for a moment; after that the mount goes when the last one does."""
    for _ in range(50):
        with contextlib.suppress(RuntimeError):
            call("umount", str(point))
            return
        time.sleep(0.1)
    call("umount", "--lazy", str(point))
    raise RuntimeError(f"{point}: something still uses it")
