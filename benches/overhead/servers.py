"""The private server under each load: made, filled, warmed, and driven for a while.

The constraint: everything has to be in Linux's page cache, and much of it not in the server's, or there is nothing for
the probe to see and nothing to pay.
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from plimsoll.environment import Fault, Journal, StateDir, server
from plimsoll.environment.discover import PostgresInstall
from plimsoll.environment.folders import work_dir
from plimsoll.environment.memory import page_cache
from plimsoll.record.npy import read_table
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import FileLocations
from plimsoll.target import PostgresServer
from plimsoll.target.dataset import BUILD_SETTINGS

CLIENTS = 8
SETTINGS: dict[str, bool | int | float | str] = {
    "fsync": True,
    "synchronous_commit": True,
    "full_page_writes": True,
    "checkpoint_timeout": "1h",
    "max_wal_size": "16GB",
    "autovacuum": False,
    "huge_pages": "off",
}


class Running(Protocol):
    """A load under way."""

    pid: int

    def finish(self) -> Callable[[int], float]:
        """Waits for its end; tells how many transactions had ended at a time of CLOCK_MONOTONIC."""
        ...

    def abandon(self) -> None:
        """Ends it at once."""
        ...


@dataclass
class Site(ABC):
    """A server in a work folder of its own, with one data set."""

    state: StateDir
    journal: Journal
    install: PostgresInstall
    folder: Path
    schema: str = "plimsoll"
    cluster: PostgresServer = field(init=False)

    def build(self) -> None:
        """Makes the cluster and its data, stopped and on disk. The journal removes all of it."""
        user = HERE.server_user()
        self.state.check_traversable(user)
        work_dir.make(self.state, self.journal, self.folder, mode=0o755)
        self.logs.mkdir()
        os.chown(self.logs, *HERE.account(user))
        server.record(self.journal, self.data)
        self.cluster = PostgresServer(self.install.bin_dir, self.data, self.folder, user, HERE.start_as)
        self.cluster.initdb()
        self.cluster.configure(BUILD_SETTINGS, None)
        self.cluster.start()
        self.cluster.create_database()
        self._fill()
        self.cluster.checkpoint()
        self.cluster.stop()
        page_cache.evict(self.folder)  # on disk, so that no arm pays for writing it

    def start(self, settings: dict[str, bool | int | float | str]) -> None:
        """Starts the server and warms both caches: Linux's with every file, the server's with what it has room for."""
        self.cluster.configure(SETTINGS | settings, None)
        place = PrivatePlace([], None, None, FileLocations.together(self.folder), HERE.account(self.cluster.user), None)
        place.read_inside(self.data)
        self.cluster.start()
        self.cluster.prewarm(self.schema)

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.folder / "data"

    @property
    def logs(self) -> Path:
        """Where pgbench may write, which runs as the server's user; what is beside it is root's."""
        return self.folder / "logs"

    @property
    def postmaster(self) -> int:
        """The server's first process."""
        pid = self.cluster.pid()
        assert pid is not None  # it is started
        return pid

    def uncached_bytes(self) -> int:
        """What of the cluster's databases is not in Linux's page cache."""
        found = page_cache.residency(self.data / "base")
        return found.total_bytes - found.resident_bytes

    @abstractmethod
    def _fill(self) -> None:
        """Loads the data."""


class LoadedSite(Site):
    """One that brings its load."""

    @abstractmethod
    def begin(self, seconds: float, seed: int) -> Running:
        """Starts the load for so long."""


class _OrdersLoad:
    def __init__(self, site: Orders, request: dict[str, object]) -> None:
        self._site, self._agent = site, agent.Agent("load", request)
        self.pid = self._agent.pid

    def finish(self) -> Callable[[int], float]:
        summary = {}
        for line in self._agent.lines():
            summary = line
        self._agent.finish()
        self._site.next_index = int(summary["next_index"])
        identity, wrong = summary["identity"], summary["verification"]["wrong"]
        if identity["done"] != identity["planned"] or wrong:
            raise Fault(f"wpi_orders: {identity}, {wrong} wrong answers", remedy="see the server's log; run it again")
        table = read_table(self._site.folder / "load/transactions.npy")
        assert table is not None  # the agent has just written it
        ended = np.sort(table["end_ns"])
        return lambda t_ns: float(np.searchsorted(ended, t_ns))

    def abandon(self) -> None:
        self._agent.kill()


