"""Two of Debian 12's kernels, 6.1 and 6.12 in their -cloud builds, unpacked and never installed.

The constraint: the packages' names hold numbers that every update raises, so the archive's own packages that depend on
them are asked. What was unpacked is kept under the state folder.
"""

from __future__ import annotations

import functools
import lzma
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from debian_kernel import TOOLS, Kernel, load_order

from plimsoll.environment import StateDir

NEWEST_OF = {"old": "linux-image-cloud-amd64", "new": "linux-image-6.12-cloud-amd64"}


@functools.cache
def packages() -> dict[str, str] | None:
    """The package of each of the two kernels; None where the archive does not offer both."""
    tools = ("apt-cache", "apt-get", "dpkg-deb", "depmod")
    if platform.machine() != "x86_64" or not all(shutil.which(tool, path=TOOLS["PATH"]) for tool in tools):
        return None
    found = {}
    for name, newest in NEWEST_OF.items():
        told = subprocess.run(
            ["apt-cache", "depends", newest], capture_output=True, text=True, env=TOOLS, check=False
        ).stdout
        match = re.search(r"^\s*Depends: (linux-image-\d\S+-cloud-amd64)$", told, re.MULTILINE)
        if match is None:
            return None
        found[name] = match[1]
    return found


def kernels() -> tuple[Path, dict[str, str]]:
    """The folder that they are unpacked in, and their releases by name."""
    wanted = packages()
    assert wanted is not None
    kept = StateDir().root / "guest" / "kernels"
    releases = {name: package.removeprefix("linux-image-") for name, package in wanted.items()}
    for name, package in wanted.items():
        if (kept / "lib/modules" / releases[name] / "modules.dep").exists():
            continue
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as room:
            argv = ["apt-get", "-o", "APT::Sandbox::User=root", "download", package]
            subprocess.run(argv, check=True, cwd=room, env=TOOLS, stdout=subprocess.DEVNULL)
            (archive,) = Path(room).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive), str(kept)], check=True, env=TOOLS)
        subprocess.run(["depmod", "-b", str(kept), releases[name]], check=True, env=TOOLS)
    return kept, releases


def bootable(name: str, modules: Iterable[str], room: Path) -> Kernel:
    """One of them for guest.py, with these modules and all that they depend on, unpacked into `room`."""
    folder, releases = kernels()
    release, found = releases[name], []
    for place, module in enumerate(load_order(folder, release, modules)):
        packed = module.suffix == ".xz"
        there = room / f"{place:02}-{module.stem if packed else module.name}"
        there.write_bytes(lzma.decompress(module.read_bytes()) if packed else module.read_bytes())
        found.append(there)
    return Kernel(f"linux-image-{release}", release, folder / "boot" / f"vmlinuz-{release}", tuple(found))
