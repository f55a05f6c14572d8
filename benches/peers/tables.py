"""The loader of decision_support against `psql \\copy` of text, as DBT-3 does it.

The constraint: both sides make the same tables with the same indexes on the same server, and the peer's files are what
our generator writes, which is what it loads. The peer's tables exist before its clock starts, so that its rows are
logged even where wal_level is minimal. So are ours of lineitem, which several connections fill; our other tables are
filled by the transactions that create them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.site import Bank
from plimsoll.run import agent
from plimsoll.run.host import HERE

LINES = "lineitem"


@dataclass(frozen=True)
class Load:
    """One load of everything: its seconds, those of lineitem's rows, and by phase and table."""

    whole_s: float
    lines_s: float
    rows: dict[str, int]
    phases: list[dict[str, Any]]
    work: list[dict[str, Any]]


@dataclass
class DecisionSupport:
    """An empty server, and the tables that both make on it."""

    site: Bank
    folder: Path
    scale_factor: float
    parallel: int
    indexes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def workload(self) -> dict[str, Any]:
        """The workload of a request."""
        return {"name": "decision_support", "scale_factor": self.scale_factor}

    def ours(self) -> Load:
        """Makes and loads everything."""
        target = {**self.site.cluster.connection.as_request(), "schema": "ours"}
        request = {"target": target, "workload": self.workload, "parallel": self.parallel}
        found = agent.call("populate", request)
        of_lines = next(one for one in found["work"] if (one["phase"], one["table"]) == ("rows", LINES))
        lines_s = of_lines["ended_s"] - of_lines["began_s"]
        return Load(found["seconds"], lines_s, found["tables"], found["phases"], found["work"])

    def model(self) -> None:
        """Keeps the empty tables and their indexes, from what ours has just loaded."""
        self._run("CREATE SCHEMA model")
        names = "SELECT relname FROM pg_class WHERE relnamespace = 'ours'::regnamespace AND relkind = 'r'"
        for table in self._ask(names):
            self._run(f"CREATE TABLE model.{table} (LIKE ours.{table})")
            definitions = f"SELECT indexdef FROM pg_indexes WHERE schemaname = 'ours' AND tablename = '{table}'"
            self.indexes[table] = [one.replace(" ON ours.", " ON theirs.") for one in self._ask(definitions)]

    def generate(self) -> None:
        """Writes every table as text, one process a table."""
        requests = ({"table": table, "out": str(self.folder / table)} for table in self.indexes)
        for running in [agent.Agent("generate", {"workload": self.workload, **request}) for request in requests]:
            list(running.lines())
            running.finish()

    def copy_lines(self) -> float:
        """Seconds that one psql takes for the rows of lineitem from a ready file."""
        self._create()
        began = time.monotonic()
        self.site.psql(["-c", self._copy(LINES)])
        return time.monotonic() - began

    def theirs(self) -> float:
        """Seconds of generating every table, then copying, indexing and analysing it, one process a table."""
        self._create()
        began = time.monotonic()
        self.generate()
        with ThreadPoolExecutor(len(self.indexes)) as processes:
            list(processes.map(self._load, self.indexes))
        return time.monotonic() - began

    def empty(self, schema: str) -> None:
        """Removes what was loaded."""
        self._run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.site.cluster.checkpoint()

    def _create(self) -> None:
        self._run("CREATE SCHEMA theirs")
        for table in self.indexes:
            self._run(f"CREATE TABLE theirs.{table} (LIKE model.{table})")

    def _copy(self, table: str) -> str:
        return f"\\copy theirs.{table} FROM '{self.folder / table}' (FORMAT text, DELIMITER '|')"

    def _load(self, table: str) -> None:
        commands = [self._copy(table), *self.indexes[table], f"ANALYZE theirs.{table}"]
        self.site.psql([part for command in commands for part in ("-c", command)])

    def _ask(self, query: str) -> list[str]:
        return self.site.psql(["-A", "-t", "-c", query]).splitlines()

    def _run(self, statement: str) -> None:
        self.site.psql(["-q", "-c", statement])


@contextmanager
def files(folder: Path, user: str) -> Iterator[None]:
    """The folder of the files; gone at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    shutil.chown(folder, *HERE.account(user))
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
