"""The segments of a trial's load: where each begins, and what of them the check afterwards is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.experiment import load
from plimsoll.run.observer import Silent
from plimsoll.run.signals import Stopped
from plimsoll.run.trial import load_session
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.place import Place
from plimsoll.target import Connection
from plimsoll.target.reached_postgres import ReachedPostgres

EXPERIMENT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "bank"
scale = 1
[measure]
seconds = 1
[[factors]]
path = "workload.clients"
levels = [1]
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the agent was asked, by verb; each of its segments takes a hundred transactions."""
    found: list[tuple[str, dict[str, Any]]] = []

    def call(verb: str, request: dict[str, Any], **_: Any) -> dict[str, Any]:
        found.append((verb, request))
        if verb == "check":
            return {"checks": [{"name": "rows", "ok": True}]}
        first = request["first_index"]
        summary = {"first_index": first, "next_index": first + 100, "identity": {"done": 100}}
        Path(request["out"], "summary.json").write_text(json.dumps(summary))
        return summary

    monkeypatch.setattr(load_session.agent, "call", call)
    return found


def _load(tmp_path: Path, *, stops: bool = False) -> LoadSession:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    settings = load(str(tmp_path / "experiment.toml")).treatments[0].settings
    return LoadSession(
        ReachedPostgres(Connection("/nowhere", 5432, "somebody", "bank")),
        {"name": "bank"},
        settings,
        Place([], None, None),
        tmp_path,
        Silent(),
        lambda: stops,
    )


def test_no_transaction_is_done_twice_and_all_segments_are_checked(
    tmp_path: Path, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    session = _load(tmp_path)
    for name in ("warmup", "measure"):
        session.segment(name, {"seconds": 1})
    assert session.check() == [{"name": "rows", "ok": True}]
    assert [(verb, request.get("first_index")) for verb, request in asked] == [
        ("load", 0),
        ("load", 100),
        ("check", None),
    ]
    assert asked[-1][1]["segments"] == [str(tmp_path / name / "summary.json") for name in ("warmup", "measure")]


def test_a_segment_that_was_stopped_ends_the_trial(tmp_path: Path, asked: list[tuple[str, dict[str, Any]]]) -> None:
    with pytest.raises(Stopped):
        _load(tmp_path, stops=True).segment("warmup", {"seconds": 1})
    assert len(asked) == 1
