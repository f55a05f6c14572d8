"""Answers compared in a trial, with the agent and the servers played: what is asked, what is told, what ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.experiment import Experiment
from plimsoll.run.decision_support import answers
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.capabilities import QueryRefused
from plimsoll.run.trial.log import TrialLog

Json = dict[str, Any]
OWNER = (0, 0)
QUERY_4 = {"query": 4, "sql": "four"}
QUERY_6 = {"query": 6, "sql": "six"}
FOUND = {"four": [("1-URGENT", 10594), ("2-HIGH", 10476)], "six": [("123141078.2283",)]}


class Trial:
    """As far as queries are asked in it."""

    def __init__(self) -> None:
        workload = {"name": "decision_support", "scale_factor": 1.0, "seed": 9}
        document = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
        self.settings = Experiment.model_validate(document)
        self.told: list[tuple[str, Json]] = []
        self.stopping_after = 100

    @property
    def observer(self) -> Trial:
        return self

    def event(self, name: str, **info: Any) -> None:
        self.told.append((name, info))

    def is_stopping(self) -> bool:
        return len(self.told) > self.stopping_after


@pytest.fixture(autouse=True)
def agent_calls(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    asked: list[Json] = []

    def call(verb: str, request: Json) -> Json:
        assert verb == "plan"
        asked.append(request)
        known = [
            {"query": 4, "rows": [["1-URGENT", "10594"], ["2-HIGH", "10476"]]},
            {"query": 6, "rows": [["123141078.23"]]},
        ]
        return {"validation": [QUERY_4, QUERY_6], "answers": known, "streams": [{"queries": [QUERY_6, QUERY_4]}]}

    monkeypatch.setattr(answers.agent, "call", call)
    return asked


def check(trial: Trial, against: Any, found: dict[str, Any], folder: Path) -> Json:
    def ask(sql: str) -> Sequence[Any]:
        if isinstance(answer := found[sql], Exception):
            raise answer
        rows: Sequence[Any] = answer
        return rows

    log = TrialLog(SimpleNamespace())
    answers.check(trial, against, ask, log, folder, OWNER)
    assert [phase["name"] for phase in log.facts["phases"]] == ["answers"]
    told: Json = log.facts["answers"]
    assert told["against"] == against
    return {one["name"]: (one["ok"], one["found"]) for one in told["checks"]}


def test_known_answers_are_those_of_the_validation(tmp_path: Path, agent_calls: list[Json]) -> None:
    trial = Trial()
    assert check(trial, "known", FOUND, tmp_path) == {"Q4": (True, ""), "Q6": (True, "")}
    assert agent_calls == [{"workload": {"name": "decision_support", "scale_factor": 1}, "validation": True}]
    asking = [info for name, info in trial.told if name == "asking"]
    assert asking == [{"done": 0, "planned": 2}, {"done": 1, "planned": 2}]


def test_what_is_wrong_is_told_by_row_and_column(tmp_path: Path) -> None:
    found = FOUND | {"four": [("1-URGENT", 10594), ("2-HIGH", 10475)]}
    assert check(Trial(), "known", found, tmp_path) == {
        "Q4": (False, "row 2, column 2: 10475 and not 10476"),
        "Q6": (True, ""),
    }


def test_a_query_that_is_refused_is_a_wrong_answer(tmp_path: Path) -> None:
    found = FOUND | {"six": QueryRefused("canceling statement due to statement timeout")}
    assert check(Trial(), "known", found, tmp_path)["Q6"] == (False, "canceling statement due to statement timeout")


def test_a_server_that_is_gone_is_no_wrong_answer(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        check(Trial(), "known", FOUND | {"four": ConnectionError()}, tmp_path)


def test_a_stop_is_heard_between_two_queries(tmp_path: Path) -> None:
    trial = Trial()
    trial.stopping_after = 1  # the phase, then the first query
    with pytest.raises(Stopped):
        check(trial, "known", FOUND, tmp_path)
    assert [name for name, _ in trial.told] == ["phase", "asking"]


@pytest.mark.parametrize("failing", [False, True])
def test_duckdb_answers_the_power_tests_queries_and_is_gone(
    tmp_path: Path, agent_calls: list[Json], monkeypatch: pytest.MonkeyPatch, failing: bool
) -> None:
    class Duck:
        """One that has the rows."""

        def ask(self, sql: str) -> list[Any]:
            if failing:
                raise RuntimeError
            return FOUND[sql]

    def alone(folder: Path, owner: tuple[int, int]) -> Duck:
        assert owner == OWNER and folder.is_dir()
        return Duck()

    @contextlib.contextmanager
    def filled(_server: Duck, data: Json, *_rest: Any) -> Iterator[Json]:
        assert data == {"name": "decision_support", "scale_factor": 1.0}
        yield {}

    monkeypatch.setattr(answers, "alone", alone)
    monkeypatch.setattr(answers, "filled", filled)
    found = FOUND | {"six": [("123141078.2284",)]}  # two servers' sums of many values
    if failing:
        with pytest.raises(RuntimeError):
            check(Trial(), "duckdb", found, tmp_path)
    else:
        told = check(Trial(), "duckdb", found, tmp_path)
        assert [(name, ok) for name, (ok, _) in told.items()] == [("Q4", True), ("Q6", True)]
        found["six"] = [("123141079.2283",)]
        assert not check(Trial(), "duckdb", found, tmp_path)["Q6"][0]
    assert agent_calls[0]["streams"] == [0] and agent_calls[0]["workload"]["seed"] == 9
    assert list(tmp_path.iterdir()) == []
