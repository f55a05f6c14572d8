"""Rows for an embedded server: the agent generates them as text, the server's own COPY reads them from a pipe.

The fact that constrains it: a pipe ends when nobody holds its writing end. The driver makes it and holds that end for
the agent, so it has to be told when the agent is done, however that was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.run import agent
from plimsoll.run.observer import Observer
from plimsoll.target import ServerFailed
from plimsoll.target.duckdb_server import DuckServer

Json = dict[str, Any]


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
        row_counts = {work["table"]: work["rows"] for work in self._work}
        about = {"tables": row_counts, "bytes": self._server.bytes(), "seconds": seconds}
        return about | {"phases": self._phases, "work": self._work}

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _bytes(self) -> int:
        return sum(int(work["bytes"]) for work in self._work)

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
                done = sum(work["rows"] for work in self._work)
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
