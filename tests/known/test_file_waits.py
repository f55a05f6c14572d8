"""Where an operation's time goes, in worlds in which it is known: parts add up to every operation's latency, and what
an operation cannot have waited for is nothing.

On ext4 with a journal on a loop device of the test's own. What the kernel's functions are called differs from kernel to
kernel: on one where a name is not known these tests fail, and the probe says "other waits".
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_file_system import FileSystem, loop_file_system

from plimsoll.analysis.files.times import Times, times
from plimsoll.environment.memory import page_cache
from plimsoll.record import Segment
from plimsoll.run import agent

SECONDS = 60
WAITS = ("page", "writeback", "throttled", "journal", "lock", "device", "frozen", "pause", "other_wait")


@pytest.fixture(scope="module")
def ext4(needs: Callable[..., None]) -> Iterator[FileSystem]:
    needs("root", "bpf", "loop devices and mkfs.ext4")
    with loop_file_system("ext4") as mounted:
        yield mounted


@dataclass
class World:
    """Files of the workload `files`, laid out in a folder of the file system."""

    root: Path
    workload: dict[str, Any]

    def request(self) -> dict[str, Any]:
        return {"target": {"kind": "files", "folder": str(self.root / "tree")}, "workload": self.workload}

    def call(self, verb: str, request: dict[str, Any]) -> dict[str, Any]:
        """The last line that the agent says; it has its input until it ends."""
        with subprocess.Popen(
            [agent.PROGRAM, verb], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            lines = process.stdout.read().splitlines()
            error = process.stderr.read()
            assert process.wait(SECONDS) == 0, error
        last: dict[str, Any] = json.loads(lines[-1])
        return last

    def next(self) -> Path:
        """Where the next load leaves its record."""
        return self.root / f"out{len(list(self.root.glob('out*')))}"

    def load(self, transactions: int, clients: int = 1, **probes: Any) -> Times:
        out = self.next()
        out.mkdir()
        request = {**self.request(), "clients": clients, "out": str(out), "stop": {"transactions": transactions}}
        told = self.call("load", {**request, "probes": {"file_waits": {}, **probes}})
        self.told = told
        assert told["identity"]["done"] == transactions, told["identity"]
        probe = told["probes"]["file_waits"]
        assert probe["status"] == "on" and all(check["ok"] for check in probe["checks"]), probe
        if any(probe["lost"].values()):
            pytest.fail(f"lost: {probe['lost']}")
        found = times(Segment(out, "measure"))
        assert found is not None
        self._add_up(found, transactions, probe["arrivals_unseen"])
        return found

    @staticmethod
    def _add_up(found: Times, transactions: int, unseen: int) -> None:
        """To the nanosecond, of each operation; and by the kernel's own count no switch was missed."""
        assert len(found.latency) == transactions
        whole = sum(found.parts.values(), np.zeros(transactions))
        assert np.array_equal(whole, found.latency)
        for name, values in found.parts.items():
            assert values.min() >= 0, name
        assert found.missed == 0 and found.straddling <= unseen
        print(
            {name: f"{values.sum() / found.latency.sum():.3f}" for name, values in found.parts.items()},
        )


def world(ext4: FileSystem, *mix: dict[str, Any], **more: Any) -> World:
    root = ext4.fresh()
    (root / "tree").mkdir()
    laid = {"name": "files", "seed": 3, "count": 4, "file_bytes": 1 << 20, "mix": [*mix], **more}
    made = World(root, laid)
    made.call("populate", made.request())
    return made


def share(found: Times, *names: str) -> float:
    """Of all the time between the starts and the ends of operations."""
    performed = found.latency.sum() - found.parts["lag"].sum()
    return float(sum(found.parts[name].sum() for name in names) / performed)


READ = {"operation": "read", "weight": 1, "bytes": 4096}
APPEND = {"operation": "append", "weight": 1, "bytes": 512, "sync": "fsync"}


def test_a_read_from_the_cache_is_on_a_cpu(ext4: FileSystem) -> None:
    made = world(ext4, READ)
    made.load(2_000)  # all of it is in the page cache after this
    found = made.load(20_000)
    for name in WAITS:
        assert found.parts[name].sum() == 0, name
    assert share(found, "cpu", "run_queue") == 1


def test_a_direct_read_waits_for_the_device(ext4: FileSystem) -> None:
    found = world(ext4, READ, direct=True).load(1_501)
    assert (found.parts["device"] > 0).mean() > 0.95
    assert share(found, "device", "cpu", "run_queue") > 0.99
    for name in ("page", "writeback", "journal", "throttled", "frozen", "pause"):
        assert found.parts[name].sum() == 0, name


def test_a_cold_read_waits_for_its_page(ext4: FileSystem) -> None:
    made = world(ext4, READ, count=8)
    page_cache.evict(made.root / "tree")
    before = ext4.sectors_read()
    found = made.load(211)
    assert ext4.sectors_read() > before
    waited = found.parts["page"] > 0
    assert 8 <= waited.sum() < 211, "the first read of a file and those beyond what was read ahead"
    asleep = sum(float(found.parts[name].sum()) for name in WAITS)
    assert found.parts["page"].sum() > 0.9 * asleep
    assert found.parts["journal"].sum() == found.parts["writeback"].sum() == 0


def test_an_fsync_waits_for_journal_writeback_and_device(ext4: FileSystem) -> None:
    """The journal's share is held against the probe of syncs, which tells it by who wakes the thread."""
    made = world(ext4, APPEND)
    found = made.load(503, sync={})
    assert (found.parts["journal"] > 0).mean() > 0.95, "a file that has grown waits for a commit"
    assert share(found, "journal", "writeback", "device", "cpu", "run_queue", "lock") > 0.97
    (calls,) = (kinds for kinds in made.told["probes"]["sync"]["sync_totals"].values() if "fsync" in kinds)
    sync = calls["fsync"]["parts_ns"]
    print(sync, {name: values.sum() for name, values in found.parts.items()})
    assert calls["fsync"]["count"] == 503
    assert found.parts["journal"].sum() == pytest.approx(sync["journal"], rel=0.1)


def test_a_frozen_file_system_is_told(ext4: FileSystem) -> None:
    made = world(ext4, {"operation": "write", "weight": 1, "bytes": 4096, "sync": "fdatasync"})
    spans: list[tuple[int, int]] = []
    rows = made.next() / "transactions.npy"

    def freeze() -> None:
        until = time.monotonic() + SECONDS
        while not rows.exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        spans.append(ext4.stand_still(0.5))

    freezing = threading.Thread(target=freeze)
    freezing.start()
    try:
        found = made.load(6_000)
    finally:
        freezing.join()
    frozen_ns, thaws_ns = spans[0]
    stall = thaws_ns - frozen_ns
    if found.latency.max() < stall:
        pytest.fail("the load had ended before")
    # Not of the longest operation: beside other tests one that waits for the device or a CPU may be longer.
    held = found.parts["frozen"].argmax()
    # Freezing begins a little before it is through.
    assert stall - 1e6 <= found.parts["frozen"][held] <= found.latency[held]
    assert (found.parts["frozen"] > 0).sum() == 1


def test_writers_of_one_file_wait_for_its_lock(ext4: FileSystem) -> None:
    """A direct write that extends a file holds its inode until it is on the device."""
    mix = {"operation": "append", "weight": 1, "bytes": 65536}
    found = world(ext4, mix, direct=True, count=1).load(400, clients=4)
    print(share(found, "lock"), share(found, "other_wait"), share(found, "device"))
    assert share(found, "device", "lock", "cpu", "run_queue", "journal") > 0.9
    assert share(found, "lock") > 0.2
