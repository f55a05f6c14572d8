"""The probe of disk requests: as many, of as many bytes, as the kernel counts of the same loop device, by class.

The constraint: a file system writes by itself whenever it likes. So what is compared lies between two moments at which
the device is at rest, and the journal is only compared with the device as a whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breakdown_slow_wal import slow_folder
from cluster_folder import make_cluster
from loop_file_system import MIB, FileSystem, call, loop_file_system
from page_oracle import make_cold
from watching import Watching

from plimsoll.record.npy import read_table

BLOCK = 8192
PAGE = mmap.PAGESIZE
LOG = "pg_wal/000000010000000000000001"
TABLE = "base/5/16384"
INTERVAL = 0.1
TRIES = 5
PAGEOUT = 21  # MADV_PAGEOUT
REST_SECONDS_MAX = 300.0  # syncs of other tests write to every disk, and a machine may be slow
STAT = ("reads", "", "read_sectors", "", "writes", "", "write_sectors", *[""] * 4, "discards", "", "", "", "flushes")


class LostError(AssertionError):
    """The kernel has left events out, and the probe has said so: its counts are lower bounds."""


class DisturbedError(AssertionError):
    """Somebody else's sync of the whole machine came in between, and wrote what the test was about to write itself."""


def undisturbed(holds: bool, what: object) -> None:
    """Of what a neighbour can change. A probe that is wrong is so each time, and fails the last try."""
    if not holds:
        raise DisturbedError(what)


def once_seen_whole(test: Callable[..., None]) -> Callable[..., None]:
    """What was lost is told and cannot be compared, nor what a neighbour changed: the test is made again."""

    @functools.wraps(test)
    def again(*args: Any, **named: Any) -> None:
        for _ in range(TRIES - 1):
            with contextlib.suppress(LostError, DisturbedError):
                return test(*args, **named)
        return test(*args, **named)

    return again


class Requests(Watching):
    """The agent's verb `watch` on a cluster's folder. Afterwards: `rows` and `depths`."""

    probe = "block"

    def __init__(self, data_directory: Path, out: Path) -> None:
        super().__init__()
        self.data_directory, self.out = data_directory, out
        self.rows: Any = None
        self.depths: Any = None

    def request(self) -> dict[str, Any]:
        self.out.mkdir(exist_ok=True)
        probes = {"block": {"data_directory": str(self.data_directory)}}
        return {"out": str(self.out), "interval_ms": int(INTERVAL * 1000), "probes": probes}

    def _judge(self) -> None:
        assert self.result["status"] == "on", self.result
        if any(self.result["lost"].values()):
            raise LostError(self.result["lost"])
        assert all(check["ok"] for check in self.result["checks"])
        for disk, ends in self.result["disk_requests"].items():
            kinds = [kind for name in self.result["request_totals"].get(disk, {}).values() for kind in name.values()]
            assert ends["completed"] == sum(kind["count"] for kind in kinds), (disk, ends)
            assert ends["holds"] and ends["unseen"] == ends["no_room"] == 0, (disk, ends)
            for kind in kinds:
                for span in ("bytes", "queue_ns", "device_ns"):
                    counted = sum(count for _, count in kind[f"{span}_buckets"])
                    assert counted == (kind["queued"] if span == "queue_ns" else kind["count"]), (span, kind)
        self.rows, self.depths = (read_table(self.out / f"{name}.npy") for name in ("block", "block_depth"))

    def looks(self, since_ns: int) -> Any:
        """At the depth of the only disk, those after a moment; the rows of what was counted come just behind each."""
        table = read_table(self.out / "block_depth.npy")
        return table[table["t_ns"] > since_ns] if table is not None else []

    def flushes_until(self, moment_ns: int) -> Any:
        """Their number, and how long they were at the only disk, by the last sample before a moment."""
        rows = self.rows[self.rows["operation"] == self.result["operations"].index("flush")]
        before = rows[rows["t_ns"] <= moment_ns]
        last = before[before["t_ns"] == before["t_ns"].max(initial=0)]
        return np.array([last["count"].sum(), last["device_ns"].sum()])

    def of(self, name: str, operation: str) -> dict[str, Any]:
        """The sums of a class and operation on the only disk."""
        (classes,) = self.result["request_totals"].values() or [{}]
        found: dict[str, Any] = classes.get(name, {}).get(operation, {"count": 0, "bytes": 0})
        return found

    def at(self, moment_ns: int) -> dict[str, int]:
        """In the kernel's words, what the device had done at the last sample before a moment."""
        names = self.result["operations"]
        found = dict.fromkeys(("reads", "writes", "flushes", "discards", "read_sectors", "write_sectors"), 0)
        moments = self.depths["t_ns"][self.depths["t_ns"] <= moment_ns]
        found["writes"] += int(self.depths["flush_asks"][len(moments) - 1])
        before = self.rows[self.rows["t_ns"] <= moment_ns]
        for row in before[before["t_ns"] == before["t_ns"].max(initial=0)]:
            group = {"read": "read", "flush": "flushe", "discard": "discard"}.get(names[row["operation"]], "write")
            found[f"{group}s"] += int(row["count"])
            if group in ("read", "write"):
                found[f"{group}_sectors"] += int(row["bytes"]) // 512
        return found


