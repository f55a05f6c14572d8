"""The load in windows against an agent that is a script: what it is told, and that no wait for it is without end."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import Refused, StoodStill, TrialFailed
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.place import Place
from plimsoll.run.windows import load as of_windows
from plimsoll.run.windows.load import WindowedLoad

# Every line that it was told goes into a file. Its part of the talk is what each test gives it.
AGENT = """
import json, os, sys, time
heard = open({heard!r}, "w")
def say(**line):
    print(json.dumps(line), flush=True)
def hear():
    line = sys.stdin.readline()
    heard.write(line)
    heard.flush()
    return line
request = json.loads(hear())
{part}
"""
WELL = """
say(event="ready", t_ns=1)
done = 0
while (line := hear()) != "stop\\n":
    asked = json.loads(line.removeprefix("window "))
    say(event="progress", t_ns=2, done=done)
    done += 10
    say(event="window", **asked, opened_ns=1, closed_ns=2, drained_ns=3, done=done)
with open(request["out"] + "/summary.json", "w") as file:
    file.write("{}")
say(event="summary", next_index=request["first_index"] + done, identity={"done": done})
"""
HANGS = """
say(event="ready", t_ns=1)
hear()
while True:
    say(event="progress", t_ns=1, done=0)
    time.sleep(0.05)
"""
SILENT = """
say(event="ready", t_ns=1)
hear()
time.sleep(60)
"""
LOST = """
say(event="ready", t_ns=1)
hear()
sys.stderr.write("plimsoll-agent: every connection was lost")
sys.exit(3)
"""
GONE = """
say(event="ready", t_ns=1)
sys.stderr.write("plimsoll-agent: every connection was lost")
sys.exit(3)
"""
REFUSED = """
say(event="refused", sqlstate="42P01", message="no such table")
sys.stderr.write("plimsoll-agent: no such table")
sys.exit(3)
"""
NEVER_READY = "time.sleep(60)"
NEVER_ENDS = """
say(event="ready", t_ns=1)
hear()
time.sleep(60)
"""
Make = Callable[..., LoadSession]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    def make(part: str, *, stops: bool = False) -> LoadSession:
        script = tmp_path / "agent.py"
        script.write_text(AGENT.format(heard=str(tmp_path / "heard"), part=part))
        # A line "#!" takes no interpreter whose path has a blank.
        program = tmp_path / "agent"
        program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))}\n")
        program.chmod(0o755)
        monkeypatch.setattr(agent, "PROGRAM", program)
        document = {"name": "x", "title": "x", "workload": {"name": "bank", "scale": 1}, "measure": {"seconds": 1}}
        server: Any = SimpleNamespace(load_connection=SimpleNamespace(as_request=lambda: {"kind": "postgresql"}))
        settings = Experiment.model_validate(document)
        place = Place([], None, None, host=HERE)
        return LoadSession(server, {}, settings, place, tmp_path / "trial", Silent(), lambda: stops, next_index=100)

    return make


def heard(tmp_path: Path) -> list[str]:
    return (tmp_path / "heard").read_text().splitlines()


def test_windows_are_asked_for_one_by_one_and_the_segment_is_one(session: Make, tmp_path: Path) -> None:
    load = session(WELL)
    windowed = WindowedLoad(load)
    lines = [windowed.window(0.25, round_, 2) for round_ in (1, 2, 3)]
    assert [(line["round"], line["position"], line["done"]) for line in lines] == [(1, 2, 10), (2, 2, 20), (3, 2, 30)]
    assert windowed.end()["identity"] == {"done": 30}
    assert load.next_index == 130 and load.summaries == [tmp_path / "trial/measure/summary.json"]
    request, *told = heard(tmp_path)
    assert told == [f'window {{"ms": 250, "round": {n}, "position": 2}}' for n in (1, 2, 3)] + ["stop"]
    asked = json.loads(request)
    assert asked["windows"] is True and asked["stop"] == {} and asked["first_index"] == 100


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (HANGS, "round 4: transactions of its window had not ended after 0.3 s"),
        (SILENT, "round 4: transactions of its window had not ended after 0.3 s"),
    ],
)
def test_a_window_that_does_not_drain_ends_the_trial(
    session: Make, monkeypatch: pytest.MonkeyPatch, part: str, said: str
) -> None:
    """While the agent tells of progress it is the server that stands still; else nothing is known of that."""
    monkeypatch.setattr(of_windows, "DRAIN_SECONDS_MAX", 0.2)
    windowed = WindowedLoad(session(part))
    started = time.monotonic()
    with pytest.raises(TrialFailed, match=said) as found:
        windowed.window(0.1, 4, 1)
    assert isinstance(found.value, StoodStill) == (part == HANGS)
    assert time.monotonic() - started < 5
    assert windowed._agent._process.returncode is not None, "nothing is left of it"


def test_an_agent_that_ends_says_why(session: Make) -> None:
    windowed = WindowedLoad(session(LOST))
    with pytest.raises(agent.AgentFailed, match="every connection was lost"):
        windowed.window(0.1, 1, 1)


def test_an_agent_that_has_ended_before_it_is_asked_says_why(session: Make) -> None:
    windowed = WindowedLoad(session(GONE))
    while (process := windowed._agent._process).poll() is None:
        time.sleep(0.01)
    with pytest.raises(agent.AgentFailed, match="every connection was lost"):
        windowed.window(0.1, 1, 1)
    assert process.stdin is not None and process.stdin.closed


def test_what_the_server_refuses_is_told_as_that(session: Make) -> None:
    with pytest.raises(Refused, match="no such table"):
        WindowedLoad(session(REFUSED))


@pytest.mark.parametrize(("limit", "part"), [("READY_SECONDS_MAX", NEVER_READY), ("END_SECONDS_MAX", NEVER_ENDS)])
def test_it_is_not_waited_for_without_end(
    session: Make, monkeypatch: pytest.MonkeyPatch, limit: str, part: str
) -> None:
    monkeypatch.setattr(of_windows, limit, 0.3)
    with pytest.raises(TrialFailed, match=r"after 0\.3 s|had not ended its segment"):
        WindowedLoad(session(part)).end()


def test_a_run_that_is_to_end_ends_after_the_segment(session: Make) -> None:
    windowed = WindowedLoad(session(WELL, stops=True))
    with pytest.raises(Stopped):
        windowed.end()
