"""The process that reads pg_stat_activity: whatever ends it, the watch is told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from plimsoll.run.observer import Silent
from plimsoll.run.watch.watch import _CLOSED, Watch
from plimsoll.target import Connection, activity_sampler
from plimsoll.target.activity_sampler import ActivitySampler, Way

WAY = Way([Connection("/nowhere", 5432, "somebody", "postgres")])


def told(monkeypatch: pytest.MonkeyPatch, session: Any) -> list[dict[str, Any]]:
    monkeypatch.setattr(activity_sampler, "open_session", session)
    sampler = ActivitySampler(WAY)
    try:
        return list(sampler.lines())
    finally:
        sampler.finish()


def test_a_fault_of_ours_is_told_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may hold what a query holds."""

    def fails(_: Connection) -> Any:
        raise TypeError("where token = 'hunter2'")

    (line,) = told(monkeypatch, fails)
    assert line["event"] == "lost" and "hunter2" not in line["why"]
    assert "failed with TypeError in activity_sampler.py, line " in line["why"]


def test_what_the_server_says_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Connection) -> Any:
        raise psycopg.OperationalError("connection failed: no such database")

    assert told(monkeypatch, refused) == [{"event": "no session", "why": "as user somebody: no such database"}]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ({"pid": 7}, "ended without a word"),
        ({"pid": 7, "lost": "the server was shut down"}, "the server was shut down"),
        ({"why": "no password"}, None),
    ],
)
def test_one_that_was_killed_is_missed(tmp_path: Path, before: dict[str, Any], said: str | None) -> None:
    watch = Watch(SimpleNamespace(), tmp_path, Silent(), lambda: False, [])  # type: ignore[arg-type]
    watch.session |= before
    watch._of_looks(_CLOSED)
    assert said in watch.session["lost"] if said else "lost" not in watch.session


def test_the_end_of_a_watch_is_no_loss(tmp_path: Path) -> None:
    watch = Watch(SimpleNamespace(), tmp_path, Silent(), lambda: False, [], _told=True)  # type: ignore[arg-type]
    watch._of_looks(_CLOSED)
    assert watch.session == {}


def test_its_pipe_closes_when_it_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_sampler, "open_session", lambda _: time.sleep(60))
    sampler = ActivitySampler(WAY)
    os.kill(sampler.pid, signal.SIGKILL)
    assert list(sampler.lines()) == []
    sampler.finish()
