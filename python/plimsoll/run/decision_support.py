"""The tests of a decision-support trial, one after the other on one server: load, power, throughput, plans; after the
load and at the end the check of all tables. (What each refresh function left of its set the agent asks at once.)

The fact that constrains it: refresh functions change the tables for good, so a test that was begun cannot be begun
again in its trial, and what runs after it runs on what it left, as the specification has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.run import agent
from plimsoll.run.course import Course
from plimsoll.run.datasets import LOADERS
from plimsoll.run.requests import data_request, streams_request
from plimsoll.run.signals import Stopped
from plimsoll.run.trial import Load, Report, read_counters
from plimsoll.target import Connection

PLANS = "plans"


def passes(workload: DecisionSupport) -> Iterator[tuple[str, str]]:
    """What runs after the load test, in its order: (test, its folder in the trial)."""
    if "power" in workload.tests:
        yield "power", "power"
    if "throughput" in workload.tests:
        yield from (("throughput", f"throughput-{number}") for number in range(1, workload.repeats + 1))
    if workload.explain:
        yield PLANS, PLANS


def run_tests(
    load: Load,
    workload: DecisionSupport,
    report: Report,
    watched: Callable[[], AbstractContextManager[None]],
    course: Course | None = None,
) -> None:
    """Every test of the trial that `course` says is yet to be done (without one: every one).

    `watched`: what is read around the first of them, which the trial's own figures are of.

    trial.json gets `load_test` (what the agent's `populate` told), `tests` (each with its readings), and as
    `measured_segment` the folder of the first test, whose readings stand for the trial.
    """
    course = course or Course()
    before = None
    for test, name in passes(workload):
        if not course.is_done(name):
            # A test that was cut has used the tables as one that was done.
            if test == "throughput" and (before == "throughput" or course.was_cut(name)):
                with report.phase("vacuum", load.observer):
                    vacuum(load.connection)
            with course.step(test, name, report) as facts:
                entry: dict[str, Any] = {"test": test, "segment": name, **facts}
                report.found.setdefault("tests", []).append(entry)
                with ExitStack() as around:
                    if before is None:
                        report.found["measured_segment"] = name
                        around.enter_context(watched())
                    _counted(load, workload, report, entry)
                if before is None:
                    report.found |= {key: value for key, value in entry.items() if key.endswith("counters")}
        before = test
    with report.phase("check", load.observer):
        report.found["checks"] = load.check()


def load_test(load: Load, report: Report) -> None:
    """Fills the empty database: the load test, timed by the agent by phase and table. Then looks at what is there."""

    def see(_running: agent.Agent, line: dict[str, Any]) -> None:
        load.observer.event("dataset", line=line)

    request = {
        "target": load.connection.as_request(),
        "workload": data_request(load.settings),
        "parallel": LOADERS,
    }
    with report.phase("load", load.observer):
        found = agent.call("populate", request, on_line=see, cpus=load.place.load_cpus)
    report.found["load_test"] = {key: value for key, value in found.items() if key != "event"}
    with report.phase("check", load.observer):
        report.found["load_checks"] = load.check_as_loaded()


def vacuum(connection: Connection) -> None:
    """VACUUM of the whole database, as the study had it between its throughput tests."""
    with connection.open(connection.dbname) as opened:
        opened.execute("vacuum")


def _counted(load: Load, workload: DecisionSupport, report: Report, entry: dict[str, Any]) -> None:
    """One test between two exact readings of every counter, which go into `entry`."""
    read_counters(load, report, "before", entry)
    with report.phase(entry["test"], load.observer):
        _streams(load, workload, entry["test"], entry["segment"])
    read_counters(load, report, "after", entry)


def _seed(workload: DecisionSupport, test: str, name: str) -> int:
    """Of the parameters of a test: each throughput test may have its own."""
    return workload.seed_of(int(name.rpartition("-")[2])) if test == "throughput" else workload.seed


def _streams(load: Load, workload: DecisionSupport, test: str, name: str) -> None:
    out = load.folder / name
    out.mkdir(parents=True, exist_ok=True)
    request = {
        "target": load.connection.as_request(),
        "workload": load.workload | {"seed": _seed(workload, test, name)},
        **streams_request(workload, test),
        "out": str(out),
        "sample": load.sample(),
        "probes": load.place.probes(load.settings),
    }

    def see(running: agent.Agent, line: dict[str, Any]) -> None:
        load.observer.event("sample", line=line)
        if load.is_stopping():
            running.stop()

    told = agent.call("streams", request, on_line=see, cpus=load.place.load_cpus)
    # A test that came to its end before it heard of a stop is done.
    if load.is_stopping() and told.get("ended_by") != "transactions":
        raise Stopped
