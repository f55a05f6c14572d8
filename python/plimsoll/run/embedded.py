"""A decision-support trial on DuckDB: the same tests in the same order, on a server that lives in its driver's process.

The fact that constrains it: there is no server to connect to, so nothing of it can be read from outside but what the
kernel tells. The agent's `watch` takes the series beside the driver; counters of the server are absent.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plimsoll.environment import cpus as cpu_lists
from plimsoll.environment import page_cache
from plimsoll.environment.clone import clone_tree
from plimsoll.experiment import Experiment
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.record import writer
from plimsoll.run import agent, answers, double_caching, embedded_record, planning
from plimsoll.run.datasets import key_for
from plimsoll.run.decision_support import passes
from plimsoll.run.embedded_load import Loading, RefreshSets, make_folder, other_owner
from plimsoll.run.observer import Observer
from plimsoll.run.private import explained, keep_last, residency_watched
from plimsoll.run.requests import data_request, workload_request
from plimsoll.run.signals import Stopped
from plimsoll.run.surroundings import PrivatePlace, arranged
from plimsoll.run.trial import Report, device_counters
from plimsoll.target import ServerFailed
from plimsoll.target.dataset import Dataset
from plimsoll.target.embedded import DriverEnded, DuckServer, Launch

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

Json = dict[str, Any]
LINE_SECONDS = 1.0
CAVEATS = (
    "DuckDB: its tables have no keys and no indexes, so that its load test has less to do than PostgreSQL's",
    "DuckDB runs inside its clients' process: only the kernel's figures of its time are known, no breakdown by query",
)


@dataclass
class Trial:
    """A DuckDB at work: what is asked of it, where it lives, and where its record goes."""

    server: DuckServer
    sets: RefreshSets
    place: PrivatePlace
    settings: Experiment
    workload: DecisionSupport
    folder: Path
    report: Report
    context: RunContext

    @property
    def observer(self) -> Observer:
        """Who is told how it goes."""
        return self.context.observer

    def is_stopping(self) -> bool:
        """Whether the run is to end."""
        return self.context.interrupts.is_stopping()

    def ask(self, sql: str) -> list[list[Any]]:
        """The rows of a query. Raises answers.Refused, or DriverEnded when nobody is there to be asked."""
        try:
            return self.server.ask(sql)
        except DriverEnded:
            raise
        except ServerFailed as error:
            raise answers.Refused(str(error)) from None


def run_embedded(context: RunContext, report: Report, built: dict[str, Dataset]) -> None:
    """One trial. Raises TrialFailed when it has no result, Stopped when the run is to end; puts everything back."""
    with _opened(context, report, built) as trial:
        if trial.settings.workload.loads_itself():
            with report.phase("load", context.observer):
                data = data_request(trial.settings) or {}
                loading = Loading(trial.server, data, context.observer)
                report.found["load_test"] = loading.run(trial.place.load_cpus)
            with report.phase("check", context.observer):
                report.found["load_checks"] = trial.sets.check()
            if (against := trial.workload.answers_against) is not None:
                answers.check(trial, against, trial.ask, report, trial.place.folder, trial.place.owner)
        _run_tests(trial)
        with report.phase("check", context.observer):
            if trial.place.group is not None:
                trial.place.group.lift()  # as everywhere: the check is not what the limit is for
            report.found["checks"] = trial.sets.check()
        with report.phase("stop", context.observer):
            trial.server.abandon()


def launch_in(place: PrivatePlace) -> Launch:
    """Starts a process inside the group where there is one; it gives up its rights itself (target/duckdb_driver.py)."""

    def launch(argv: list[str], **streams: Any) -> subprocess.Popen[bytes]:
        if (inside := place.group or place.cage) is not None:
            return inside.exec_in(argv, **streams)
        return subprocess.Popen(argv, start_new_session=True, cwd="/", **streams)

    return launch


@contextmanager
def _opened(context: RunContext, report: Report, built: dict[str, Dataset]) -> Iterator[Trial]:
    """DuckDB on its clone of a data set, or on an empty database; ended and put back at the end, its log kept."""
    settings = report.trial.treatment.settings
    workload = settings.workload
    assert isinstance(workload, DecisionSupport)  # the model lets no other be run on DuckDB
    with arranged(context, settings, context.trial_name(report.trial), report) as place:
        folder = writer.trial_folder(context.out, report.trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        server = DuckServer(place.data, place.folder, launch_in(place), other_owner(place.owner))
        sets = RefreshSets(server, data_request(settings) or {}, place.owner)
        trial = Trial(server, sets, place, settings, workload, folder, report, context)
        try:
            _start(trial, None if settings.workload.loads_itself() else built[str(key_for(settings))])
            yield trial
        except (ServerFailed, agent.AgentFailed) as error:
            raise explained(error, place, server.log_tail(2000)) from error
        finally:
            keep_last(report, folder, place, server)


def _start(trial: Trial, dataset: Dataset | None) -> None:
    report, observer, place, server = trial.report, trial.context.observer, trial.place, trial.server
    uid, gid = place.owner
    with report.phase("clone", observer):
        if dataset is None:
            make_folder(server.data, place.owner)
        else:
            clone_tree(dataset.data, server.data, uid=uid, gid=gid)
        make_folder(server.temp, place.owner)
        before = page_cache.residency(server.data)
    report.found["residency"] = {"before_trial": _bytes(before)}
    report.found["double_caching"] = double_caching.none("DuckDB does not report what its cache holds")
    for text in (*trial.settings.workload.caveats(), *CAVEATS):
        report.caveat(text)
    if trial.settings.environment.page_cache == "warm":
        with report.phase("warm", observer):
            place.read_inside(server.data)
    with report.phase("start", observer):
        server.start(trial.settings.target.settings, planning.memory_bytes(trial.settings))
        report.found["server"] = server.describe()
    report.found["stationary"] = None


def _bytes(found: page_cache.Residency) -> dict[str, int]:
    return {"resident_bytes": found.resident_bytes, "total_bytes": found.total_bytes}


def _run_tests(trial: Trial) -> None:
    """Every test, each between exact readings of what the kernel tells; the first one's stand for the trial."""
    report, before = trial.report, None
    for test, name in passes(trial.workload):
        if before == "throughput" and test == "throughput":
            with report.phase("vacuum", trial.context.observer):
                trial.server.ask("vacuum", "checkpoint")
        entry: Json = {"test": test, "segment": name}
        report.found.setdefault("tests", []).append(entry)
        if before is None:
            report.found["measured_segment"] = name
            with residency_watched(report, trial.server.data):
                _counted(trial, entry)
            report.found |= {key: value for key, value in entry.items() if key.endswith("counters")}
        else:
            _counted(trial, entry)
        before = test


