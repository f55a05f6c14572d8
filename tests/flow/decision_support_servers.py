"""DuckDB and PostgreSQL with the decision-support tables: by the agent's rows as text, and by its own loader."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
from live_server import live_server

from plimsoll.run.agent import Agent, AgentFailed, call
from plimsoll.target import Connection

Json = dict[str, Any]
Rows = list[tuple[Any, ...]]
SCHEMA = "plimsoll"


def workload(scale_factor: float, **more: Any) -> Json:
    """The workload of a request."""
    return {"name": "decision_support", "scale_factor": scale_factor, **more}


def streams(scale_factor: float, *numbers: int, **more: Any) -> list[Json]:
    """The queries of these streams, one after the other."""
    planned = call("plan", {"workload": workload(scale_factor, **more), "streams": list(numbers)})
    return [query for stream in planned["streams"] for query in stream["queries"]]


def tables(scale_factor: float) -> dict[str, str]:
    """What makes each table, by its name."""
    ddl = call("describe", {"workload": workload(scale_factor)})["ddl"]
    return {sql.split()[2]: sql for sql in ddl if sql.startswith("CREATE TABLE ")}


@contextlib.contextmanager
def rows_of(scale_factor: float, table: str) -> Iterator[int]:
    """The reading end of a pipe that the agent writes a table into."""
    reading, writing = os.pipe()
    # The agent opens our end by its path, so it is handed no descriptor, and the pipe ends when we close ours.
    out = f"/proc/{os.getpid()}/fd/{writing}"
    agent = Agent("generate", {"workload": workload(scale_factor), "table": table, "out": out})
    failures: list[AgentFailed] = []

    def wait() -> None:
        try:
            agent.finish()
        except AgentFailed as failed:
            failures.append(failed)
        finally:
            os.close(writing)

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield reading
    except BaseException:
        agent.kill()
        raise
    finally:
        os.close(reading)
        waiting.join()
    if failures:
        raise failures[0]


class Duck:
    """DuckDB in this process, its data in memory."""

    def __init__(self, scale_factor: float) -> None:
        self._connection = duckdb.connect(":memory:")
        for table, sql in tables(scale_factor).items():
            self._connection.execute(sql)
            with rows_of(scale_factor, table) as reading:
                how = "format csv, header false, auto_detect false, delimiter '|', quote ''"
                self._connection.execute(f"copy {table} from '/dev/fd/{reading}' ({how})")

    def ask(self, sql: str) -> Rows:
        """All rows of a query's answer."""
        return self._connection.execute(sql).fetchall()

    def close(self) -> None:
        """Ends it; nothing of what was in memory stays."""
        self._connection.close()


@contextlib.contextmanager
def postgres(scale_factor: float, user: str) -> Iterator[Connection]:
    """A private PostgreSQL with the tables."""
    with live_server(user, settings={"shared_buffers": "256MB", "work_mem": "64MB"}) as live, live.session() as session:
        loading = live.server.load_connection
        connection = replace(loading, dbname=session.info.dbname, schema=SCHEMA)
        request = {"target": connection.as_request(), "workload": workload(scale_factor), "parallel": 2}
        call("populate", request)
        yield connection