@dataclass
class World:
    """A cluster with a log and a table that are on the device from end to end, and the device's own counters."""

    file_system: FileSystem
    cluster: Path

    def stat(self) -> dict[str, int]:
        words = Path("/sys/block", Path(self.file_system.loop).name, "stat").read_text().split()
        return {name: int(word) for name, word in zip(STAT, words, strict=False) if name}

    def rest(self, watch: Requests) -> tuple[int, dict[str, int]]:
        """When everything is written, and the probe has looked since: the moment of that look, the device's counters.

        The look's rows are complete when a later one has begun, which is waited for: a clock would be wrong on a
        machine that does not let the agent look in time.
        """
        deadline = time.monotonic() + REST_SECONDS_MAX
        while True:
            os.sync()
            since_ns, before = time.monotonic_ns(), self.stat()
            while len(looks := watch.looks(since_ns)) < 3:
                assert time.monotonic() < deadline, "the probe never looks"
                time.sleep(INTERVAL / 2)
            if self.stat() == before and not looks["requests"].any():
                return int(looks["t_ns"][1]), before
            assert time.monotonic() < deadline, "the device never rests"

    def open(self, name: str, flags: int = 0) -> int:
        return os.open(self.cluster / name, os.O_RDWR | flags)


def make(path: Path, blocks: int) -> None:
    """Noise, so that no file system makes less of it."""
    path.write_bytes(random.Random(1).randbytes(blocks * BLOCK))


@contextlib.contextmanager
def opened(world: World, name: str, flags: int = 0) -> Iterator[int]:
    fd = world.open(name, flags)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture(scope="module", params=["ext4", "xfs", "btrfs"])
