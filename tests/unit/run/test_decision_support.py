"""A decision-support trial's flow, with the agent and the server played: what is asked in which order, what is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.capacity.source import source_of
from plimsoll.run.decision_support import tests
from plimsoll.run.observer import Silent
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.segments import segments_of
from plimsoll.run.servers.postgresql.at_work import PostgresAtWork
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place
from plimsoll.run.trial.segment import Progress, perform
from plimsoll.target import Connection
from plimsoll.target.dataset import key_of
from plimsoll.target.reached_postgres import ReachedPostgres

Json = dict[str, Any]


def made(**about: Any) -> Experiment:
    workload = {"name": "decision_support", "scale_factor": 1.0, **about}
    document = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
    return Experiment.model_validate(document)


@dataclass
class Played:
    """What happened, in order."""

    happened: list[str] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()

    def call(verb: str, request: Json, **_options: Any) -> Json:
        found.happened.append(f"{verb} {request.get('test', '')}".strip())
        found.requests.append(request)
        return (
            {"event": "populated", "seconds": 12.5, "phases": []}
            if verb == "populate"
            else {"event": "x", "checks": []}
        )

    def read(_server: object, _place: object, _log: TrialLog, name: str, into: Json) -> None:
        found.happened.append(name)
        into.setdefault("counters", {})[name] = {"xact_commit": len(found.happened)}

    monkeypatch.setattr(agent, "call", call)
    monkeypatch.setattr(tests, "read_counters", read)
    return found


class AtWork(PostgresAtWork):
    """A PostgreSQL of which nothing is asked but what the agent is asked."""

    played: Played

    @contextlib.contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        del log
        self.played.happened.append("caches")
        yield
        self.played.happened.append("caches again")

    def has_loaded(self) -> None:
        self.played.happened.append("loaded")

    def vacuum(self) -> None:
        self.played.happened.append("vacuum")

    def end(self, log: TrialLog) -> None:
        pass


def run(played: Played, folder: Path, stopping: bool = False, **about: Any) -> TrialLog:
    settings = made(**about)
    place: Any = Place(devices=[], group=None, load_cpus=None)
    server: Any = ReachedPostgres(Connection("/x", 1, "u", "d"))
    context: Any = SimpleNamespace(observer=Silent(), interrupts=SimpleNamespace(is_stopping=lambda: stopping))
    load = LoadSession(server, workload_request(settings), settings, place, folder, Silent(), lambda: stopping)
    at = AtWork(server, place, settings, folder, context, load, caches=SimpleNamespace())
    at.played, log = played, TrialLog(SimpleNamespace())
    perform(segments_of(settings), at, log, Progress())
    return log


def test_the_tests_in_their_order(played: Played, tmp_path: Path) -> None:
    log = run(played, tmp_path, tests=["load", "power", "throughput"], repeats=2, explain=True)
    assert played.happened == [
        *("populate", "check", "loaded", "caches", "before", "streams power", "after", "caches again"),
        *("before", "streams throughput", "after", "vacuum", "before", "streams throughput", "after"),
        *("before", "streams power", "after", "check"),
    ]
    names = ["power", "throughput-1", "throughput-2", "plans"]
    assert [(tmp_path / name).is_dir() for name in names] == [True] * 4
    assert [Path(request["out"]).name for request in played.requests if "out" in request] == names
    assert [one["segment"] for one in log.facts["tests"]] == names
    assert log.facts["measured_segment"] == "power"
    assert log.facts["counters"] == log.facts["tests"][0]["counters"]
    assert log.facts["load_test"] == {"seconds": 12.5, "phases": []}
    phases = [one["name"] for one in log.facts["phases"]]
    assert phases == ["load", "check", "power", "throughput", "vacuum", "throughput", "plans", "check"]


def test_the_first_test_stands_for_the_trial(played: Played, tmp_path: Path) -> None:
    log = run(played, tmp_path, tests=["throughput"])
    assert log.facts["measured_segment"] == "throughput-1"
    assert "vacuum" not in played.happened


def test_a_load_test_alone_measures_no_segment(played: Played, tmp_path: Path) -> None:
    log = run(played, tmp_path, tests=["load"])
    assert played.happened == ["populate", "check", "loaded", "check"]
    assert log.facts["load_checks"] == log.facts["checks"] == []
    assert "measured_segment" not in log.facts


def test_a_stop_ends_the_trial_after_the_test_under_way(played: Played, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        run(played, tmp_path, stopping=True, tests=["power", "throughput"])
    assert "streams throughput" not in played.happened


def test_each_repeat_may_ask_anew(played: Played, tmp_path: Path) -> None:
    run(played, tmp_path, tests=["power", "throughput"], repeats=3, seed=7, repeat_parameters="new")
    assert [request["workload"]["seed"] for request in played.requests if "out" in request] == [7, 7, 10, 13]


def test_what_streams_are_asked_for() -> None:
    workload = made(streams=4, query_timeout_seconds=90).workload
    common = {"timeout_seconds": 90.0}
    assert workload.streams_request("power") == common | {
        "test": "power", "streams": 1, "refresh": True, "explain": False,
    }  # fmt: skip
    assert workload.streams_request("throughput") == common | {
        "test": "throughput", "streams": 4, "refresh": True, "explain": False,
    }  # fmt: skip
    assert workload.streams_request("plans") == common | {
        "test": "power", "streams": 1, "refresh": False, "explain": True,
    }  # fmt: skip


def test_one_data_set_serves_every_seed() -> None:
    assert workload_request(made(seed=7, ranges="qgen 2.14")) == {
        "name": "decision_support", "scale_factor": 1.0, "seed": 7, "ranges": "qgen 2.14",
    }  # fmt: skip
    data = data_request(made(seed=7))
    assert data == data_request(made(tests=["power"], streams=3))
    description = {"tables": {}, "ddl": []}
    assert key_of(data, description, None, "15").startswith("decision_support-sf1-pg15-")
    assert key_of(data, description, None, "15") != key_of(
        data_request(made(scale_factor=2.0)), description, None, "15"
    )


def test_a_load_test_needs_no_data_set() -> None:
    assert made(tests=["load"]).workload.loads_itself()
    assert not made().workload.loads_itself()


def test_what_the_reader_has_to_know() -> None:
    assert made().workload.caveats() == []
    said = " ".join(made(scale_factor=0.1, streams=1, refresh=False).workload.caveats())
    for words in ("fewer than the 2", "without refresh functions", "below 1"):
        assert words in said


def test_no_load_line_of_streams() -> None:
    from plimsoll.experiment import ExperimentError

    with pytest.raises(ExperimentError, match="streams of queries"):
        sets = ['environment.memory="512 MiB"', 'target.settings.work_mem="16 MiB"']
        sets.append("target.settings.max_parallel_workers_per_gather=0")
        source_of("decision-support", quick=True, sets=sets, clients=None, dsn=None)
