"""Rows for an embedded server: the agent generates them as text, the server's own COPY reads them from a pipe.

The fact that constrains it: a pipe ends when nobody holds its writing end. The driver makes it and holds that end for
the agent, so it has to be told when the agent is done, however that was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plimsoll.analysis.decision_support.formulas import REFRESH
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.target import ServerFailed
from plimsoll.target.decision_support_checks import checks, left_of_set, statements
from plimsoll.target.duckdb_server import DuckServer
from plimsoll.target.server import Launch

Json = dict[str, Any]
SETS = "sets"
# The tables of each function's part of a set, the one with a row for each order last.
PARTS = {"RF1": ("lineitem", "orders"), "RF2": ("refresh_key",)}


def alone(folder: Path, owner: tuple[int, int], launch: Launch | None = None) -> DuckServer:
    """A DuckDB with no limits, its database in `folder`, which is the caller's; `launch` as DuckServer takes it."""
    return DuckServer(folder / "data", folder, launch or HERE.start, other_owner(owner))


def other_owner(owner: tuple[int, int]) -> tuple[int, int] | None:
    """Whom the driver is to become; None where it is him already."""
    return None if owner[0] == os.geteuid() else owner


def make_folder(path: Path, owner: tuple[int, int]) -> None:
    """A folder that the server's user owns."""
    path.mkdir(mode=0o700)
    os.chown(path, *owner)


@contextmanager
def filled(server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer) -> Iterator[Json]:
    """A new database with the tables, open until the end; what `populate` would answer.

    Raises ServerFailed or AgentFailed.
    """
    make_folder(server.data, owner)
    make_folder(server.temp, owner)
    try:
        server.start()
        yield Loading(server, data, observer).run(None)
    finally:
        server.abandon()


def build_database(
    server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer
) -> tuple[Json, list[Json]]:
    """Makes a database with the tables and closes it; what `populate` would answer, and what `check` would.

    Raises ServerFailed or AgentFailed.
    """
    with filled(server, data, owner, observer) as result:
        checks = RefreshSets(server, data, owner).check()
        server.stop()
    server.temp.rmdir()
    return result, checks


def describe(data: Json) -> Json:
    """The agent's description of the tables: their rows and what makes them."""
    return agent.call("describe", {"workload": data})


class Loading:
    """A load test: phases and tables timed from its begin, as the agent's `populate` tells them."""

    def __init__(self, server: DuckServer, data: Json, observer: Observer) -> None:
        self._server, self._data, self._observer = server, data, observer
        self._began = time.monotonic()
        self._phases: list[Json] = []
        self._work: list[Json] = []

    def run(self, cpus: set[int] | None) -> Json:
        """Makes and fills the tables; what `populate` would answer. There are no keys and no indexes.

        Raises ServerFailed or AgentFailed.
        """
        described = describe(self._data)
        rows: dict[str, int] = described["tables"]
        with self._phase("tables"):
            self._server.ask(*(sql for sql in described["ddl"] if sql.startswith("CREATE TABLE ")))
        with self._phase("rows"):
            self._fill(sorted(rows, key=lambda name: -rows[name]), sum(rows.values()), cpus)
        with self._phase("analyze"):
            self._server.ask("analyze")
        # To the end of ANALYZE, as of every server: the checkpoint is a phase of its own, behind it.
        seconds = self._seconds()
        with self._phase("checkpoint"):
            self._server.ask("checkpoint")
        row_counts = {one["table"]: one["rows"] for one in self._work}
        about = {"tables": row_counts, "bytes": self._server.bytes(), "seconds": seconds}
        return about | {"phases": self._phases, "work": self._work}

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _bytes(self) -> int:
        return sum(int(one["bytes"]) for one in self._work)

    def _tell(self, event: str, **about: Any) -> None:
        self._observer.event("dataset", line={"event": event, **about, "seconds": self._seconds()})

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self._tell("phase", phase=name)
        entry = {"phase": name, "began_s": self._seconds()}
        yield
        self._phases.append(entry | {"ended_s": self._seconds()})

    def _fill(self, tables: list[str], total: int, cpus: set[int] | None) -> None:
        """One table after the other: the agent writes the rows of the next one already while the last is read."""
        paths: dict[str, str] = self._server.do("make_pipes", tables=tables)["paths"]
        generating = Generating(self._server, self._data, paths, cpus)
        try:
            for table in tables:
                began_s = self._seconds()
                rows = int(self._server.do("copy", table=table)["rows"])
                generated = generating.told(table)
                if generated["rows"] != rows:
                    raise ServerFailed(f"{table}: {generated['rows']} rows were written and {rows} read")
                about = {"rows": rows, "bytes": generated["bytes"], "began_s": began_s, "ended_s": self._seconds()}
                self._work.append({"phase": "rows", "table": table, **about})
                done = sum(one["rows"] for one in self._work)
                self._tell("progress", done=done, total=total, table=table, bytes=self._bytes())
        except BaseException:
            generating.kill()
            raise


