"""The probe of syncs: each call with its length and its parts, held against clocks that are not its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breakdown_slow_wal import slow_folder
from cluster_folder import make_cluster
from loop_file_system import loop_file_system
from watching import Watching

from plimsoll.record.npy import read_table

PROGRAM = Path(__file__).with_name("sync_program.py")
US = 1_000
PARTS = ("writeback", "writing", "write_io", "journal", "metadata", "flush", "run_queue", "cpu", "other_wait")
TOLD_BY_EXT4 = ("writeback", "writing", "journal", "metadata")
ABSENT = np.iinfo(np.int64).min


class Syncs(Watching):
    """The agent's verb `watch` on whoever is said to be the server of a folder. Afterwards: `rows`."""

    probe = "sync"

    def __init__(self, data_directory: Path, out: Path) -> None:
        super().__init__()
        self.data_directory, self.out = data_directory, out
        self.rows: Any = None

    def request(self) -> dict[str, Any]:
        self.out.mkdir(exist_ok=True)
        probes = {"sync": {"data_directory": str(self.data_directory)}}
        return {"out": str(self.out), "interval_ms": 100, "probes": probes}

    def _judge(self) -> None:
        assert self.result["status"] == "on", self.result
        assert not any(self.result["lost"].values()), self.result["lost"]
        self.rows = read_table(self.out / "sync.npy")
        counts = sum(kind["count"] for kinds in self.result.get("sync_totals", {}).values() for kind in kinds.values())
        assert counts == len(self.rows)

    def sums(self) -> Any:
        """Of the parts of each call that are told."""
        told = [self.rows[f"{part}_ns"] for part in PARTS]
        return sum(np.where(part == ABSENT, 0, part) for part in told)


@dataclass
class Program:
    process: subprocess.Popen[str]

    def does(self, act: str) -> list[int]:
        """How long each sync took by the program's clock."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{act}\n")
        self.process.stdin.flush()
        found: list[int] = json.loads(self.process.stdout.readline())
        return found


@contextlib.contextmanager
def program(cluster: Path) -> Iterator[Program]:
    """The program as the server of the folder, with its log written from end to end."""
    argv = [sys.executable, "-I", "-S", str(PROGRAM), str(cluster)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "[]\n"
        (cluster / "postmaster.pid").write_text(f"{process.pid}\n")
        made = Program(process)
        made.does("prepare")
        yield made
    finally:
        process.kill()
        process.wait()


def agree(watch: Syncs, noted: list[int]) -> None:
    """Each call is as long as the program saw it, to 2 % or a moment beside it, and so is the sum of its parts."""
    found = [int(ns) for ns in watch.rows["ns"]]
    print([(round(mine / US), round(its / US)) for mine, its in zip(found, noted, strict=True)])
    # The clock is read outside of the call, where a busy machine may take the CPU away: never less, mostly hardly more.
    outside = [its - mine for mine, its in zip(found, noted, strict=True)]
    assert all(each >= 0 for each in outside), outside
    beyond = sorted(each - max(its // 50, 50 * US) for each, its in zip(outside, noted, strict=True))
    assert beyond[len(beyond) // 4] <= 0, outside
    assert list(watch.sums()) == found
    assert sum(found) <= sum(noted)


@pytest.fixture(scope="module", params=["ext4", "xfs", "btrfs"])
def any_cluster(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[tuple[str, Path]]:
    """A cluster's folder on a fresh file system of each kind."""
    needs("root", "bpf", "loop devices and mkfs.ext4")
    if request.param != "ext4":
        needs(f"mkfs.{request.param}")
    with loop_file_system(request.param) as mounted:
        yield request.param, make_cluster(mounted.fresh() / "cluster")


