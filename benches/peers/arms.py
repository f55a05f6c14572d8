"""One run of one generator: how much it did, what CPU time its process took, how long its transactions were.

The constraint: everything the process takes counts, from its start to its end: connecting, preparing, recording. So
nothing can hide outside the window, and runs are long enough that what is paid once is small.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.environment import Fault
from plimsoll.record.npy import read_table
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.target import PostgresServer

THREADS = 2
DONE = 0
PR_SET_TIMERSLACK = 29


@dataclass(frozen=True)
class Task:
    """What both arms of a pair do."""

    kind: str  # select_only, tpcb_like, point_select
    clients: int
    seconds: float
    seed: int
    rate: float | None = None  # arrivals a second; None: as fast as it goes


@dataclass(frozen=True)
class Run:
    """What came of it. With a rate: latencies from the planned start, and service times from the start."""

    transactions: int
    seconds: float
    cpu_ns: int
    latency_us: np.ndarray = field(default_factory=lambda: np.empty(0))
    service_us: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def cpu_us(self) -> float:
        """CPU time of the generator a transaction."""
        return self.cpu_ns / self.transactions / 1e3

    @property
    def tps(self) -> float:
        """Throughput."""
        return self.transactions / self.seconds


@dataclass
class Arm(ABC):
    """A generator."""

    server: PostgresServer
    bin_dir: Path
    folder: Path

    @property
    @abstractmethod
    def name(self) -> str:
        """As it is printed."""

    @abstractmethod
    def run(self, task: Task) -> Run:
        """One run."""


def ended(process: subprocess.Popen[Any], name: str) -> tuple[str, int]:
    """Its output, and the CPU time of the whole process."""
    assert process.stdout is not None
    output: str = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Fault(f"{name}: {output.strip()[-1000:]}", remedy="see the server's log")
    return output, round((usage.ru_utime + usage.ru_stime) * 1e9)


def _be_punctual() -> None:
    """Sets the timer slack to a nanosecond; it outlives exec and is every later thread's.

    The kernel wakes a thread up to 50 us later than it asked, unless the thread says otherwise, as the agent's do.
    Latency counts from the planned start, so without this the comparison would be one of slacks.
    """
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)


@dataclass
class Pgbench(Arm):
    """pgbench's own transactions, prepared."""

    name = "pgbench"

    def run(self, task: Task) -> Run:
        """Its own counts; latencies from its log of every transaction."""
        builtin = {"select_only": "select-only", "tpcb_like": "tpcb-like"}[task.kind]
        argv = ["-n", "-b", builtin, "-M", "prepared", "-c", str(task.clients), "-j", str(min(THREADS, task.clients))]
        argv += ["-T", str(math.ceil(task.seconds)), f"--random-seed={task.seed}"]
        if task.rate is not None:
            argv += ["-R", str(task.rate), "-l", f"--log-prefix={self.folder}/pgbench_log"]
        connection = self.server.connection
        argv += ["-h", connection.host, "-p", str(connection.port), "-U", connection.user, connection.dbname]
        process = HERE.start_as(
            [str(self.bin_dir / "pgbench"), *argv],
            user=connection.user,
            preexec_fn=None if task.rate is None else _be_punctual,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, cpu_ns = ended(process, self.name)
        done = re.search(r"number of transactions actually processed: (\d+)", output)
        tps = re.search(r"tps = ([\d.]+)", output)
        if done is None or tps is None:
            raise Fault(f"pgbench said nothing of its result: {output[-500:]}", remedy="this version is not known")
        return Run(int(done[1]), int(done[1]) / float(tps[1]), cpu_ns, *self._latencies())

    def _latencies(self) -> tuple[np.ndarray, np.ndarray]:
        logs = sorted(self.folder.glob("pgbench_log.*"))
        # With --rate the third column counts from the planned start, and the last is by how much later it started.
        found = [np.loadtxt(log, dtype=float, usecols=(2, 6), ndmin=2) for log in logs]
        for log in logs:
            log.unlink()
        latency, lag = np.concatenate(found).T if found else np.empty((2, 0))
        return latency, latency - lag


@dataclass
class Sysbench(Arm):
    """sysbench's oltp_point_select, prepared."""

    name = "sysbench"
    rows: int = 1_000_000

    def _argv(self, *more: str) -> list[str]:
        connection = self.server.connection
        where = [f"--pgsql-host={connection.host}", f"--pgsql-port={connection.port}"]
        who = [f"--pgsql-user={connection.user}", f"--pgsql-db={connection.dbname}", "--db-driver=pgsql"]
        return ["sysbench", "oltp_point_select", *where, *who, "--tables=1", f"--table-size={self.rows}", *more]

    def prepare(self) -> None:
        """Makes its table."""
        done = subprocess.run(self._argv("prepare"), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fault(f"sysbench prepare: {done.stdout}{done.stderr}", remedy="install sysbench")

    def run(self, task: Task) -> Run:
        """Its own counts."""
        options = [f"--threads={task.clients}", f"--time={math.ceil(task.seconds)}", f"--rand-seed={task.seed}"]
        process = subprocess.Popen(
            self._argv(*options, "--rand-type=uniform", "--db-ps-mode=auto", "run"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, cpu_ns = ended(process, self.name)
        done = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", output)
        if done is None:
            raise Fault(f"sysbench said nothing of its result: {output[-500:]}", remedy="this version is not known")
        return Run(int(done[1]), int(done[1]) / float(done[2]), cpu_ns)


@dataclass
class Bare(Arm):
    """bare.c: what is left of a generator without its record, its checks and its choices. Of select_only alone."""

    pin_threads: bool = True
    scale: int = 50

    @property
    def name(self) -> str:
        """With its threads kept on their CPUs or not."""
        return "bare client" + ("" if self.pin_threads else ", not pinned")

    def run(self, task: Task) -> Run:
        """Compiles it the first time."""
        program = self.folder / "bare"
        if not program.exists():
            source = Path(__file__).with_name("bare.c")
            subprocess.run(["cc", "-O2", "-pthread", "-o", str(program), str(source)], check=True)
        connection = self.server.connection
        where = [f"{connection.host}/.s.PGSQL.{connection.port}", connection.user, connection.dbname]
        how = [task.clients, min(THREADS, task.clients), task.seconds, 100_000 * self.scale, int(self.pin_threads)]
        process = subprocess.Popen(
            [str(program), *where, *map(str, how)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        output, cpu_ns = ended(process, self.name)
        done, seconds = output.split()
        return Run(int(done), float(seconds), cpu_ns)


OTHER_BUILD = "plimsoll, the other build"
POINT_SELECT = "\\set id random(1, {rows})\nSELECT c FROM sbtest1 WHERE id = :id;\n"


@dataclass
class Plimsoll(Arm):
    """The agent, recording every transaction as it does in an experiment."""

    describe: bool = True
    pin_threads: bool = True
    scale: int = 50
    rows: int = 1_000_000
    program: Path = agent.PROGRAM

    @property
    def name(self) -> str:
        """Which build; with or without the message that libpq sends with each execution; threads pinned or not."""
        build = "plimsoll" if self.program == agent.PROGRAM else OTHER_BUILD
        return build + ("" if self.describe else " without Describe") + ("" if self.pin_threads else ", not pinned")

    def _workload(self, task: Task) -> dict[str, object]:
        if task.kind == "point_select":
            script = {"name": "point_select", "text": POINT_SELECT.format(rows=self.rows), "weight": 1}
            return {"name": "script", "scripts": [script], "seed": task.seed, "client_count": task.clients}
        return {"name": "bank", "scale": self.scale, "seed": task.seed, "transaction": task.kind}

    def run(self, task: Task) -> Run:
        """From its summary and, with a rate, its rows."""
        out = self.folder / "load"
        out.mkdir(exist_ok=True)
        rate = {"kind": "poisson", "rate": task.rate, "seed": task.seed}
        request = {
            "target": {**self.server.connection.as_request(), "schema": "public"},
            "workload": self._workload(task),
            "clients": task.clients,
            "threads": min(THREADS, task.clients),
            "mode": "prepared",
            "describe": self.describe,
            "pin_threads": self.pin_threads,
            "schedule": {"kind": "closed"} if task.rate is None else rate,
            "stop": {"seconds": task.seconds},
            "out": str(out),
        }
        process = subprocess.Popen(
            [str(self.program), "load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        output, cpu_ns = ended(process, self.name)
        process.stdin.close()
        summary = json.loads(output.splitlines()[-1])
        identity = summary["identity"]
        if identity["done"] != identity["planned"]:
            raise Fault(f"plimsoll: {identity}", remedy="see the server's log; run it again")
        seconds = (summary["ended_ns"] - summary["started_ns"]) / 1e9
        return Run(identity["done"], seconds, cpu_ns, *(self._latencies(out) if task.rate else ()))

    def _latencies(self, out: Path) -> tuple[np.ndarray, np.ndarray]:
        table = read_table(out / "transactions.npy")
        assert table is not None  # the agent has just written it
        done = table[table["outcome"] == DONE]
        return (done["end_ns"] - done["planned_ns"]) / 1e3, (done["end_ns"] - done["start_ns"]) / 1e3
