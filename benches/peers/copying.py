"""The loader of order_entry against `psql \\copy` of ready binary files in shared memory.

The constraint: both fill each table in the transaction that creates it, over as many sessions, and psql's take the
tables from the largest down, as ours do. What is compared are the rows alone: ours also makes them, and goes on to
statistics, keys and constraints, whose time is in the figure of warehouses a minute.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from peers.site import Bank
from plimsoll.run import agent
from plimsoll.run.host import HERE

FILES = Path("/dev/shm/plimsoll-copying")
# What ours sets while it fills tables of a server whose wal_level is minimal.
FLUSHES = "SET backend_flush_after = '2MB'"


@dataclass(frozen=True)
class Load:
    """One load: seconds of its rows, of the whole, and of each phase."""

    rows_s: float
    whole_s: float
    phases: dict[str, float]


@dataclass
class OrderEntry:
    """An empty server and the tables that both make on it, `parallel` sessions at a time."""

    site: Bank
    warehouses: int
    parallel: int

    def ours(self) -> Load:
        """Makes and loads everything."""
        workload = {"name": "order_entry", "warehouses": self.warehouses, "seed": 7}
        target = {**self.site.cluster.connection.as_request(), "schema": "ours"}
        running = agent.Agent("populate", {"target": target, "workload": workload, "parallel": self.parallel})
        began: dict[str, float] = {}
        for line in running.lines():
            if line["event"] == "phase":
                began[line["phase"]] = line["seconds"]
            elif line["event"] == "populated":
                began["end"] = line["seconds"]
        running.finish()
        names = list(began)
        phases = {name: began[after] - began[name] for name, after in pairwise(names)}
        return Load(phases["rows"], began["end"], phases)

    def prepare(self) -> int:
        """Writes the files and keeps the empty tables, from what ours has just loaded. Gives the number of rows."""
        rows = 0
        self._run("CREATE SCHEMA model")
        for table in self._tables("ours"):
            self._run(f"CREATE TABLE model.{table} (LIKE ours.{table})")
            copied = self.site.psql(["-c", f"\\copy ours.{table} TO '{FILES / table}' (FORMAT binary)"])
            rows += int(copied.split()[1])
        return rows

    def theirs(self) -> float:
        """Seconds that psql takes for the rows."""
        self._run("CREATE SCHEMA theirs")
        by_size = sorted(FILES.iterdir(), key=lambda path: path.stat().st_size, reverse=True)
        began = time.monotonic()
        with ThreadPoolExecutor(self.parallel) as sessions:
            list(sessions.map(self._copy, by_size))
        return time.monotonic() - began

    def empty(self, schema: str) -> None:
        """Removes what was loaded."""
        self._run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.site.cluster.checkpoint()

    def _copy(self, path: Path) -> None:
        table = f"theirs.{path.name}"
        copy = f"\\copy {table} FROM '{path}' (FORMAT binary, FREEZE)"
        commands = [FLUSHES, "BEGIN", f"CREATE TABLE {table} (LIKE model.{path.name})", copy, "COMMIT"]
        self.site.psql([part for command in commands for part in ("-c", command)])

    def _tables(self, schema: str) -> list[str]:
        query = f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
        return self.site.psql(["-A", "-t", "-c", query]).split()

    def _run(self, statement: str) -> None:
        self.site.psql(["-c", statement])


@contextmanager
def files(user: str) -> Iterator[None]:
    """The folder of the ready files; gone at the end."""
    uid, gid = HERE.account(user)
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(mode=0o700)
    shutil.chown(FILES, uid, gid)
    try:
        yield
    finally:
        shutil.rmtree(FILES, ignore_errors=True)
