"""One run of a generator of file operations: the agent's `files` beside fio, on one file that all jobs read.

The constraint: everything the process takes counts, from its start to its end, its children included.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from peers.arms import Run, ended
from peers.side_by_side import TimedRun
from plimsoll.environment import Fault
from plimsoll.record.npy import read_table
from plimsoll.run import agent

BLOCK = 4096
DONE = 0


@dataclass(frozen=True)
class Reads:
    """What both arms of a pair do: reads of a file, by so many jobs with so many of them under way each.

    Random ones, with replacement; or sequential ones: each job goes from the file's first block to its last, and again.
    """

    jobs: int
    seconds: float
    seed: int
    file_bytes: int
    engine: str = "sync"  # or io_uring
    depth: int = 1
    direct: bool = False
    latencies: bool = False  # each read's time is recorded, by both
    order: str = "random"  # or sequential

    @property
    def title(self) -> str:
        """As it is printed."""
        way = "past the page cache" if self.direct else "from the page cache"
        return f"{self.order} reads of 4 KiB {way}, {self.engine}, {self.jobs} jobs, depth {self.depth}"


@dataclass
class FilesArm(ABC):
    """A generator, and its folder."""

    folder: Path

    @property
    @abstractmethod
    def name(self) -> str:
        """As it is printed."""

    @abstractmethod
    def lay_out(self, task: Reads) -> None:
        """Makes the file that is read."""

    @abstractmethod
    def run(self, task: Reads) -> Run:
        """One run."""


def _call(argv: list[str], text: str | None = None) -> tuple[str, int]:
    """Its output, and the CPU time of the whole process."""
    process: subprocess.Popen[Any] = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdin is not None
    if text is not None:
        process.stdin.write(text)
        process.stdin.flush()
    try:
        return ended(process, argv[0])
    finally:
        process.stdin.close()


@dataclass
class Fio(FilesArm):
    """fio; `batched`: its io_uring is handed up to half the depth at a time."""

    batched: bool = False

    @property
    def name(self) -> str:
        """With or without batches."""
        return "fio, batched" if self.batched else "fio"

    @staticmethod
    def program() -> str:
        """Where it is."""
        found = shutil.which("fio")
        if found is None:
            raise Fault("fio is not installed", remedy="apt-get install fio")
        return found

    def lay_out(self, task: Reads) -> None:
        """Writes all of it: a hole is read for nothing."""
        path = self.folder / "fio.file"
        with path.open("wb") as file:
            block = os.urandom(1 << 20)
            for _ in range(task.file_bytes >> 20):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

    def argv(self, task: Reads) -> list[str]:
        """What follows the program's name."""
        way = {"random": "randread", "sequential": "read"}[task.order]
        argv = ["--name=reads", f"--rw={way}", f"--bs={BLOCK}", "--norandommap", "--invalidate=0"]
        argv += [f"--filename={self.folder / 'fio.file'}", f"--size={task.file_bytes}", f"--numjobs={task.jobs}"]
        argv += [f"--ioengine={'psync' if task.engine == 'sync' else 'io_uring'}", f"--iodepth={task.depth}"]
        argv += ["--thread", "--time_based", f"--runtime={task.seconds:g}", f"--randseed={task.seed}"]
        argv += ["--group_reporting", f"--direct={int(task.direct)}", "--output-format=json"]
        if self.batched:
            argv += [f"--iodepth_batch_submit={task.depth // 2}", f"--iodepth_batch_complete_max={task.depth}"]
        if task.latencies:
            argv += [f"--write_lat_log={self.folder / 'log'}", "--log_unix_epoch=1"]
        return argv

    def run(self, task: Reads) -> Run:
        """Its own counts; latencies from its log of every read."""
        output, cpu_ns = _call([self.program(), *self.argv(task)])
        count, seconds = fio_counts(output)
        if not task.latencies:
            return Run(count, seconds, cpu_ns)
        latency_us, ended_s = fio_log(sorted(self.folder.glob("log_clat*.log")))
        for log in self.folder.glob("log_*.log"):
            log.unlink()
        return TimedRun(count, seconds, cpu_ns, latency_us, latency_us, ended_s)