@dataclass
class Orders(LoadedSite):
    """wpi_orders by the agent. It writes, so each segment goes on where the last one ended."""

    size_bytes: int = 256 << 20
    next_index: int = 0

    @property
    def _workload(self) -> dict[str, object]:
        return {"name": "wpi_orders", "size_bytes": self.size_bytes, "seed": 1}

    def _fill(self) -> None:
        target = self.cluster.connection.as_request()
        agent.call("populate", {"target": target, "workload": self._workload, "parallel": 2})

    def begin(self, seconds: float, seed: int) -> Running:
        """The index decides what is done, not the seed."""
        del seed
        out = self.folder / "load"
        out.mkdir(exist_ok=True)
        request = {
            "target": self.cluster.connection.as_request(),
            "workload": self._workload,
            "clients": CLIENTS,
            "first_index": self.next_index,
            "stop": {"seconds": seconds},
            "out": str(out),
            "sample": {"devices": HERE.devices(self.folder)},
        }
        return _OrdersLoad(self, request)


class _SelectOnlyLoad:
    def __init__(self, site: SelectOnly, process: subprocess.Popen[bytes]) -> None:
        self._site, self._process = site, process
        self.pid = process.pid

    def finish(self) -> Callable[[int], float]:
        output = self._process.communicate()[0].decode(errors="replace")
        if self._process.returncode:
            raise Fault(f"pgbench: {output.strip()[-1000:]}", remedy="see the server's log")
        # client, number of its transaction, ..., seconds and microseconds of the day's clock
        logs = sorted(self._site.logs.glob("pgbench_log.*"))
        rows = np.concatenate([np.loadtxt(log, dtype=np.int64, usecols=(0, 1, 4, 5), ndmin=2) for log in logs])
        for log in logs:
            log.unlink()
        t_ns = rows[:, 2] * 10**9 + rows[:, 3] * 1000 - (time.time_ns() - time.monotonic_ns())
        clients = [(t_ns[rows[:, 0] == each], rows[rows[:, 0] == each, 1]) for each in range(CLIENTS)]
        return lambda at: float(sum(np.interp(at, times, numbers) for times, numbers in clients))

    def abandon(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class SelectOnly(LoadedSite):
    """pgbench's own select-only transaction, prepared. Some transactions are logged: their numbers count all."""

    schema: str = "public"
    scale: int = 50
    builtin = "select-only"

    def _fill(self) -> None:
        process = self._pgbench("-i", "-q", "-s", str(self.scale))
        output = process.communicate()[0].decode(errors="replace")
        if process.returncode:
            raise Fault(f"pgbench -i: {output.strip()[-1000:]}", remedy="see the server's log")

    def begin(self, seconds: float, seed: int) -> Running:
        """The seed decides the keys."""
        load = [
            "-n",
            "-b",
            self.builtin,
            "-M",
            "prepared",
            "-c",
            str(CLIENTS),
            "-j",
            "2",
            "-T",
            str(math.ceil(seconds)),
        ]
        log = ["-l", "--sampling-rate=0.05", f"--log-prefix={self.logs}/pgbench_log", f"--random-seed={seed}"]
        return _SelectOnlyLoad(self, self._pgbench(*load, *log))

    def _pgbench(self, *arguments: str) -> subprocess.Popen[bytes]:
        connection = self.cluster.connection
        address = ["-h", connection.host, "-p", str(connection.port), "-U", connection.user, connection.dbname]
        argv = [str(self.install.bin_dir / "pgbench"), *arguments, *address]
        return HERE.start_as(argv, user=connection.user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@dataclass
class TpcbLike(SelectOnly):
    """pgbench's TPC-B-like transaction."""

    builtin = "tpcb-like"
