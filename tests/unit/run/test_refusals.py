"""What the server refuses whatever the trial: told by its SQLSTATE, with the remedy, and shared by which treatments."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.run import agent, refusals
from plimsoll.run.observer import Silent
from plimsoll.run.servers.postgresql import filling
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place
from plimsoll.run.trial.transactions import warm_up

Json = dict[str, Any]
AMBIGUOUS, NO_TABLE = ("42725", "operator is not unique: unknown + unknown"), ("42P01", "no such table")


def settings(workload: Json | None = None, **target: Any) -> Experiment:
    script = {"name": "script", "files": [{"path": "a.sql", "text": "select :a + :b;"}]}
    document = {"name": "x", "title": "x", "workload": script | (workload or {}), "target": target}
    return Experiment.model_validate(document | {"measure": {"seconds": 1}})


def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: Json, code: int) -> None:
    """An agent that says these lines whatever it is asked."""
    program = tmp_path / "agent"
    told = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "told").write_text(told)
    program.write_text(
        f"#!/bin/sh\nread -r request\ncat {tmp_path / 'told'}\necho 'plimsoll-agent: no' >&2\nexit {code}\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(agent, "PROGRAM", program)


def load(folder: Path, one: Experiment) -> LoadSession:
    server: Any = SimpleNamespace(load_connection=SimpleNamespace(as_request=dict))
    place = Place(devices=[], group=None, load_cpus=None)
    return LoadSession(server, {}, one, place, folder, Silent(), lambda: False)


@pytest.mark.parametrize(
    ("mode", "error", "remedy"),
    [
        ("prepared", AMBIGUOUS, 'workload.mode = "simple"'),
        ("extended", AMBIGUOUS, 'workload.mode = "simple"'),
        ("simple", AMBIGUOUS, "fix the script"),
        ("prepared", NO_TABLE, "workload.setup"),
    ],
)
def test_a_refusal_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, error: tuple[str, str], remedy: str
) -> None:
    """Both where the statement cannot be prepared, and where every transaction fails."""
    sqlstate, message = error
    failing(tmp_path, monkeypatch, {"event": "refused", "sqlstate": sqlstate, "message": "a.sql:1: no"}, code=3)
    with pytest.raises(refusals.Refused) as caught:
        load(tmp_path, settings({"mode": mode})).segment("measure", {"seconds": 1})
    assert remedy in caught.value.remedy
    summary = {"identity": {"done": 0, "failed": 3}, "errors": [{"sqlstate": sqlstate, "message": message}]}
    failing(tmp_path, monkeypatch, {"event": "summary", **summary}, code=0)
    with pytest.raises(refusals.Refused) as caught:
        load(tmp_path, settings({"mode": mode})).segment("measure", {"seconds": 1})
    assert remedy in caught.value.remedy
    assert f"{message} (SQLSTATE {sqlstate})" in str(caught.value)


@pytest.mark.parametrize("sqlstate", ["57P01", "53300", "40001", "08006", None])
def test_what_may_pass_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlstate: str | None) -> None:
    """A server that ends, has no room or sees a conflict."""
    lines = [{"event": "refused", "sqlstate": sqlstate, "message": "no"}] if sqlstate else []
    failing(tmp_path, monkeypatch, *lines, code=3)
    with pytest.raises(agent.AgentFailed):
        load(tmp_path, settings()).segment("measure", {"seconds": 1})
    summary = {"identity": {"done": 0, "failed": 3}, "errors": [{"sqlstate": sqlstate or "XXSCR", "message": ""}]}
    assert refusals.of_segment(summary, settings()) is None


def test_a_script_that_only_fails_is_asked_why_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal ends the warm-up after two lines; what may pass leaves it to begin anew, and it is asked no more."""
    sqlstate, calls = "42P01", []

    def call(_verb: str, request: Json, *, on_line: Any, **_where: object) -> Json:
        stopped: list[int] = []
        for second in range(1, 6):
            line = {"event": "progress", "t_ns": second * 10**9, "done": 0, "failed": 9 * second}
            on_line(SimpleNamespace(stop=lambda told=second: stopped.append(told)), line)
        calls.append((request["stop"], stopped[:1]))
        return {"identity": {"done": 0, "failed": 45}, "errors": [{"sqlstate": sqlstate, "message": "no"}]}

    monkeypatch.setattr(agent, "call", call)
    one = load(tmp_path, settings())
    with pytest.raises(refusals.Refused):
        warm_up(one, TrialLog(SimpleNamespace()))  # type: ignore[arg-type]
    assert calls == [({"seconds": 60.0}, [2])]
    calls.clear()
    sqlstate = "57P01"
    warm_up(one, TrialLog(SimpleNamespace()))  # type: ignore[arg-type]
    assert calls == [({"seconds": 60.0}, [2]), ({"seconds": 60.0}, [])]


def test_a_script_that_fails_now_and_then_is_no_refusal() -> None:
    errors = [{"sqlstate": "42P01", "message": "", "count": 1}]
    assert refusals.of_segment({"identity": {"done": 1, "failed": 1}, "errors": errors}, settings()) is None
    assert refusals.of_segment({"identity": {"done": 0, "failed": 0}, "errors": []}, settings()) is None
    errors.append({"sqlstate": "40001", "message": "", "count": 1})
    assert refusals.of_segment({"identity": {"done": 0, "failed": 2}, "errors": errors}, settings()) is None


def test_treatments_share_what_decides_statements() -> None:
    key = refusals.shared(settings())
    alike: list[Experiment] = [
        settings({"clients": 9, "seed": 3}),
        settings(settings={"shared_buffers": "64 MiB", "work_mem": 4096}),
        settings(transport="tcp"),
    ]
    assert [refusals.shared(one) for one in alike] == [key] * 3
    others = [
        settings({"mode": "prepared"}),
        settings({"files": [{"path": "a.sql", "text": "select 1;"}]}),
        settings({"setup": "s.sql", "setup_text": "create table t ();"}),
        settings(settings={"transform_null_equals": True}),
        settings(settings={"search_path": "other"}),
        settings(version="14"),
    ]
    keys = [refusals.shared(one) for one in others]
    assert key not in keys and len(set(keys)) == len(keys)


def test_an_error_in_the_set_up_names_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_sql(_connection: object, _text: str) -> None:
        raise psycopg.errors.SyntaxError("syntax error at or near (")

    monkeypatch.setattr(filling.bank, "run_sql", run_sql)
    monkeypatch.setattr(psycopg.errors.SyntaxError, "sqlstate", "42601")
    one = settings({"setup": "tables.sql", "setup_text": "create tabel"})
    with pytest.raises(Fault) as caught:
        filling.fill(SimpleNamespace(as_request=dict), one, Silent())  # type: ignore[arg-type]
    assert "workload.setup: tables.sql: syntax error" in caught.value.what
    assert "fix tables.sql" in caught.value.remedy