def fio_counts(output: str) -> tuple[int, float]:
    """Reads done and seconds measured, of what fio prints: its JSON, and before it what it has to remark.

    Raises Fault where a job failed or none has read.
    """
    begins = output.find("{")
    told = json.loads(output[begins:])["jobs"][0] if begins >= 0 else {"error": "without a result"}
    if told["error"] or not told["read"]["total_ios"]:
        raise Fault(f"fio: error {told['error']}: {output[:500]}", remedy="run it by hand")
    return told["read"]["total_ios"], told["read"]["runtime"] / 1e3


def fio_log(logs: Iterable[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Of every read: microseconds from its submission to its end, and when that was in seconds since 1970.

    A line of a log has the time in milliseconds (`log_unix_epoch`), nanoseconds, direction, bytes and priority.
    """
    found = [np.loadtxt(log, delimiter=",", usecols=(0, 1), ndmin=2) for log in logs]
    ended_ms, latency_ns = np.concatenate(found).T if found else np.empty((2, 0))
    return latency_ns / 1e3, ended_ms / 1e3


@dataclass
class Files(FilesArm):
    """The agent's workload `files`; `verify`: every read is held to what was written."""

    verify: bool = False
    rows: bool = False
    program: Path = field(default=agent.PROGRAM)

    @property
    def name(self) -> str:
        """What it does beside."""
        beside = [word for word, is_so in (("verified", self.verify), ("a row for each", self.rows)) if is_so]
        return ", ".join(["plimsoll", *beside])

    def _request(self, task: Reads) -> dict[str, Any]:
        mix = [{"operation": "read", "weight": 1, "bytes": BLOCK}]
        # Sessions are dealt out in turn, to streams as to threads: a stream is a job's, with all that it has under way.
        keys = {"random": "uniform", "sequential": {"sequential": task.jobs}}[task.order]
        workload = {
            "name": "files",
            "seed": 1,
            "engine": task.engine,
            "count": 1,
            "file_bytes": task.file_bytes,
            "direct": task.direct,
            "verify": self.verify,
            "keys": keys,
            "mix": mix,
        }
        return {"target": {"kind": "files", "folder": str(self.folder)}, "workload": workload}

    def lay_out(self, task: Reads) -> None:
        """By `populate`."""
        _call([str(self.program), "populate"], json.dumps(self._request(task)) + "\n")

    def run(self, task: Reads) -> Run:
        """From its summary and its rows; without latencies it records histograms and a row in a thousand."""
        out = self.folder.with_name(self.folder.name + "-out")
        out.mkdir(exist_ok=True)
        all_rows = self.rows or task.latencies
        request = self._request(task) | {
            "clients": task.jobs * task.depth,
            "threads": task.jobs,
            "first_index": task.seed << 31,
            "stop": {"seconds": task.seconds},
            "out": str(out),
            "rows_max": 20_000_000 if all_rows else 0,
            "sample_one_in": 100 if all_rows else 1_000,
        }
        output, cpu_ns = _call([str(self.program), "load"], json.dumps(request) + "\n")
        summary = json.loads(output.splitlines()[-1])
        identity = summary["identity"]
        if identity["done"] != identity["planned"] or summary["verification"]["wrong"]:
            raise Fault(f"plimsoll: {identity}, {summary['errors']}", remedy="what was read is not what was written")
        seconds = (summary["ended_ns"] - summary["started_ns"]) / 1e9
        if not task.latencies:
            return Run(identity["done"], seconds, cpu_ns)
        table = read_table(out / "transactions.npy")
        assert table is not None  # the agent has just written it
        latency_us, ended_s = rows_of(table, summary["epoch_minus_monotonic_ns"])
        return TimedRun(identity["done"], seconds, cpu_ns, latency_us, latency_us, ended_s)


def rows_of(table: np.ndarray, epoch_minus_monotonic_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """As fio_log, of the agent's rows that are done."""
    done = table[table["outcome"] == DONE]
    return (done["end_ns"] - done["start_ns"]) / 1e3, (done["end_ns"] + epoch_minus_monotonic_ns) / 1e9
