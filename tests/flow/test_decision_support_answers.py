"""The 22 decision-support queries: each stream runs, two servers agree, and answers at scale factor 1 are the known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from decision_support_servers import Duck, Json, Rows, postgres, streams, workload

from plimsoll.analysis.trial.answers import AGREED, COLUMNS, differences
from plimsoll.experiment import Experiment
from plimsoll.run.decision_support import answers
from plimsoll.run.decision_support.answers import Right, known
from plimsoll.run.observer import Silent
from plimsoll.run.servers.postgresql.at_work import asking_of
from plimsoll.run.trial.capabilities import Ask, QueryRefused
from plimsoll.run.trial.log import TrialLog

SCALE_FACTOR = 0.02
SEED = 1_122_113_041
# Of 22 queries these may find nothing in so little data: orders of more than 312 pieces are one in thirty thousand.
RARE = {2, 18, 20}
SERVER = ("root", "postgresql", "server user")
CHANGE = (
    "update plimsoll.lineitem set l_quantity = l_quantity + 1 where (l_orderkey, l_linenumber) = "
    "(select l_orderkey, l_linenumber from plimsoll.lineitem where l_shipdate < '1998-01-01' limit 1)"
)


@pytest.fixture(scope="module")
def duck() -> Iterator[Duck]:
    made = Duck(SCALE_FACTOR)
    yield made
    made.close()


@pytest.fixture(scope="module")
def drawn() -> list[Json]:
    """Four streams, one of them with the old generator's parameters."""
    old = streams(SCALE_FACTOR, 3, seed=SEED, ranges="qgen 2.14")
    return streams(SCALE_FACTOR, 0, 1, 2, seed=SEED) + old


def test_every_query_of_every_stream_runs(duck: Duck, drawn: list[Json]) -> None:
    found_rows = set()
    for query in drawn:
        rows = duck.ask(query["sql"])
        columns = COLUMNS[query["query"]]
        assert all(len(row) == len(columns.classes) for row in rows), query
        assert columns.rows_max == query["rows_max"] and len(rows) <= (columns.rows_max or len(rows)), query
        if any(value is not None for row in rows for value in row):
            found_rows.add(query["query"])
    assert found_rows >= set(COLUMNS) - RARE


def test_two_servers_agree(duck: Duck, drawn: list[Json], needs: Callable[..., None], server_user: str) -> None:
    needs(*SERVER)
    with postgres(SCALE_FACTOR, server_user) as connection, asking_of(connection, None) as ask:
        for query in drawn:
            expected = ask(query["sql"])
            assert not differences(query["query"], expected, duck.ask(query["sql"]), AGREED), query


def test_another_answer_is_told(duck: Duck, drawn: list[Json]) -> None:
    """The same query of two streams has other answers, and the comparison says so."""
    first, second = (next(q for q in drawn[at:] if q["query"] == 5) for at in (0, 22))
    assert first["parameters"] != second["parameters"]
    assert differences(5, duck.ask(first["sql"]), duck.ask(second["sql"]), AGREED)


def test_a_row_that_changed_is_found_by_its_answers(
    needs: Callable[..., None], server_user: str, tmp_path: Path
) -> None:
    """As a trial asks: all answers are those of DuckDB, and with one piece more in a row some are not."""
    needs(*SERVER)
    document = {"name": "x", "title": "x", "workload": workload(SCALE_FACTOR), "warmup": {"until": "none"}}
    settings = Experiment.model_validate(document)
    trial = SimpleNamespace(settings=settings, observer=Silent(), is_stopping=lambda: False)

    def wrong(ask: Ask) -> set[str]:
        log = TrialLog(SimpleNamespace())
        answers.check(trial, "duckdb", ask, log, tmp_path, (os.geteuid(), os.getegid()))
        assert [check["name"] for check in log.facts["answers"]["checks"]] == [f"Q{n}" for n in range(1, 23)]
        return {check["name"] for check in log.facts["answers"]["checks"] if not check["ok"]}

    with postgres(SCALE_FACTOR, server_user) as connection:
        with asking_of(connection, 60) as ask:
            assert wrong(ask) == set()
        with connection.open(connection.dbname) as session:
            session.execute(CHANGE)
        with asking_of(connection, 60) as ask:
            assert "Q1" in wrong(ask)
            with pytest.raises(QueryRefused, match="nothing"):
                ask("select * from nothing")
            with connection.open(connection.dbname) as session, pytest.raises(psycopg.OperationalError):
                session.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
                ask("select 1")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def whole_duck() -> Iterator[Duck]:
    made = Duck(1)
    yield made
    made.close()


def check_known(asked: list[tuple[Right, Rows]]) -> None:
    """Every query's known answer against that found."""
    told = {right.query: differences(right.query, right.rows, found) for right, found in asked}
    assert len(told) == len(COLUMNS) and not {number: texts for number, texts in told.items() if texts}


@pytest.mark.long
def test_known_answers_by_duckdb(whole_duck: Duck) -> None:
    check_known([(right, whole_duck.ask(right.sql)) for right in known()])


@pytest.mark.long
def test_known_answers_by_postgresql(whole_duck: Duck, needs: Callable[..., None], server_user: str) -> None:
    needs(*SERVER)
    with postgres(1, server_user) as connection, asking_of(connection, None) as ask:
        asked = [(right, list(ask(right.sql))) for right in known()]
    check_known(asked)
    # Beyond the two decimals that are known, and with the whole keys of query 11.
    for right, found in asked:
        assert not differences(right.query, found, whole_duck.ask(right.sql), AGREED), right
