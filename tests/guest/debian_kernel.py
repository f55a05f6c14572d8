"""Debian's 6.1 kernel, out of its package and never installed: the image, and the modules a guest has to load.

The constraint: the package's name holds a number that every update raises, so the archive is asked and nothing is
assumed. What was taken out is kept under the state folder; package lists that are older than the archive are renewed.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.environment import StateDir

SERIES = "6.1"
WANTED_MODULES = ("virtio_pci", "virtio_blk", "ext4", "xfs")
TOOLS = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}


@dataclass(frozen=True)
class Kernel:
    """`modules` in the order in which they can be loaded."""

    package: str
    version: str
    image: Path
    modules: tuple[Path, ...]


@functools.cache
def package() -> str | None:
    """The image package of Debian's 6.1 series that the machine's archive offers for this architecture, if it does."""
    if platform.machine() != "x86_64" or not all(shutil.which(tool) for tool in ("apt-cache", "apt-get", "dpkg-deb")):
        return None
    found = subprocess.run(
        ["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, env=TOOLS, check=False
    )
    series = re.escape(SERIES)
    match = re.search(rf"^\s*Depends: (linux-image-{series}\.\S+-amd64)$", found.stdout, re.MULTILINE)
    return match[1] if match else None


def kernel() -> Kernel:
    """The kernel, from the kept folder or, the first time, from the archive."""
    try:
        return _kept_or_taken_out()
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
    _call("apt-get", "update")  # the archive has moved on since the lists were fetched
    package.cache_clear()
    return _kept_or_taken_out()


def _kept_or_taken_out() -> Kernel:
    name = package()
    assert name, f"the archive offers no kernel of Debian's {SERIES} series"
    kept = StateDir().root / "guest"
    kept.mkdir(parents=True, exist_ok=True)
    version = _candidate(name)
    folder = kept / "_".join((name, version, *WANTED_MODULES))
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=kept) as room:
            _take_out(name, Path(room)).rename(folder)
        for older in kept.glob("linux-image-*"):
            if older != folder:
                shutil.rmtree(older)
    return Kernel(name, version, folder / "vmlinuz", tuple(sorted(folder.glob("modules/*"))))


def _call(*argv: str, cwd: Path | None = None) -> str:
    return subprocess.run([*argv], check=True, stdout=subprocess.PIPE, text=True, env=TOOLS, cwd=cwd).stdout


def _candidate(name: str) -> str:
    match = re.search(r"Candidate: (\S+)", _call("apt-cache", "policy", name))
    assert match, f"{name} is named by linux-image-amd64 and not in the archive"
    return match[1]


def _take_out(name: str, room: Path) -> Path:
    """Fetch and unpack the package (400 MiB), and keep the image and the wanted modules (10 MiB) under `room`/kept."""
    room.chmod(0o777)  # apt-get gives up its rights to fetch
    _call("apt-get", "download", name, cwd=room)
    (archive,) = room.glob("*.deb")
    whole = room / "whole"
    _call("dpkg-deb", "-x", str(archive), str(whole))
    (release,) = (folder.name for folder in (whole / "lib/modules").iterdir())
    _call("depmod", "-b", str(whole), release)
    folder = room / "kept"
    (folder / "modules").mkdir(parents=True)
    shutil.copy(whole / "boot" / f"vmlinuz-{release}", folder / "vmlinuz")
    for place, module in enumerate(load_order(whole, release, WANTED_MODULES)):
        shutil.copy(module, folder / "modules" / f"{place:02}-{module.name}")
    return folder


def load_order(whole: Path, release: str, wanted: Iterable[str]) -> list[Path]:
    """Every wanted module after all it depends on, each once. A module built into the kernel needs no file."""
    order: dict[str, None] = {}
    for module in wanted:
        shown = _call("modprobe", "-C", "/dev/null", "-d", str(whole), "-S", release, "--show-depends", module)
        order.update(dict.fromkeys(re.findall(r"^insmod (\S+)", shown, re.MULTILINE)))
    return [Path(name) for name in order]
