"""Rows for an embedded server: the agent generates them as text, the server's own COPY reads them from a named pipe.

The fact that constrains it: a named pipe brings its two ends together by waiting for the other at its opening. So
whichever of them ends early, the other is ended here, or it would wait for ever.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plimsoll.analysis.decision_support import REFRESH
from plimsoll.run import agent
from plimsoll.run.observer import Observer
from plimsoll.target import ServerFailed
from plimsoll.target.decision_support_checks import checks, statements
from plimsoll.target.embedded import DriverEnded, DuckServer

Json = dict[str, Any]
PIPE = "rows"
SETS = "sets"
# The table of each function's part of a set: what is inserted, and the keys of what is deleted.
PARTS = {"RF1": ("lineitem", "orders"), "RF2": ("refresh_key",)}


def alone(folder: Path, owner: tuple[int, int]) -> DuckServer:
    """A DuckDB in no group, its database in `folder`."""
    return DuckServer(folder / "data", folder, _launch_alone, other_owner(owner))


def _launch_alone(argv: list[str], **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, start_new_session=True, cwd="/", **streams)


def other_owner(owner: tuple[int, int]) -> tuple[int, int] | None:
    """Whom the driver is to become; None where it is him already."""
    return None if owner[0] == os.geteuid() else owner


def make_folder(path: Path, owner: tuple[int, int]) -> None:
    """A folder that the server's user owns."""
    path.mkdir(mode=0o700)
    os.chown(path, *owner)


def build_database(
    server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer
) -> tuple[Json, list[Json]]:
    """Makes a database with the tables and closes it; what `populate` would answer, and what `check` would.

    Raises ServerFailed or AgentFailed.
    """
    make_folder(server.data, owner)
    make_folder(server.temp, owner)
    try:
        server.start({}, None)
        result = Loading(server, data, owner, observer).run(None)
        checks = RefreshSets(server, data, owner).check()
        server.close()
    finally:
        server.abandon()
    server.temp.rmdir()
    return result, checks


def describe(data: Json) -> Json:
    """The agent's description of the tables: their rows and what makes them."""
    return agent.call("describe", {"workload": data})


class Loading:
    """A load test: phases and tables timed from its begin, as the agent's `populate` tells them."""

    def __init__(self, server: DuckServer, data: Json, owner: tuple[int, int], observer: Observer) -> None:
        self._server, self._data, self._observer = server, data, observer
        self._pipe = server.run_dir / PIPE
        self._owner = owner
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
            for table in sorted(rows, key=lambda name: -rows[name]):
                self._fill(table, cpus)
                done = sum(one["rows"] for one in self._work)
                self._tell("progress", done=done, total=sum(rows.values()), table=table, bytes=self._bytes())
        with self._phase("analyze"):
            self._server.ask("analyze")
        with self._phase("checkpoint"):
            self._server.ask("checkpoint")
        found = {one["table"]: one["rows"] for one in self._work}
        seconds = self._seconds()
        about = {"tables": found, "bytes": self._server.bytes(), "seconds": seconds}
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

    def _fill(self, table: str, cpus: set[int] | None) -> None:
        began_s = self._seconds()
        os.mkfifo(self._pipe, 0o600)
        try:
            os.chown(self._pipe, *self._owner)
            request = {"workload": self._data, "table": table, "out": str(self._pipe)}
            generated, rows = _through_pipe(self._server, table, self._pipe, request, cpus)
        finally:
            self._pipe.unlink()
        if generated["rows"] != rows:
            raise ServerFailed(f"{table}: {generated['rows']} rows were written and {rows} read")
        span = {"began_s": began_s, "ended_s": self._seconds()}
        self._work.append({"phase": "rows", "table": table, "rows": rows, "bytes": generated["bytes"], **span})


def _through_pipe(server: DuckServer, table: str, pipe: Path, request: Json, cpus: set[int] | None) -> tuple[Json, int]:
    """Has the agent write and the server read; what the agent answered, and how many rows the server read."""
    writing = agent.Agent("generate", request, cpus)
    answer: Json = {}
    failures: list[agent.AgentFailed] = []
    is_over = threading.Event()

    def follow() -> None:
        for line in writing.lines():
            answer.update(line)
        try:
            writing.finish()
        except agent.AgentFailed as failed:
            failures.append(failed)
            if not is_over.is_set():
                server.kill()  # it waits for rows that nobody writes

    following = threading.Thread(target=follow)
    following.start()
    try:
        rows = int(server.do("copy", table=table, path=str(pipe))["rows"])
    except BaseException as error:
        was_over = bool(failures)
        is_over.set()
        writing.kill()
        following.join()
        # A driver that was ended because its writer had failed is not the cause.
        if was_over and isinstance(error, DriverEnded):
            raise failures[0] from None
        raise
    following.join()
    if failures:
        raise failures[0]
    return answer, rows


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
        return {
            name: [self._make(name, number) for number in range(taken[name] + 1, taken[name] + count + 1)]
            for name, count in wanted.items()
        }

    def _make(self, function: str, number: int) -> Json:
        known = self._made[function]
        if number not in known:
            folder = self._server.run_dir / SETS
            folder.mkdir(exist_ok=True)
            os.chown(folder, *self._owner)
            paths, counts = {}, {}
            for table in PARTS[function]:
                paths[table] = str(folder / f"{function}-{number}-{table}")
                request = {"workload": self._data, "table": table, "set": number, "out": paths[table]}
                answer = agent.call("generate", request)
                os.chown(paths[table], *self._owner)
                counts[table] = answer["rows"]
            orders = counts["orders" if function == "RF1" else "refresh_key"]
            known[number] = {"set": number, **paths, "order_count": orders, "line_count": answer["lines"]}
        return known[number]

    def check(self) -> list[Json]:
        """What must hold of the tables after the sets that were taken: checks as the agent's `check` tells them."""
        rows: dict[str, int] = describe(self._data)["tables"]
        taken = self.taken()
        lines = {
            name: sum(self._make(name, number)["line_count"] for number in range(1, count + 1))
            for name, count in taken.items()
        }
        found = [self._server.ask(sql) for sql in statements(rows, taken)]
        return checks(rows, taken, lines, found)
