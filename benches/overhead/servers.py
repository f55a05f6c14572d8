"""The private server under each load: made, filled, warmed, and driven for a number of transactions.

The constraint: everything has to be in Linux's page cache, and much of it not in the server's, or there is nothing for
the probe to see and nothing to pay.
"""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment import Fault, Journal, StateDir, page_cache, server, work_dir
from plimsoll.environment.discover import PostgresInstall
from plimsoll.run import agent, planning
from plimsoll.run.surroundings import PrivatePlace, launch_outside, own, watched_devices
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


@dataclass(frozen=True)
class Segment:
    """What a load did."""

    transactions: int
    seconds: float


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
        user = planning.server_user()
        uid, gid = own(user)
        self.state.check_traversable(user)
        work_dir.make(self.state, self.journal, self.folder, uid=uid, gid=gid)
        server.record(self.journal, self.data)
        self.cluster = PostgresServer(self.install.bin_dir, self.data, self.folder, user, launch_outside)
        self.cluster.initdb()
        self.cluster.configure(BUILD_SETTINGS, None)
        self.cluster.start()
        self.cluster.create_database()
        self._fill()
        self.cluster.checkpoint()
        self.cluster.stop()
        page_cache.evict(self.folder)  # on disk, so that no arm pays for writing it

    def start(self, shared_buffers: str) -> None:
        """Starts the server and warms both caches: Linux's with every file, the server's with what it has room for."""
        self.cluster.configure({**SETTINGS, "shared_buffers": shared_buffers}, None)
        place = PrivatePlace([], None, None, self.folder, own(self.cluster.user), None)
        place.read_inside(self.data)
        self.cluster.start()
        self.cluster.prewarm(self.schema)

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.folder / "data"

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

    def blocks_read(self) -> int:
        """Blocks that the server has asked Linux for. No client may be connected."""
        return self.cluster.connection.counters()["blks_read"]

    @abstractmethod
    def _fill(self) -> None:
        """Loads the data."""

    @abstractmethod
    def run(self, *, transactions: int | None, seconds: float | None, pair: int) -> Segment:
        """Runs the load for so many transactions, or for so long."""


@dataclass
class Orders(Site):
    """wpi_orders by the agent. It writes, so each segment goes on where the last one ended."""

    size_bytes: int = 256 << 20
    next_index: int = 0

    @property
    def _workload(self) -> dict[str, object]:
        return {"name": "wpi_orders", "size_bytes": self.size_bytes, "seed": 1}

    def _fill(self) -> None:
        target = self.cluster.connection.as_request()
        agent.call("populate", {"target": target, "workload": self._workload, "parallel": 2})

    def run(self, *, transactions: int | None, seconds: float | None, pair: int) -> Segment:
        """The pair does not matter: the index decides what is done."""
        del pair
        out = self.folder / "load"
        out.mkdir(exist_ok=True)
        request = {
            "target": self.cluster.connection.as_request(),
            "workload": self._workload,
            "clients": CLIENTS,
            "first_index": self.next_index,
            "stop": {"transactions": transactions} if transactions else {"seconds": seconds},
            "out": str(out),
            "sample": {"devices": watched_devices(self.folder)},
        }
        summary = agent.call("load", request)
        self.next_index = int(summary["next_index"])
        identity, wrong = summary["identity"], summary["verification"]["wrong"]
        if identity["done"] != identity["planned"] or wrong:
            raise Fault(f"wpi_orders: {identity}, {wrong} wrong answers", remedy="see the server's log; run it again")
        return Segment(int(identity["done"]), (summary["ended_ns"] - summary["started_ns"]) / 1e9)


@dataclass
class SelectOnly(Site):
    """pgbench's own select-only transaction, prepared. The pair seeds the keys, so both arms ask the same."""

    schema: str = "public"
    scale: int = 50

    def _fill(self) -> None:
        self._pgbench("-i", "-q", "-s", str(self.scale))

    def run(self, *, transactions: int | None, seconds: float | None, pair: int) -> Segment:
        """As many transactions a client as make `transactions` together."""
        until = ["-t", str(-(-transactions // CLIENTS))] if transactions else ["-T", str(max(1, round(seconds or 1)))]
        load = ["-n", "-S", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", f"--random-seed={pair}"]
        output = self._pgbench(*load, *until)
        done = re.search(r"transactions actually processed: (\d+)", output)
        rate = re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE)
        if done is None or rate is None:
            raise Fault(f"pgbench: its output is not understood: {output}", remedy="look whether its version is new")
        if transactions and int(done[1]) < transactions:
            raise Fault(f"pgbench: {done[1]} of {transactions} transactions done", remedy="see the server's log")
        return Segment(int(done[1]), int(done[1]) / float(rate[1]))

    def _pgbench(self, *arguments: str) -> str:
        connection = self.cluster.connection
        address = ["-h", connection.host, "-p", str(connection.port), "-U", connection.user, connection.dbname]
        argv = [str(self.install.bin_dir / "pgbench"), *arguments, *address]
        process = launch_outside(argv, user=connection.user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output = process.communicate()[0].decode(errors="replace")
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            raise Fault(f"pgbench {' '.join(arguments)}: {output.strip()[-1000:]}", remedy="see the server's log")
        return output
