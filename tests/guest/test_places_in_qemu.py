"""A stripe in guests of QEMU, from the plan to the page: md of two of Debian's kernels, which are modules there.

Without KVM every instruction is emulated. So what is asked is what holds there too: which member the requests came to,
to the byte, and that the page names what it cannot say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import debian_kernels
import pytest

from plimsoll.analysis.files import members
from plimsoll.environment import StateDir, undo
from plimsoll.environment.guest import machine, qemu
from plimsoll.record import open_run

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ("root", "guests of QEMU", "server user", "mdadm", "Debian 6.1 and 6.12 kernel packages")
SECONDS_MAX = 3 * 3600
KIB = 1024
RECORD, BLOCK = 16 * KIB, KIB  # of the load, and of the file system: mkfs's choice for so small a device
SIZES_KIB = (64, 160, 256, 368)
# Files of one size each, that are read record by record around the page cache.
FILE = """format = 1
name = "stripe-on-kernels"
title = "How does a kernel's md divide what is read?"

[environment]
kernels.old = {{ release = "{old}", folder = "{folder}" }}
kernels.new = {{ release = "{new}", folder = "{folder}" }}
boot = {{ by = "qemu", cpus = 1 }}
guest = {{ memory = "1 GiB" }}

[environment.places.stripe]
image = "24 MiB"
images = 2
image_blocks = "reserved"
raid = {{ level = 0, chunk = "64 KiB" }}
file_system = "ext4"
mkfs = {{ block_size = 1024 }}

[target]
server = "files"
files = {{ data = "stripe" }}

[workload]
name = "sequential_io"
file_size = "64 KiB"
record = "16 KiB"
direct = true
passes = ["write", "read"]

[probes]
page_cache = false
breakdown = false
double_caching = false
sync = false

[warmup]
until = "none"

[design]
blocks = 1
seed = 3
repeat_share_max = 0

[[factors]]
path = "environment.kernel"
levels = ["old", "new"]

[[factors]]
path = "workload.file_size"
levels = {sizes}
"""
Came = tuple[tuple[int, int], ...]  # to each member: requests, bytes


@pytest.fixture
def place(needs: Callable[..., None]) -> Iterator[Path]:
    needs(*NEEDS)
    # Not in pytest's own folder: the server's user could not reach that.
    with tempfile.TemporaryDirectory(prefix="plimsoll-test-", dir="/var/tmp") as name:
        found = Path(name)
        found.chmod(0o755)
        folder, releases = debian_kernels.kernels()
        sizes = json.dumps([f"{size} KiB" for size in SIZES_KIB])
        (found / "experiment.toml").write_text(FILE.format(folder=folder, sizes=sizes, **releases))
        StateDir(found / "state").prepare()
        yield found
        undo(StateDir(found / "state"), force=True)


def on_the_host() -> dict[str, Any]:
    """What a place would leave of itself."""
    return {
        "arrays": sorted(entry.name for entry in Path("/sys/block").glob("md*")),
        "loops": sorted(str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file")),
        "mounts": sorted(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()),
    }


def divided(size: int, start: int, chunk: int) -> Came:
    """What comes to each of two members of a file that begins at `start` of the array and is read record by record."""
    requests, nbytes = [0, 0], [0, 0]
    for record in range(start, start + size, RECORD):
        at, end = record, min(record + RECORD, start + size)
        while at < end:
            border = min(end, (at // chunk + 1) * chunk)
            requests[at // chunk % 2] += 1
            nbytes[at // chunk % 2] += border - at
            at = border
    return tuple(zip(requests, nbytes, strict=True))


def starts(came: dict[int, Came], chunk: int) -> list[int]:
    """Where in a stripe of that chunk the files can begin, by what came to the members for each size."""
    return [
        start
        for start in range(0, 2 * chunk, BLOCK)
        if all(divided(size, start, chunk) == found for size, found in came.items())
    ]


@pytest.mark.long
def test_a_stripe_on_two_kernels_to_the_page(place: Path) -> None:
    before = on_the_host()
    env = {**os.environ, "PLIMSOLL_STATE": str(place / "state"), "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-P", "-m", "plimsoll", "run", "experiment.toml", "--out", "out"]
    done = subprocess.run(argv, env=env, cwd=place, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    said = done.stdout + done.stderr
    console = place / "out/guest-console.txt"
    assert done.returncode == 0, said + (console.read_text()[-4000:] if console.exists() else "")

    run = open_run(place / "out")
    assert [trial.status for trial in run.trials] == ["finished"] * 2 * len(SIZES_KIB)
    levels = {trial["number"]: trial["levels"] for trial in run.plan["trials"]}
    came: dict[str, dict[int, Came]] = {"old": {}, "new": {}}
    for trial in run.trials:
        stripe = trial.data["layout"]["places"]["stripe"]
        assert (stripe["raid"]["level"], stripe["raid"]["chunk"], stripe["file_system"]) == (0, 64 * KIB, "ext4")
        assert [one["image"]["file_system"] for one in stripe["devices"]] == ["ext4"] * 2, "on the guest's disk"
        (read,) = (one for one in trial.data["passes"] if one["pass"] == "read")
        mine = levels[trial.data["number"]]
        size = KIB * int(mine["workload.file_size"].removesuffix(" KiB"))
        moved = members.moved(trial.data["layout"], read["member_counters"])
        came[mine["environment.kernel"]][size] = tuple((one["reads"], one["read_bytes"]) for one in moved)
    print(json.dumps(came))
    for kernel, found in came.items():
        assert sorted(found) == [KIB * size for size in SIZES_KIB]
        # Every request on the member that its chunk is on, and none across a border: by no other chunk would it be so.
        assert starts(found, 64 * KIB), (kernel, found)
        assert not [chunk for chunk in (16, 32, 128) if starts(found, chunk * KIB)]

    page, verdict = (place / "out/report/index.html").read_text(), json.loads((place / "out/verdict.json").read_text())
    emulated = not qemu.has_kvm()
    assert verdict["guest"]["accelerator"] == (qemu.TCG if emulated else qemu.KVM)
    limits = ["How fast a device is", "what is apart in the layout shares its speed", "RAID-0"]
    limits += ["emulated: mechanism only", "How fast the host would be"] if emulated else []
    assert not [limit for limit in limits if limit not in page]

    assert on_the_host() == before
    folders = (place / "state/work", place / "state/journal")
    assert not [entry for folder in folders for entry in folder.iterdir()]
    own = [pid for pid in machine.processes.all_pids() if str(place) in (machine.processes.link(pid, "cwd") or "")]
    assert not own, "no process of a guest"