def test_every_sync_is_as_long_as_its_caller_saw(any_cluster, tmp_path):
    kind, cluster = any_cluster
    with program(cluster) as server:
        watch = Syncs(cluster, tmp_path / "out")
        with watch:
            noted = server.does("overwrite") + server.does("extend") + server.does("nothing")
    agree(watch, noted)
    names = [(watch.result["classes"][row["class"]], watch.result["calls"][row["call"]]) for row in watch.rows]
    assert names == 11 * [("wal", "fdatasync")] + 7 * [("data", "fsync")] + 3 * [("wal", "fdatasync")]
    absent = watch.result.get("absent", {})
    assert set(absent) == (set() if kind == "ext4" else set(TOLD_BY_EXT4))
    for part in TOLD_BY_EXT4:
        assert (watch.rows[f"{part}_ns"] == ABSENT).all() == (kind != "ext4"), part
    if kind != "ext4":
        with program(cluster) as server:
            failed = Syncs(cluster, tmp_path / "failed")
            with failed:
                server.does("fails")
        assert list(failed.rows["error"]) == [22]
        assert failed.result["boundaries"] == {"begin": "sys_enter", "end": "sys_exit"}
    # Whatever the file system is, what it asked of the device is seen.
    assert (watch.rows["flush_ns"][:11] > 0).sum() >= (11 if kind != "btrfs" else 0)


def test_the_parts_of_a_sync_on_ext4(tmp_path, needs):
    needs("root", "bpf", "loop devices and mkfs.ext4")
    with loop_file_system("ext4") as mounted:
        cluster = make_cluster(mounted.fresh() / "cluster")
        found = {}
        with program(cluster) as server:
            for act in ("overwrite", "extend", "on_its_way", "nothing"):
                watch = Syncs(cluster, tmp_path / act)
                with watch:
                    noted = server.does(act)
                agree(watch, noted)
                found[act] = watch.rows
    for act, rows in found.items():
        print(act, {part: int(np.median(rows[f"{part}_ns"])) // US for part in PARTS}, rows["pages"])
    # Content alone: two pages are written and arrive, nothing is committed, and the device empties its cache.
    overwritten = found["overwrite"]
    assert (overwritten["pages"] == 2).all()
    assert (overwritten["writing_ns"] > 0).all() and (overwritten["flush_ns"] > 0).all()
    assert (overwritten["write_io_ns"] + overwritten["run_queue_ns"] > 0).all()
    # A file that grew needs a commit, which flushes for it.
    extended = found["extend"]
    assert (extended["journal_ns"] > 0).all() and (extended["pages"] == 2).all()
    assert (extended["journal_flush_ns"] <= extended["journal_ns"] + extended["run_queue_ns"]).all()
    assert np.median(extended["journal_ns"]) > np.median(overwritten["journal_ns"])
    # Somebody else has begun to write: it waits for those pages and writes none.
    begun = found["on_its_way"]
    assert (begun["pages"] == 0).all() and (begun["write_io_ns"] == 0).all()
    assert (begun["writeback_ns"] > 0).any()
    assert (found["nothing"]["pages"] == 0).all() and (found["nothing"]["writing_ns"] == 0).all()
    assert watch.result["boundaries"] == {"begin": "ext4_sync_file_enter", "end": "ext4_sync_file_exit"}


def test_syncs_that_a_file_system_holds_up(tmp_path, needs):
    """The file system's own log says for how long; its parts cannot be told, and that is said."""
    needs("root", "bpf", "fuse")
    cluster = make_cluster(tmp_path / "cluster")
    with slow_folder(cluster / "pg_wal") as slow, program(cluster) as server:
        watch = Syncs(cluster, tmp_path / "out")
        # So long that 2 % of it is more than a busy machine takes to get to the file system's own clock.
        with slow.delayed(1) as seen, watch:
            noted = server.does("nothing")
    agree(watch, noted)
    held = [sync.held_ns for sync in seen]
    print(held, watch.rows["ns"])
    assert len(held) == len(watch.rows) == 3
    # The call begins before the file system hears of it and ends after its answer; how much is up to the scheduler.
    for its, row in zip(held, watch.rows, strict=True):
        assert row["ns"] >= its, (its, row)
        assert row["other_wait_ns"] + row["run_queue_ns"] >= its * 0.98
    assert int(watch.rows["ns"].sum()) <= sum(held) * 1.02
    assert "fuse" in watch.result["absent"]["journal"]