def world(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[World]:
    needs("root", "bpf", "loop devices and mkfs.ext4")
    if request.param != "ext4":
        needs(f"mkfs.{request.param}")
    with loop_file_system(request.param) as mounted:
        cluster = make_cluster(mounted.fresh() / "cluster")
        for name in (LOG, TABLE):
            make(cluster / name, 512)
        make(cluster.parent / "not of the server", 16)
        os.sync()
        yield World(mounted, cluster)


def aligned(size: int) -> mmap.mmap:
    """Memory that may go to the device itself."""
    memory = mmap.mmap(-1, size)
    memory.write(random.Random(2).randbytes(size))
    return memory


@once_seen_whole
def test_direct_reads_and_writes_are_counted_exactly_and_the_device_agrees(world, tmp_path):
    places = random.Random(7).sample(range(512), 211)
    watch = Requests(world.cluster, tmp_path / "out")
    with watch, opened(world, TABLE, os.O_DIRECT) as table, opened(world, LOG, os.O_DIRECT) as log:
        began_ns, before = world.rest(watch)
        with aligned(BLOCK) as block:
            for place in places:
                os.pwritev(table, [block], place * BLOCK)
        with aligned(2 * BLOCK) as blocks:
            for place in range(0, 206, 2):
                os.preadv(log, [blocks], place * BLOCK)
        ended_ns, after = world.rest(watch)
    written, read = watch.of("data", "write"), watch.of("wal", "read")
    print(watch.result["disk_requests"], written, read)
    # btrfs may have to begin a file's block somewhere else, and cut it in two.
    assert (written["bytes"], read["bytes"]) == (211 * BLOCK, 103 * 2 * BLOCK)
    assert read["count"] == 103 or world.file_system.kind == "btrfs"
    assert written["count"] == 211 or world.file_system.kind == "btrfs"
    if world.file_system.kind != "btrfs":
        assert (written["bytes_min"], written["bytes_max"]) == (BLOCK, BLOCK)
        assert written["bytes_buckets"] == [[BLOCK, 211]]
    found = {name: watch.at(ended_ns)[name] - watch.at(began_ns)[name] for name in watch.at(began_ns)}
    assert found == {name: after[name] - before[name] for name in found}
    assert watch.of("unknown", "write")["count"] == watch.of("direct", "write")["count"] == 0
    # Each is at the device from its issue to its end, and nothing else makes the depth.
    whole = sum(
        kind["device_ns"]
        for name in watch.result["request_totals"].values()
        for kinds in name.values()
        for kind in kinds.values()
    )
    (ends,) = watch.result["disk_requests"].values()
    undisturbed(ends["before"] == 0 and not watch.depths["requests"][[0, -1]].any(), ends)
    assert ends["depth_ns"] == whole
    assert ends["depth_max"] >= 1
    assert int(watch.depths["depth_ns"][-1]) <= ends["depth_ns"]


@once_seen_whole
def test_requests_are_of_the_class_of_their_pages(world, tmp_path):
    kind = world.file_system.kind
    watch = Requests(world.cluster, tmp_path / "out")
    with (
        watch,
        opened(world, LOG) as log,
        opened(world, TABLE) as table,
        opened(world, "../not of the server") as other,
    ):
        world.rest(watch)
        noise = random.Random(3)
        for place in range(17):
            os.pwrite(log, noise.randbytes(BLOCK), place * BLOCK)
            os.fdatasync(log)
        for place in range(5):
            os.pwrite(other, noise.randbytes(PAGE), 2 * place * PAGE)
            os.fdatasync(other)
        make_cold(world.cluster / TABLE)
        os.posix_fadvise(table, 0, 0, os.POSIX_FADV_RANDOM)
        for place in range(13):
            os.pread(table, PAGE, place * 7 * PAGE)
        began_ns, before = world.rest(watch)
        os.lseek(table, 0, os.SEEK_END)
        for _ in range(3):
            os.write(table, noise.randbytes(BLOCK))
            os.fsync(table)
        ended_ns, after = world.rest(watch)
    print(
        {
            name: {op: (one["count"], one["bytes"]) for op, one in kinds.items()}
            for name, kinds in next(iter(watch.result["request_totals"].values())).items()
        }
    )
    wal, bytes_of = watch.of("wal", "write"), {name: watch.of(name, "write")["bytes"] for name in ("elsewhere", "data")}
    assert (wal["bytes"], bytes_of["elsewhere"], bytes_of["data"]) == (17 * BLOCK, 5 * PAGE, 3 * BLOCK)
    # Another's sync may write the first page before the second is there, and waits for neither.
    undisturbed((wal["count"], wal["synchronous"]) == (17, 17), wal)
    undisturbed(watch.of("data", "write")["count"] == 3, watch.of("data", "write"))
    assert watch.of("elsewhere", "write")["count"] == 5
    assert (watch.of("data", "read")["count"], watch.of("data", "read")["bytes"]) == (13, 13 * PAGE)
    # A file that grew changes metadata, which goes to the journal first; btrfs has its log among its trees.
    assert ("journal" in watch.result.get("absent", {})) == (kind == "btrfs")
    assert watch.of("metadata" if kind == "btrfs" else "journal", "write")["count"] >= 3
    assert watch.of("none", "flush")["count"] >= 3
    for name in ("unknown", "direct", "swap"):
        assert watch.of(name, "write")["count"] == watch.of(name, "read")["count"] == 0, name
    found = {name: watch.at(ended_ns)[name] - watch.at(began_ns)[name] for name in watch.at(began_ns)}
    assert found == {name: after[name] - before[name] for name in found}


@pytest.mark.alone  # whoever else reaches a limit of memory swaps to the area of the highest priority, too
@once_seen_whole
def test_pages_that_are_swapped_are_told(needs, tmp_path):
    needs("root", "bpf", "loop devices and mkfs.ext4", "swap")
    size = 4 * MIB
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as undo:
        mounted = undo.enter_context(loop_file_system("ext4"))
        cluster = make_cluster(mounted.fresh() / "cluster")
        swap = mounted.point / "swap"
        swap.write_bytes(bytes(4 * size))
        swap.chmod(0o600)
        call("mkswap", str(swap))
        call("swapon", "--priority", "32767", str(swap))
        undo.callback(call, "swapoff", str(swap))
        watch = Requests(cluster, tmp_path / "out")
        with watch, aligned_private(size) as memory:
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            # What was just written stays in the swap cache; told again, the kernel lets it go, and has to read it.
            for _ in range(2):
                assert libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), PAGEOUT) == 0
                time.sleep(INTERVAL)
                again = sum(memory[at] for at in range(0, size, PAGE))
        print(again, watch.of("swap", "write"), watch.of("swap", "read"))
    out, back = watch.of("swap", "write")["bytes"], watch.of("swap", "read")["bytes"]
    # Nearly all: a page that the kernel is at in between stays, or is written again.
    assert 0.9 * size <= out <= 2 * size
    assert 0.5 * size <= back <= 2 * size
    assert watch.of("direct", "read")["count"] == watch.of("unknown", "read")["count"] == 0