def _counted(trial: Trial, entry: Json) -> None:
    works = _works(trial, entry["test"], _seed(trial.workload, entry))
    sets = trial.sets.prepare(embedded_record.sets_needed(works))
    _read(trial, "before", entry)
    with trial.report.phase(entry["test"], trial.context.observer):
        _test(trial, entry, works, sets)
    _read(trial, "after", entry)


def _read(trial: Trial, name: str, entry: Json) -> None:
    entry.setdefault("counters", {})[name] = {}
    entry.setdefault("device_counters", {})[name] = device_counters(trial.place.devices)
    if trial.place.group is not None:
        entry.setdefault("group_counters", {})[name] = trial.place.group.stats()


def _seed(workload: DecisionSupport, entry: Json) -> int:
    """Of the parameters of a test: each throughput test may have its own."""
    number = entry["segment"].rpartition("-")[2]
    return workload.seed_of(int(number)) if entry["test"] == "throughput" else workload.seed


def _works(trial: Trial, test: str, seed: int) -> list[Json]:
    """The work of a test, its texts by the agent."""
    numbers = list(range(1, trial.workload.streams_run + 1)) if test == "throughput" else [0]
    told = agent.call("plan", {"workload": workload_request(trial.settings) | {"seed": seed}, "streams": numbers})
    return embedded_record.planned(test, told["streams"], refresh=trial.workload.refresh)


