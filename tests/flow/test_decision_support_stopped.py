"""Decision support that does not go well: stopped, killed and resumed in a test, its server killed in a refresh
function, its queries out of time; within a limit on memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from laboratory import Laboratory

from plimsoll.analysis import analyse
from plimsoll.record import Trial, open_run

NEEDS = ("root", "cgroup memory", "postgresql", "server user")
TEXT = """
format = 1
name = "tiny-decision-support"
title = "Does it end well?"

[environment]
memory = "256 MiB"

[target.settings]
autovacuum = false
jit = false
fsync = false

[workload]
name = "decision_support"
scale_factor = 0.01
tests = ["power", "throughput"]

[probes]
page_cache = false
breakdown = false

[warmup]
until = "none"
prewarm = true

[design]
blocks = 1
"""
PATIENCE_SECONDS = 60
Found = TypeVar("Found")


@pytest.fixture(scope="module", autouse=True)
def _kept(laboratory: Laboratory) -> None:
    """The data set, built once: what is at work later is the server of a trial."""
    _write(laboratory, TEXT)
    answer = json.loads(laboratory.call("run", str(laboratory.experiment), "--json", "--no-page", "--out", "kept"))
    (trial,) = open_run(Path(answer["run"])).trials
    assert trial.status == "finished", trial.data.get("reason")
    assert trial.data["group"]["limit_bytes"] == 256 << 20
    for entry in trial.data["tests"]:
        assert set(entry["group_counters"]) == {"before", "after"}


def _write(laboratory: Laboratory, text: str) -> None:
    laboratory.experiment.write_text(text)


def _until(what: str, process: subprocess.Popen[str], found: Callable[[], Found | None]) -> Found:
    """What `found` gives, once it gives something."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (one := found()):
        assert process.poll() is None, f"it ended before {what}: {process.communicate()}"
        assert time.monotonic() < until, f"no {what}"
        time.sleep(0.005)
    return one


@contextlib.contextmanager
def _locked(laboratory: Laboratory, process: subprocess.Popen[str]) -> Iterator[psycopg.Connection]:
    """Holds orders against every change, so that the trial's next refresh function waits where it writes to them."""
    _until("socket", process, lambda: _socket(laboratory))
    connection = _until("session", process, lambda: _session(laboratory))
    with connection:
        connection.execute("begin; lock table plimsoll.orders in share mode")
        try:
            yield connection
        finally:
            process.kill()


def _socket(laboratory: Laboratory) -> Path | None:
    return next((laboratory.state / "work").glob("*/s/.s.PGSQL.5432"), None)


def _session(laboratory: Laboratory) -> psycopg.Connection | None:
    place = _socket(laboratory)
    if place is None:
        return None
    with contextlib.suppress(psycopg.OperationalError):
        return psycopg.connect(host=str(place.parent), user=place.owner(), dbname="plimsoll", autocommit=True)
    return None


def _waiting(connection: psycopg.Connection) -> bool:
    sql = "select from pg_stat_activity where wait_event_type = 'Lock' and query like 'COPY orders%'"
    connection.execute("select pg_stat_clear_snapshot()")  # the transaction that holds the lock would see no change
    return connection.execute(sql).fetchone() is not None


@pytest.mark.parametrize(
    "what", [pytest.param("front SIGINT", marks=pytest.mark.long), "front SIGKILL", "agent SIGKILL"]
)
def test_a_test_that_is_cut_short_is_done_again(laboratory: Laboratory, what: str) -> None:
    _write(laboratory, TEXT)
    who, sent = what.split()
    out = laboratory.state / what.replace(" ", "-")
    process = laboratory.start("run", str(laboratory.experiment), "--no-page", "--out", str(out))
    with contextlib.suppress(psycopg.Error), _locked(laboratory, process) as connection:
        _until("refresh function", process, lambda: _waiting(connection))
        victim = process.pid if who == "front" else min(laboratory.processes("plimsoll-agent"))
        os.kill(victim, getattr(signal, sent))
        output, error = process.communicate(timeout=120)
    assert process.returncode == {"front SIGINT": 4, "front SIGKILL": -signal.SIGKILL}.get(what, 1), output + error
    laboratory.call("undo")
    assert laboratory.left_behind() == []
    before = _only(out)
    if who == "front":
        assert before.status in ("stopped", "not run", "unknown")
        laboratory.call("run", "--resume", str(out), "--no-page")
        trial = _only(out)
        assert trial.status == "finished", trial.data.get("reason")
        # On a clone of its own, so that the sets are the first ones again.
        assert _sets(trial) == [1, 2, 3]
        assert all(check["ok"] for check in trial.data["checks"])
    else:
        assert before.status == "failed"
        assert "agent" in before.data["reason"]
    assert laboratory.left_behind() == []


def _only(out: Path) -> Trial:
    (trial,) = open_run(out).trials
    return trial


def _sets(trial: Trial) -> list[int]:
    """Of RF1, in the order of the tests."""
    entries = (one for _, segment in trial.tests for one in (segment.queries or {})["queries"])
    return [one["set"] for one in entries if one["name"] == "RF1"]


def test_a_server_killed_in_a_refresh_function_fails_the_trial(laboratory: Laboratory) -> None:
    _write(laboratory, TEXT)
    out = laboratory.state / "server-killed"
    process = laboratory.start("run", str(laboratory.experiment), "--no-page", "--out", str(out))
    with contextlib.suppress(psycopg.Error), _locked(laboratory, process) as connection:
        _until("refresh function", process, lambda: _waiting(connection))
        # The first of its processes; the others end by themselves.
        os.kill(min(laboratory.processes("postgres")), signal.SIGKILL)
        output, error = process.communicate(timeout=120)
    assert process.returncode == 1, output + error
    trial = _only(out)
    assert trial.status == "failed"
    refreshed, *others = trial.tests[0][1].queries["queries"]
    assert (refreshed["name"], refreshed["status"]) == ("RF1", "lost")
    assert {one["status"] for one in others} == {"skipped"}
    found = analyse(open_run(out))
    assert [one["admitted"] for one in found["trials"]] == [False]
    assert laboratory.left_behind() == []


def test_a_query_out_of_time_leaves_its_metric_absent(laboratory: Laboratory) -> None:
    _write(laboratory, TEXT.replace("scale_factor = 0.01", "scale_factor = 0.01\nquery_timeout_seconds = 0.002"))
    answer = json.loads(laboratory.call("run", str(laboratory.experiment), "--json", "--out", "late"))
    trial = _only(Path(answer["run"]))
    assert trial.status == "finished", trial.data.get("reason")
    late = [one for one in (trial.tests[0][1].queries or {})["queries"] if one["status"] == "timed out"]
    assert late
    (one,) = answer["verdict"]["decision_support"]["trials"]
    figure = one["figures"]["power_queries_per_hour"]
    assert figure["value"] is None
    assert late[0]["name"] in figure["why_absent"]
    assert one["figures"]["composite_queries_per_hour"]["value"] is None
    # The refresh functions have no such limit.
    assert {"RF1", "RF2"} <= set(one["times_s"]["power"])
    page = Path(answer["report"]).read_text()
    assert 'class="absent"' in page
