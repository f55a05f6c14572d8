"""Does a server answer the 22 queries rightly? Asked of tables as the trial has loaded them, compared column by column.

The fact that constrains it: refresh functions change the tables for good, so this is between the load test and the
first that performs any. What the queries leave in the caches, the next test finds there, with every treatment alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg

from plimsoll.analysis.trial.answers import AGREED, KNOWN, Row, Rule, differences
from plimsoll.experiment import Experiment
from plimsoll.experiment.decision_support import Against
from plimsoll.run import agent
from plimsoll.run.embedded_load import alone, filled
from plimsoll.run.observer import Observer
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.signals import Stopped
from plimsoll.run.trial import Report
from plimsoll.target import Connection

T = TypeVar("T")
Json = dict[str, Any]
Ask = Callable[[str], Sequence[Row]]
FOLDER = "answers"


class Refused(Exception):
    """A query that the server did not answer, in its words."""


class Asking(Protocol):
    """A trial, as far as queries are asked in it."""

    @property
    def settings(self) -> Experiment:
        """Of its treatment."""

    @property
    def observer(self) -> Observer:
        """Who is told."""

    def is_stopping(self) -> bool:
        """Whether the run is to end."""


@dataclass(frozen=True)
class Right:
    """A query, and an answer that is right by `rule`."""

    query: int
    sql: str
    rows: Sequence[Row]
    rule: Rule


def check(trial: Asking, against: Against, ask: Ask, report: Report, folder: Path, owner: tuple[int, int]) -> None:
    """Compares every answer; `answers` of trial.json.

    `ask`: gives the rows of a query, or raises Refused; `folder` (the trial's own) and `owner` (of the server's
    processes) are for a second server beside it. Raises Stopped when the run is to end, AgentFailed, ServerFailed.
    """
    with report.phase("answers", trial.observer):
        rights = known() if against == "known" else by_duckdb(trial, folder / FOLDER, owner)
        checks = [_checked(right, ask) for right in _each(rights, trial)]
    report.found["answers"] = {"against": against, "checks": checks}


def known() -> list[Right]:
    """The queries with the validation's parameters, whose answers at scale factor 1 come with the generator."""
    request = {"workload": {"name": "decision_support", "scale_factor": 1}, "validation": True}
    planned = agent.call("plan", request)
    rows = {answer["query"]: answer["rows"] for answer in planned["answers"]}
    return [Right(one["query"], one["sql"], rows[one["query"]], KNOWN) for one in planned["validation"]]


def by_duckdb(trial: Asking, folder: Path, owner: tuple[int, int]) -> list[Right]:
    """The power test's queries, answered by a DuckDB with the same rows and no limits, which is gone afterwards."""
    planned = agent.call("plan", {"workload": workload_request(trial.settings), "streams": [0]})
    folder.mkdir()
    folder.chmod(0o755)  # for the server's user, whatever the umask
    try:
        server = alone(folder, owner)
        with filled(server, data_request(trial.settings) or {}, owner, trial.observer):
            queries = sorted(planned["streams"][0]["queries"], key=lambda one: int(one["query"]))
            return [Right(one["query"], one["sql"], server.ask(one["sql"]), AGREED) for one in _each(queries, trial)]
    finally:
        shutil.rmtree(folder)


@contextmanager
def of_postgresql(connection: Connection, timeout_seconds: float | None) -> Iterator[Ask]:
    """A session that asks a PostgreSQL, with the time that queries have in the tests."""
    with connection.open(connection.dbname) as session:
        session.execute("select set_config('search_path', %s, false)", [connection.schema])
        if timeout_seconds is not None:
            session.execute(
                "select set_config('statement_timeout', %s, false)", [f"{max(1, round(timeout_seconds * 1000))}"]
            )

        def ask(sql: str) -> Sequence[Row]:
            try:
                return session.execute(sql.encode()).fetchall()
            except psycopg.Error as error:
                if session.broken:
                    raise
                raise Refused(str(error).strip()) from None

        yield ask


def _each(several: Sequence[T], trial: Asking) -> Iterator[T]:
    """One after the other, told as they begin. Raises Stopped when the run is to end."""
    for number, one in enumerate(several):
        if trial.is_stopping():
            raise Stopped
        trial.observer.event("asking", done=number, planned=len(several))
        yield one


def _checked(right: Right, ask: Ask) -> Json:
    try:
        texts = differences(right.query, right.rows, ask(right.sql), right.rule)
    except Refused as refused:
        texts = [str(refused)]
    return {
        "name": f"Q{right.query}",
        "expected": f"{len(right.rows)} rows",
        "found": "; ".join(texts),
        "ok": not texts,
    }