def _test(trial: Trial, entry: Json, works: list[Json], sets: dict[str, list[Json]]) -> None:
    test, out = entry["test"], trial.folder / entry["segment"]
    out.mkdir(parents=True, exist_ok=True)
    course = embedded_record.Course(works)
    with Watch(trial, out) as watch:
        told = _conduct(trial, course, sets, watch)
    surroundings = watch.found | {
        "devices": trial.place.devices,
        "cpus_allowed": cpu_lists.show(cpu_lists.usable()),
        "epoch_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(),
        "pid": trial.server.pid,
        "is_stopped": trial.is_stopping(),
        "seed": _seed(trial.workload, entry),
    }
    np.save(out / "transactions.npy", embedded_record.transactions(course, trial.server.pid))
    writer.write_json(out / "queries.json", embedded_record.queries(trial.workload, test, course))
    writer.write_json(out / "summary.json", embedded_record.summary(trial.workload, test, course, told, surroundings))
    if trial.is_stopping():
        raise Stopped


def _conduct(trial: Trial, course: embedded_record.Course, sets: dict[str, list[Json]], watch: Watch) -> Json:
    """Has the driver perform the test and follows it, a line a second; what it told at the end."""
    request = {"sessions": embedded_record.sessions_of(course.works), "sets": sets}
    trial.server.begin("test", **request, timeout_seconds=trial.workload.query_timeout_seconds)
    due, is_told = time.monotonic() + LINE_SECONDS, False
    while True:
        line = trial.server.hear(max(0.0, due - time.monotonic()))
        if line is not None and line["event"] == "done":
            return line
        if line is not None:
            course.see(line)
        if time.monotonic() >= due:
            due += LINE_SECONDS
            about = {"event": "progress", "t_ns": time.monotonic_ns(), **course.identity()}
            trial.context.observer.event("sample", line={**about, **watch.latest(), "at": course.at()})
        if trial.is_stopping() and not is_told:
            trial.server.tell("stop")
            is_told = True


class Watch:
    """The agent's `watch` beside a test: series of host, devices and group, and what probes can tell of any files."""

    def __init__(self, trial: Trial, out: Path) -> None:
        place, wanted = trial.place, trial.settings.probes
        trees = [{"path": str(trial.server.data), "class": "data"}, {"path": str(trial.server.temp), "class": "temp"}]
        scratch = str(place.folder)
        self._request = {
            "out": str(out),
            "host": True,
            "devices": place.devices,
            "group": place.group.for_agent() if place.group is not None else None,
            "probes": {
                "page_cache": {"trees": trees, "scratch": scratch} if wanted.page_cache else None,
                "buffer_heads": {"path": scratch} if wanted.buffer_heads else None,
                "throttle": {"path": scratch} if wanted.throttle else None,
            },
        }
        self._cpus = place.load_cpus
        self._latest: Json = {}
        self._watching = threading.Event()
        self.found: Json = {}

    def __enter__(self) -> Watch:
        self._agent = agent.Agent("watch", self._request, self._cpus)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        try:
            self._watching.wait()
        except BaseException:  # a stop: nobody else would end it
            self._agent.kill()
            raise
        return self

    def _follow(self) -> None:
        try:
            for line in self._agent.lines():
                if line.get("event") == "progress":
                    self._latest = {key: line[key] for key in ("read_sectors", "swap_bytes") if key in line}
                elif line.get("event") == "watched":
                    self.found = {key: line[key] for key in ("probes", "samples", "sample_late_ns_max")}
                self._watching.set()
        finally:
            self._watching.set()  # where it could not begin, its exit says why

    def latest(self) -> Json:
        """The newest of what progress lines show."""
        return self._latest

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None:
            self._agent.stop()
            self._thread.join()
            self._agent.finish()
            return
        self._agent.kill()
        self._thread.join()
        with suppress(agent.AgentFailed):  # it is we who ended it
            self._agent.finish()
