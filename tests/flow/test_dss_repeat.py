"""A series of throughput tests through kills of every part, between tests and inside them: one unbroken series, nothing
that was done is lost or done again, no refresh set is used twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, make_reachable

from plimsoll.analysis import analyse
from plimsoll.record import open_run

Json = dict[str, Any]
SECONDS_MAX = 300
TEXT = """
format = 1
name = "tiny-repeat"
title = "Does it last?"

[target.settings]
autovacuum = false
jit = false
max_parallel_workers_per_gather = 0

[workload]
name = "decision_support"
scale_factor = 0.01
tests = ["load", "throughput"]
query_timeout_seconds = 120
repeats = 5

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

[design]
blocks = 1
"""


class Repeat:
    """The run under test, as its folder tells it."""

    def __init__(self, laboratory: Laboratory) -> None:
        self.laboratory = laboratory
        self.out = laboratory.state / "repeat"
        self.trial = self.out / "trials" / "0001"
        path = laboratory.state / "repeat.toml"
        path.write_text(TEXT)
        self.first = ("run", str(path), "--no-page", "--out", str(self.out))
        self.again = ("run", "--resume", str(self.out), "--no-page")

    def state(self) -> Json:
        """series.json, which is there whole or not at all."""
        try:
            found: Json = json.loads((self.trial / "series.json").read_text())
        except FileNotFoundError:
            return {"done": [], "under_way": None}
        return found

    def inside(self, segment: str) -> Callable[[], bool]:
        """Whether the queries of a test are under way."""
        return lambda: (
            self.under_way(segment)()
            and bool(self.laboratory.processes("plimsoll-agent"))
            and (self.trial / segment / "transactions.npy").exists()
        )

    def under_way(self, segment: str) -> Callable[[], bool]:
        """Whether a step was begun and not ended."""
        return lambda: (self.state()["under_way"] or {}).get("segment") == segment

    def between(self, segment: str) -> Callable[[], bool]:
        """Whether a test is done and the next not begun."""

        def look() -> bool:
            state = self.state()
            return segment in state["done"] and state["under_way"] is None

        return look

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return self.laboratory.start(*argv)

    def wait(self, process: subprocess.Popen[str], for_what: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS_MAX
        while not for_what():
            if process.poll() is not None:
                raise AssertionError("the run ended before: " + "\n".join(process.communicate()))
            assert time.monotonic() < until, self.state()
            time.sleep(0.002)

    def kill_front(self, process: subprocess.Popen[str]) -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)

    def kept(self) -> list[Path]:
        """Clusters that outlive their run's process."""
        return list((self.laboratory.state / "datasets").glob("plimsoll-*"))

    def bytes_of(self, segment: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.trial / segment).iterdir())}


def _works(folder: Path, name: str) -> list[Json]:
    """The refresh functions of a test in their order; of a cut one what the agent could still write."""
    try:
        document = json.loads((folder / "queries.json").read_text())
    except (FileNotFoundError, ValueError):
        return []
    return [one for one in document["queries"] if one["name"] == name and one["began_ns"] is not None]


def test_five_tests_and_kills_of_every_part(laboratory: Laboratory) -> None:
    repeat = Repeat(laboratory)

    # While the tables are filled the front is killed: nothing is settled yet.
    process = repeat.start(*repeat.first)
    repeat.wait(process, repeat.under_way("load"))
    repeat.kill_front(process)
    assert repeat.state()["done"] == [] and not repeat.state()["is_settled"]

    # A stop inside the first test ends the run as a stop does.
    process = repeat.start(*repeat.again)
    repeat.wait(process, repeat.inside("throughput-1"))
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 4, output + error
    assert laboratory.left_behind() == []
    assert open_run(repeat.out).trials[0].status == "stopped"

    # Inside the second test the front is killed, and the machine is put back by hand: the tables stay.
    process = repeat.start(*repeat.again)
    repeat.wait(process, repeat.inside("throughput-2"))
    repeat.kill_front(process)
    assert repeat.state()["done"] == ["load", "throughput-1"]
    laboratory.call("undo")
    assert laboratory.left_behind() == []
    assert len(repeat.kept()) == 1
    first = repeat.bytes_of("throughput-1")

    # Between the third and the fourth once more; this time nobody calls undo.
    process = repeat.start(*repeat.again)
    repeat.wait(process, repeat.between("throughput-3"))
    repeat.kill_front(process)
    assert repeat.state()["done"] == ["load", "throughput-1", "throughput-2", "throughput-3"]

    # The agent inside the fourth and the server inside the fifth: the run goes on by itself.
    process = repeat.start(*repeat.again, "--json")
    repeat.wait(process, repeat.inside("throughput-4"))
    os.kill(laboratory.processes("plimsoll-agent")[0], signal.SIGKILL)
    repeat.wait(process, repeat.inside("throughput-5"))
    os.kill(min(laboratory.processes("postgres")), signal.SIGKILL)
    output, error = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, output + error
    assert json.loads(output)["status"] == "finished"
    assert laboratory.left_behind() == []
    assert repeat.kept() == []
    assert repeat.bytes_of("throughput-1") == first

    run = open_run(repeat.out)
    (trial,) = run.trials
    assert trial.status == "finished", trial.data.get("reason")
    assert trial.data["checks"] and all(check["ok"] for check in trial.data["checks"]), trial.data["checks"]
    names = [f"throughput-{number}" for number in range(1, 6)]
    assert [(one["segment"], one["attempt"]) for one in trial.data["tests"]] == list(
        zip(names, (2, 2, 1, 2, 2), strict=True)
    )
    assert [one["begins_cold"] for one in trial.data["tests"]] == [True, True, False, True, True]
    cut = ["load", *(names[place] for place in (0, 1, 3, 4))]
    assert [one["segment"] for one in trial.data["cut"]] == cut
    assert trial.data["sittings"] == 7

    for function in ("RF1", "RF2"):
        done = [[one["set"] for one in _works(repeat.trial / name, function)] for name in names]
        assert [len(sets) for sets in done] == [2] * 5
        taken = [one for sets in done for one in sets]
        used_up = [
            one["set"] for name in trial.data["cut"] if name["left"] for one in _done(repeat.trial, name, function)
        ]
        assert taken == sorted(set(taken)), function
        assert not set(taken) & set(used_up), function


