"""What the page says that a load on files has read from its device: byte for byte what a known load has to read, what
is in the page cache afterwards, and what /proc/diskstats says to somebody else.

On ext4 on a loop device of the test's own, so that nobody else reads there. The figures leave room for the whole blocks
that a file system reads to find its files, and for the last page of each file: no more than METADATA. What the load
keeps beside its files lies there too, and is in the page cache afterwards like they; it is read before the load begins,
and is no part of what the load has read.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory
from loop_file_system import MIB, FileSystem, loop_file_system

from plimsoll.record import Trial, open_run

NEEDS = ("root", "loop devices and mkfs.ext4")
SECTOR = 512
METADATA = 32 << 10
FILES = 16 * MIB  # what each load here lays out or writes

EXPERIMENT = """
format = 1
name = "devices"
title = "Where do bytes come from?"

[target]
server = "files"
files = {{data = "{place}"}}

{workload}

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

{measure}

[design]
blocks = 1
"""
MIX = """
[workload]
name = "files"
count = 4
file_size = "4 MiB"
mix = [{operation = "read", bytes = "4 KiB"}]
"""
PHASES = """
[workload]
name = "raw_storage"
size = "16 MiB"
phases = ["putc", "rewrite", "read"]
"""


# Reads a file past the page cache, again and again, until its input ends.
READS = """
import mmap, os, select, sys
file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
memory = mmap.mmap(-1, 1 << 20)
print(os.preadv(file, [memory], 0), flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    os.preadv(file, [memory], 0)
"""


@pytest.fixture(scope="module")
def ext4(laboratory: Laboratory) -> Iterator[FileSystem]:
    del laboratory  # whether the machine has what it needs
    with loop_file_system("ext4") as mounted:
        yield mounted


@dataclass
class Seen:
    """A run of one trial: what the record and the page say, and what the device itself counted meanwhile, in all its
    attempts: one from which the hypervisor took CPU time is done again."""

    trial: Trial
    verdict: dict[str, Any]
    device_bytes: int
    attempts: int

    def of_mix(self) -> dict[str, Any]:
        (mix,) = self.verdict["operations"]["treatments"].values()
        return dict(mix)

    def asked(self) -> int:
        """Bytes that the load has read."""
        return int((self.trial.measure.summary or {})["totals"]["bytes_read"])

    def read(self) -> int:
        """Bytes at the device, by the page."""
        return round(self.of_mix()["device_read_share"]["value"] * self.asked())


def run(laboratory: Laboratory, ext4: FileSystem, name: str, workload: str, *sets: str) -> Seen:
    path = laboratory.state / f"{name}.toml"
    measure = "[measure]\ntransactions_per_client = 6000" if workload is MIX else ""
    path.write_text(EXPERIMENT.format(place=ext4.point, workload=workload, measure=measure))
    argv = [item for one in sets for item in ("--set", one)]
    before = ext4.sectors_read()
    answer = json.loads(laboratory.call("run", str(path), "--json", "--no-page", "--out", name, *argv))
    grown = (ext4.sectors_read() - before) * SECTOR
    folder = Path(answer["run"])
    (trial,) = open_run(folder).trials
    assert trial.status == "finished", trial.data.get("reason")
    attempts = 1 + len(list(folder.glob("trials/0001.attempt-*")))
    return Seen(trial, json.loads((folder / "verdict.json").read_text()), grown, attempts)


def residency(seen: Seen) -> tuple[int, int, int]:
    """Bytes of the files in the page cache before and after the measured segment, and all of them."""
    found = seen.trial.data["residency"]
    after = found["after"]
    return found["before_measure"]["resident_bytes"], after["resident_bytes"], after["total_bytes"]


def test_direct_reads_are_all_from_the_device(laboratory: Laboratory, ext4: FileSystem) -> None:
    seen = run(laboratory, ext4, "direct", MIX, "workload.direct=true")
    _, beside, whole = residency(seen)
    print(seen.asked(), seen.read(), beside, whole)
    assert seen.asked() == 6000 * 4096
    assert 0 <= seen.read() - seen.asked() <= METADATA
    assert 0 <= whole - FILES - beside <= 4096, "what is beside the files, but for a note that the load does not read"
    assert [row["what"] for row in seen.of_mix()["cache"]] == ["read from the device"]


@pytest.mark.parametrize("read_ahead", ["0", "128 KiB"])
def test_what_is_in_the_page_cache_came_from_the_device_once(
    laboratory: Laboratory, ext4: FileSystem, read_ahead: str
) -> None:
    seen = run(laboratory, ext4, f"cold-{read_ahead.split()[0]}", MIX, f"environment.read_ahead={read_ahead}")
    before, after, whole = residency(seen)
    print(read_ahead, seen.asked(), seen.read(), before, after, whole, seen.device_bytes)
    assert before == 0, "the image's pages were dropped"
    # 6,000 reads of 4,096 pages: each page is read from the device when it is first asked for, or brought ahead.
    assert seen.asked() == 6000 * 4096
    beside = whole - FILES
    assert 0.7 * FILES < after - beside <= FILES
    assert 0 <= seen.read() - (after - beside) <= METADATA
    # The check after the trial reads what no operation has; layout writes. So the device's own sum is the files, once.
    assert 0 <= seen.device_bytes / seen.attempts - whole <= METADATA
    (said,) = seen.of_mix()["cache"]
    assert "the rest from memory" in said["what"], said


def test_a_phase_that_never_left_memory_is_called_that(laboratory: Laboratory, ext4: FileSystem) -> None:
    seen = run(laboratory, ext4, "warm", PHASES)
    (phases,) = seen.verdict["phases"]["treatments"].values()
    print({name: (one["device_read_share"], one["cache"]) for name, one in phases.items()}, seen.device_bytes)
    assert phases["read"]["device_read_share"]["value"] == 0
    assert phases["read"]["cache"][0]["what"] == "read from memory: it never left it"
    assert phases["rewrite"]["cache"][0]["what"].startswith("read from memory: it never left it; ")
    assert seen.device_bytes / seen.attempts <= METADATA


@contextlib.contextmanager
def reading(file: Path) -> Iterator[None]:
    """Somebody else reads from the same device meanwhile."""
    argv = [sys.executable, "-I", "-S", "-c", READS, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == f"{MIB}\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(10)


@pytest.mark.parametrize("block", [True, False], ids=["block", "diskstats"])
def test_whose_bytes_they_are_is_told_where_requests_are_watched(
    laboratory: Laboratory, ext4: FileSystem, needs: Callable[..., None], *, block: bool
) -> None:
    needs("bpf")
    other = ext4.fresh() / "other"
    other.write_bytes(bytes(MIB))
    os.sync()
    with reading(other):
        name = f"shared-{block}"
        seen = run(laboratory, ext4, name, PHASES, f"probes.block={str(block).lower()}")
    (phases,) = seen.verdict["phases"]["treatments"].values()
    print(phases["read"]["device_read_share"], phases["read"]["cache"], seen.device_bytes)
    assert seen.device_bytes > 32 * MIB, "there was somebody else"
    share, (said,) = phases["read"]["device_read_share"]["value"], phases["read"]["cache"]
    if block:
        assert share == 0 and said["what"] == "read from memory: it never left it"
    else:
        assert share > 0.01 and "never left" not in said["what"], "by the device's counters it cannot be told"
