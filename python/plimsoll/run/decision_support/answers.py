"""Does a server answer the 22 queries rightly? Asked of tables as the trial has loaded them, compared column by column.

The fact that constrains it: refresh functions change the tables for good, so this is between the load test and the
first that performs any. What the queries leave in the caches, the next test finds there, with every treatment alike.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plimsoll.analysis.trial.answers import AGREED, KNOWN, Row, Rule, differences
from plimsoll.experiment.workloads.decision_support import Against
from plimsoll.run import agent
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.servers.duckdb.alone import alone, filled
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.capabilities import Ask, QueryRefused
from plimsoll.run.trial.log import TrialLog

T = TypeVar("T")
Json = dict[str, Any]
FOLDER = "answers"


@dataclass(frozen=True)
class Right:
    """A query, and an answer that is right by `rule`."""

    query: int
    sql: str
    rows: Sequence[Row]
    rule: Rule


def check(at: AtWork, against: Against, ask: Ask, log: TrialLog, folder: Path, owner: tuple[int, int]) -> None:
    """Compares every answer; `answers` of trial.json.

    `ask`: gives the rows of a query, or raises QueryRefused; `folder` (the trial's own) and `owner` (of the server's
    processes) are for a second server beside it. Raises Stopped when the run is to end, AgentFailed, ServerFailed.
    """
    with log.phase("answers", at.observer):
        rights = known() if against == "known" else by_duckdb(at, folder / FOLDER, owner)
        checks = [_checked(right, ask) for right in _each(rights, at)]
    log.facts["answers"] = {"against": against, "checks": checks}


def known() -> list[Right]:
    """The queries with the validation's parameters, whose answers at scale factor 1 come with the generator."""
    request = {"workload": {"name": "decision_support", "scale_factor": 1}, "validation": True}
    planned = agent.call("plan", request)
    rows = {answer["query"]: answer["rows"] for answer in planned["answers"]}
    return [Right(query["query"], query["sql"], rows[query["query"]], KNOWN) for query in planned["validation"]]


def by_duckdb(at: AtWork, folder: Path, owner: tuple[int, int]) -> list[Right]:
    """The power test's queries, answered by a DuckDB with the same rows and no limits, which is gone afterwards."""
    planned = agent.call("plan", {"workload": workload_request(at.settings), "streams": [0]})
    folder.mkdir()
    folder.chmod(0o755)  # for the server's user, whatever the umask
    try:
        server = alone(folder, owner)
        with filled(server, data_request(at.settings) or {}, owner, at.observer):
            queries = sorted(planned["streams"][0]["queries"], key=lambda query: int(query["query"]))
            return [
                Right(query["query"], query["sql"], server.ask(query["sql"]), AGREED) for query in _each(queries, at)
            ]
    finally:
        shutil.rmtree(folder)


def _each(several: Sequence[T], at: AtWork) -> Iterator[T]:
    """One after the other, told as they begin. Raises Stopped when the run is to end."""
    for number, item in enumerate(several):
        if at.is_stopping():
            raise Stopped
        at.observer.event("asking", done=number, planned=len(several))
        yield item


def _checked(right: Right, ask: Ask) -> Json:
    try:
        texts = differences(right.query, right.rows, ask(right.sql), right.rule)
    except QueryRefused as refused:
        texts = [str(refused)]
    return {
        "name": f"Q{right.query}",
        "expected": f"{len(right.rows)} rows",
        "found": "; ".join(texts),
        "ok": not texts,
    }