def _done(trial: Path, cut: Json, function: str) -> list[Json]:
    return [one for one in _works(trial / cut["left"], function) if one["status"] == "done"]


@pytest.mark.follows("test_five_tests_and_kills_of_every_part")
def test_the_series_is_judged_as_one(laboratory: Laboratory) -> None:
    run = laboratory.state / "repeat"
    verdict = analyse(open_run(run))
    assert [trial["admitted"] for trial in verdict["trials"]] == [True], verdict["exclusions"]
    (one,) = verdict["decision_support"]["treatments"].values()
    assert [row["value"]["value"] > 0 for row in one["drift"]] == [True] * 5
    assert one["trend"]["tests"] == 5 and one["trend"]["over_all"] is not None
    assert "repeated" in " ".join(one["drift"][1]["remarks"])
    assert one["drift"][2]["remarks"] == []
    laboratory.call("report", str(run))
    page = (run / "report" / "index.html").read_text()
    assert "Throughput from test to test" in page and "repeated after 1 interrupted attempt" in page


def test_data_log_and_temporary_files_at_places_of_their_own(laboratory: Laboratory) -> None:
    places = {key: laboratory.state / f"place-{key}" for key in ("data", "wal", "temp")}
    for place in places.values():
        make_reachable(place)
    files = "\n".join(f'{key} = "{place}"' for key, place in places.items())
    text = TEXT.replace("repeats = 5", "").replace('["load", "throughput"]', '["load", "power"]')
    text = text.replace("[target.settings]", f'[target.files]\n{files}\n\n[target.settings]\nwork_mem = "64kB"')
    path = laboratory.state / "places.toml"
    path.write_text(text)
    process = laboratory.start("run", str(path), "--no-page", "--out", "places", "--json")
    seen: set[str] = set()
    until = time.monotonic() + SECONDS_MAX
    while process.poll() is None and time.monotonic() < until:
        for key, pattern in (("data", "*/data/base/*/PG_VERSION"), ("wal", "*/pg_wal/0000*")):
            if any(places[key].glob(f"plimsoll-{pattern}")):
                seen.add(key)
        if any(places["temp"].glob("plimsoll-*/PG_*/pgsql_tmp/pgsql_tmp*")):
            seen.add("temp")
        time.sleep(0.005)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 0, output + error
    assert seen == {"data", "wal", "temp"}
    assert [list(place.iterdir()) for place in places.values()] == [[], [], []]
    (trial,) = open_run(laboratory.state / "places").trials
    assert trial.status == "finished", trial.data.get("reason")
    assert trial.data["server"]["settings"]["temp_tablespaces"] == "plimsoll_temp"
    assert laboratory.left_behind() == []


def test_a_place_that_is_not_there_starts_nothing(laboratory: Laboratory) -> None:
    path = laboratory.state / "nowhere.toml"
    path.write_text(TEXT.replace("[target.settings]", '[target.files]\nwal = "/nowhere/at/all"\n\n[target.settings]'))
    process = laboratory.start("run", str(path), "--out", "nowhere")
    output, error = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "target.files.wal = /nowhere/at/all: no such folder" in output + error
    assert not (laboratory.state / "nowhere").exists()