class aligned_private(contextlib.AbstractContextManager[mmap.mmap]):
    """Memory of this process alone, filled with noise; a view of it may still be held at the end."""

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.write(random.Random(4).randbytes(size))

    def __enter__(self) -> mmap.mmap:
        return self.memory

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BufferError):
            self.memory.close()


@once_seen_whole
def test_a_flush_that_the_device_holds_up(tmp_path, needs):
    """The loop device's own file is on a file system that holds each sync and logs for how long."""
    needs("root", "bpf", "fuse", "loop devices and mkfs.ext4")
    below = Path(tempfile.mkdtemp(dir=tmp_path)) / "below"
    below.mkdir()
    with slow_folder(below) as slow, loop_file_system("ext4", 64 * MIB, below) as mounted:
        cluster = make_cluster(mounted.fresh() / "cluster")
        make(cluster / LOG, 64)
        world = World(mounted, cluster)
        watch = Requests(cluster, tmp_path / "out")
        with watch, opened(world, LOG) as log:
            began_ns, _ = world.rest(watch)
            waits = []
            with slow.delayed(1):
                for place in range(3):
                    os.pwrite(log, bytes(BLOCK), place * BLOCK)
                    asked_ns = time.monotonic_ns()
                    os.fdatasync(log)
                    waits.append(time.monotonic_ns() - asked_ns)
            ended_ns, _ = world.rest(watch)
            held = [sync.held_ns for sync in slow.until(ended_ns) if began_ns < sync.came_ns]
    count, device_ns = watch.flushes_until(ended_ns) - watch.flushes_until(began_ns)
    buckets = watch.of("none", "flush")["device_ns_buckets"]
    print(held, waits, count, device_ns, buckets)
    # All of them, those of others' syncs too. A device has one at a time, and has it while it is held.
    assert count == len(held) and sum(one >= 1e9 for one in held) >= 3
    assert sum(held) <= device_ns <= ended_ns - began_ns
    # Whoever asked waited at least as long as the device had it. A bucket is 1/32 wide.
    told = sorted(least for least, times in buckets for _ in range(times) if least > 0.95e9)
    assert all(1.04 * least >= 1e9 for least in told)
    assert all(least <= wait for least, wait in zip(told[:3], sorted(waits), strict=True))
    # While the flush is held nothing else is at the device: the depth of that time is one.
    spans = np.diff(watch.depths["t_ns"])
    is_one = np.abs(np.diff(watch.depths["depth_ns"]) / spans - 1) < 0.05
    assert spans[is_one].sum() >= 2e9


def test_files_in_memory_have_no_disk(needs, tmp_path):
    needs("root", "bpf")
    with contextlib.ExitStack() as undo:
        point = tmp_path / "memory"
        point.mkdir()
        call("mount", "-t", "tmpfs", "tmpfs", str(point))
        undo.callback(call, "umount", str(point))
        watch = Requests(make_cluster(point / "cluster"), tmp_path / "out")
        with pytest.raises(AssertionError, match=r"refused.*no block device"), watch:
            pass
