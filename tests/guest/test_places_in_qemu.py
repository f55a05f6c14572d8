"""Places in guests of QEMU, from the plan to the page: md and device-mapper, which are modules of Debian's kernels.

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
from plimsoll.environment import StateDir, kernel_files, processes, undo
from plimsoll.environment.guest import qemu
from plimsoll.record import Run, open_run

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ("root", "guests of QEMU", "server user", "mdadm", "Debian 6.1 and 6.12 kernel packages")
NEEDS_OF_STACKS = ("dmsetup", "lvm", "mkfs.xfs", "mkfs.btrfs")
SECONDS_MAX = 3 * 3600
KIB = 1024
RECORD, BLOCK = 16 * KIB, KIB  # of the load, and of the file system: mkfs's choice for so small a device
SIZES_KIB = (64, 160, 256, 368)
FILE = """format = 1
name = "places-on-kernels"
title = "How does a kernel divide what is read and written?"

[environment]
kernel = "new"
kernels.old = {{ release = "{old}", folder = "{folder}" }}
kernels.new = {{ release = "{new}", folder = "{folder}" }}
boot = {{ by = "qemu", cpus = 1 }}
guest = {{ memory = "1 GiB" }}

[environment.places.disk]
image_blocks = "reserved"
{place}

[target]
server = "files"
files = {{ data = "disk" }}

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
{factors}
"""
STRIPE = """image = "24 MiB"
images = 2
raid = { level = 0, chunk = "64 KiB" }
file_system = "ext4"
mkfs = { block_size = 1024 }
"""
# Files of one size each, that are read record by record around the page cache.
STRIPE_VARIED = f"""
[[factors]]
path = "environment.kernel"
levels = ["old", "new"]

[[factors]]
path = "workload.file_size"
levels = {json.dumps([f"{size} KiB" for size in SIZES_KIB])}
"""
STACKS: dict[str, dict[str, Any]] = {
    "RAID-10 under XFS": {
        "images": 4, "raid.level": 10, "raid.chunk": "64 KiB", "raid.assume_clean": True, "file_system": "xfs",
    },
    "RAID-5 and dm-linear under ext3": {
        "images": 3, "raid.level": 5, "raid.chunk": "64 KiB", "raid.assume_clean": True, "mapper.kind": "linear",
        "file_system": "ext3",
    },
    "dm-delay under btrfs": {
        "images": 1, "mapper.kind": "delay", "mapper.read_delay_ms": 10, "mapper.write_delay_ms": 10,
        "file_system": "btrfs",
    },
    "LVM's stripes under ext2": {
        "images": 2, "volume.kind": "striped", "volume.stripe": "64 KiB", "file_system": "ext2",
    },
}  # fmt: skip
Came = tuple[tuple[int, int], ...]  # to each member: requests, bytes


@pytest.fixture
def place(needs: Callable[..., None]) -> Iterator[Path]:
    needs(*NEEDS)
    # Not in pytest's own folder: the server's user could not reach that.
    with tempfile.TemporaryDirectory(prefix="plimsoll-test-", dir="/var/tmp") as name:
        found = Path(name)
        found.chmod(0o755)
        StateDir(found / "state").prepare()
        yield found
        undo(StateDir(found / "state"), force=True)


def left_of(place: Path) -> list[str]:
    """What there still is on the host of a run in this folder: loop devices, mounts, files and processes."""
    shown = [kernel_files.read(path) or "" for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    running = [processes.link(pid, "cwd") or "" for pid in processes.all_pids()]
    files = [entry for folder in ("work", "journal") for entry in (place / "state" / folder).iterdir()]
    return [*(one for one in (*shown, *points, *running) if str(place) in one), *map(str, files)]


def performed(place: Path, layers: str, factors: str) -> tuple[Run, dict[int, dict[str, str]]]:
    """The run, and the levels of its trials by number. Nothing of it stays on the host."""
    folder, releases = debian_kernels.kernels()
    text = FILE.format(folder=folder, place=layers, factors=factors, **releases)
    (place / "experiment.toml").write_text(text)
    env = {**os.environ, "PLIMSOLL_STATE": str(place / "state"), "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-P", "-m", "plimsoll", "run", "experiment.toml", "--out", "out"]
    done = subprocess.run(argv, env=env, cwd=place, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    console = place / "out/guest-console.txt"
    said = done.stdout + done.stderr
    assert done.returncode == 0, said + (console.read_text()[-4000:] if console.exists() else "")
    assert left_of(place) == []
    run = open_run(place / "out")
    assert {trial.status for trial in run.trials} == {"finished"}
    return run, {trial["number"]: trial["levels"] for trial in run.plan["trials"]}


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
    run, levels = performed(place, STRIPE, STRIPE_VARIED)
    assert len(run.trials) == 2 * len(SIZES_KIB)
    came: dict[str, dict[int, Came]] = {"old": {}, "new": {}}
    for trial in run.trials:
        made = trial.data["layout"]["places"]["disk"]
        assert (made["raid"]["level"], made["raid"]["chunk"], made["file_system"]) == (0, 64 * KIB, "ext4")
        assert [one["image"]["file_system"] for one in made["devices"]] == ["ext4"] * 2, "on the guest's disk"
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


@pytest.mark.long
def test_other_layers_are_made_and_taken_away(place: Path, needs: Callable[..., None]) -> None:
    needs(*NEEDS_OF_STACKS)
    factors = '\n[[factors]]\nname = "stack"\n'
    for label, layers in STACKS.items():
        set_to = (f'"environment.places.disk.{key}" = {json.dumps(value)}\n' for key, value in layers.items())
        factors += f'\n[[factors.levels]]\nlabel = "{label}"\n[factors.levels.set]\n{"".join(set_to)}'
    run, levels = performed(place, 'image = "320 MiB"', factors)
    assert len(run.trials) == len(STACKS)
    for trial in run.trials:
        label = levels[trial.data["number"]]["stack"]
        asked, made = STACKS[label], trial.data["layout"]["places"]["disk"]
        assert (made["file_system"], len(made["devices"])) == (asked["file_system"], asked["images"])
        for layer, key in (("raid", "level"), ("mapper", "kind"), ("volume", "kind")):
            assert made.get(layer, {}).get(key) == asked.get(f"{layer}.{key}"), (label, layer)
        (write,) = (one for one in trial.data["passes"] if one["pass"] == "write")
        moved = members.moved(trial.data["layout"], write["member_counters"])
        written = [one["written_bytes"] for one in moved]
        print(label, written)
        assert min(written) > 0
        if asked.get("raid.level") == 10:
            assert written[0] == written[1] and written[2] == written[3], "each half of a pair is the other's copy"