class Generating:
    """The agent at work on the texts of several tables, one after the other, each into its pipe."""

    def __init__(self, server: DuckServer, data: Json, paths: dict[str, str], cpus: set[int] | None) -> None:
        self._server, self._tables = server, list(paths)
        parts = [{"table": table, "out": path} for table, path in paths.items()]
        self._agent = agent.Agent("generate", {"workload": data, "parts": parts}, cpus)
        self._told: dict[str, Json] = {}
        self._failed: agent.AgentFailed | None = None
        self._following = threading.Thread(target=self._follow)
        self._following.start()

    def _follow(self) -> None:
        for line in self._agent.lines():
            self._told[line["table"]] = line
            self._server.tell(f"written {line['table']}")
        try:
            self._agent.finish()
        except agent.AgentFailed as failed:
            self._failed = failed
        for table in self._tables:  # however it ended, nobody writes any more
            self._server.tell(f"written {table}")

    def told(self, table: str) -> Json:
        """What was told of a table that the server has read to its end. Raises AgentFailed."""
        if self._tables[-1] == table or table not in self._told:
            self._following.join()
        if table not in self._told:
            assert self._failed is not None
            raise self._failed
        return self._told[table]

    def kill(self) -> None:
        """Ends it; whoever reads meets the end of the pipe."""
        self._agent.kill()
        self._following.join()


class RefreshSets:
    """The refresh sets of a trial: generated before the test that takes them, as files of text beside the database."""

    def __init__(self, server: DuckServer, data: Json, owner: tuple[int, int]) -> None:
        self._server, self._data, self._owner = server, data, owner
        self._made: dict[str, dict[int, Json]] = {name: {} for name in REFRESH}

    def taken(self) -> dict[str, int]:
        """How many sets each function has taken, by the database itself."""
        rows = self._server.ask("select function, taken from refresh_sets")
        return {str(function): int(taken) for function, taken in rows}

    def prepare(self, wanted: dict[str, int]) -> dict[str, list[Json]]:
        """The next sets of each function, as many as are wanted: what the driver's test is handed."""
        taken = self.taken()
        next_ones = {name: range(taken[name] + 1, taken[name] + count + 1) for name, count in wanted.items()}
        self._make([(name, number) for name, numbers in next_ones.items() for number in numbers])
        return {name: [self._made[name][number] for number in numbers] for name, numbers in next_ones.items()}

    def _make(self, wanted: list[tuple[str, int]]) -> None:
        """Generates the sets (function, number) that are not there, in one call."""
        missing = [(name, number) for name, number in wanted if number not in self._made[name]]
        if not missing:
            return
        folder = self._server.run_dir / SETS
        folder.mkdir(exist_ok=True)
        os.chown(folder, *self._owner)
        parts: list[Json] = [
            {"table": table, "set": number, "out": str(folder / f"{name}-{number}-{table}")}
            for name, number in missing
            for table in PARTS[name]
        ]
        told: dict[tuple[str, int], Json] = {}
        generating = agent.Agent("generate", {"workload": self._data, "parts": parts})
        for line in generating.lines():
            told[line["table"], line["set"]] = line
        generating.finish()
        for part in parts:
            os.chown(part["out"], *self._owner)
        for name, number in missing:
            tables = PARTS[name]
            paths = {table: str(folder / f"{name}-{number}-{table}") for table in tables}
            orders = told[tables[-1], number]
            counts = {"order_count": orders["rows"], "line_count": orders["lines"]}
            verify = left_of_set(name, number, orders["rows"])
            is_there = name == "RF1"
            left = {"orders": orders["rows"] * is_there, "lines": orders["lines"] * is_there, "prices_wrong": 0}
            self._made[name][number] = {"set": number, **paths, **counts, "verify": verify, "left": left}

    def check(self) -> list[Json]:
        """What must hold of the tables after the sets that were taken: checks as the agent's `check` tells them."""
        rows: dict[str, int] = describe(self._data)["tables"]
        taken = self.taken()
        used = {name: range(1, count + 1) for name, count in taken.items()}
        self._make([(name, number) for name, numbers in used.items() for number in numbers])
        lines = {name: sum(self._made[name][number]["line_count"] for number in used[name]) for name in taken}
        answers = [self._server.ask(sql) for sql in statements(rows, taken)]
        return checks(rows, taken, lines, answers)
