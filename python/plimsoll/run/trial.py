"""The parts of a trial that every target shares: warm up, measure between exact readings, check, write down.

The server's counters are read with no client connected, because a backend flushes its statistics late.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.analysis.statistics import stationary
from plimsoll.environment import Group
from plimsoll.environment import cpus as cpu_lists
from plimsoll.experiment import Experiment, PlannedTrial
from plimsoll.record import writer
from plimsoll.run import agent, refusals
from plimsoll.run.observer import Observer
from plimsoll.run.requests import load_request, schedule_request
from plimsoll.run.signals import Stopped
from plimsoll.target import Connection

# Lines, one a second, after which a script that did nothing but fail is asked why.
FAILING_SAMPLES = 2


@dataclass
class Report:
    """What trial.json will say; filled as the trial goes on, so that a failure keeps what was known."""

    trial: PlannedTrial
    found: dict[str, Any] = field(default_factory=dict)
    log_tail: str | None = None

    @contextmanager
    def phase(self, name: str, observer: Observer) -> Iterator[None]:
        """Times a phase and tells that it began."""
        entry = {"name": name, "start_ns": time.monotonic_ns(), "end_ns": None}
        self.found.setdefault("phases", []).append(entry)
        observer.event("phase", phase=name)
        try:
            yield
        finally:
            entry["end_ns"] = time.monotonic_ns()

    def caveat(self, text: str) -> None:
        """Something the reader of the result has to know."""
        self.found.setdefault("caveats", []).append(text)


@dataclass
class Place:
    """Where the server under test is: what can be watched there, and where the load may run."""

    devices: list[str]
    group: Group | None
    load_cpus: set[int] | None

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """What the agent is asked to watch in the kernel; none where the server's files are not known."""
        del settings
        return None


@dataclass
class Load:
    """What the agent is asked to do in each segment of a trial."""

    connection: Connection
    workload: dict[str, Any]
    settings: Experiment
    place: Place
    folder: Path
    observer: Observer
    is_stopping: Callable[[], bool]
    next_index: int = 0
    summaries: list[Path] = field(default_factory=list)
    block: int = 1  # of the design: each has arrivals of its own
    is_checked: bool = True  # whether it is known what the data were before the load

    def segment(
        self, name: str, stop: dict[str, Any], on_sample: Callable[[dict[str, Any]], bool] | None = None
    ) -> dict[str, Any]:
        """Runs one segment to its end. `on_sample` sees a line a second and ends the segment by returning True.

        Raises refusals.Refused where the server takes none of the workload's statements.
        """
        out = self.folder / name
        out.mkdir(parents=True, exist_ok=True)
        cpus = len(self.place.load_cpus or cpu_lists.usable())
        request = {
            "target": self.connection.as_request(),
            "workload": self.workload,
            **load_request(self.settings, cpus),
            "first_index": self.next_index,
            "schedule": schedule_request(self.settings, self.block, warmup=name == "warmup"),
            "stop": stop,
            "out": str(out),
            "sample": self.sample(),
            "probes": self.place.probes(self.settings),
        }

        def see(running: agent.Agent, line: dict[str, Any]) -> None:
            self.observer.event("sample", line=line)
            if self.is_stopping() or (on_sample is not None and on_sample(line)):
                running.stop()

        try:
            summary = agent.call("load", request, on_line=see, cpus=self.place.load_cpus)
        except agent.AgentFailed as error:
            if (refused := refusals.by_agent(error, self.settings)) is not None:
                raise refused from error
            raise
        if (out / "summary.json").is_file():
            self.summaries.append(out / "summary.json")
            self.next_index = int(summary.get("next_index", self.next_index))
        if self.is_stopping():
            raise Stopped
        if (refused := refusals.of_segment(summary, self.settings)) is not None:
            raise refused
        return summary

    def sample(self) -> dict[str, Any]:
        """What series the agent is asked for."""
        group = self.place.group.for_agent() if self.place.group is not None else None
        return {"interval_ms": 1000, "devices": self.place.devices, "group": group}

    def check(self) -> list[dict[str, Any]]:
        """Asks the agent whether the data agree with what it did since they were loaded; ends the limits on memory."""
        return self.check_with_ledger()[0]

    def check_as_loaded(self) -> list[dict[str, Any]]:
        """The same of data that the trial itself has loaded, before its other tests: the limits on memory stay."""
        return list(self._ask_check().get("checks", []))

    def check_with_ledger(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """The checks, and what became of the transactions in the durability ledger where one was kept."""
        if not (self.is_checked and self.settings.workload.is_checked):
            return [], None
        if self.place.group is not None:
            # They were the load's. A check sorts and hashes whole tables, and is not what was to be measured.
            self.place.group.lift()
        answer = self._ask_check()
        return list(answer.get("checks", [])), answer.get("ledger")

    def _ask_check(self) -> dict[str, Any]:
        request = {
            "target": self.connection.as_request(),
            "workload": self.workload,
            "segments": [str(path) for path in self.summaries],
        }
        return agent.call("check", request, cpus=self.place.load_cpus)


def warm_up(load: Load, report: Report) -> None:
    """Runs the load until the miss rates are stationary by the stated test, or until the time is up."""
    warmup = load.settings.warmup
    if warmup.until == "none":
        report.found["stationary"] = None
        return
    samples: list[dict[str, Any]] = []
    verdicts: list[stationary.Stationarity] = []
    started = time.monotonic()
    # A script whose transactions all fail is asked why at once; one that fails for a while goes on after that.
    asks_why = load.settings.workload.is_users_own

    def all_fail() -> bool:
        return asks_why and len(samples) >= FAILING_SAMPLES and not samples[-1]["done"] and samples[-1]["failed"] > 0

    def seen(line: dict[str, Any]) -> bool:
        samples.append(line)
        verdicts.append(stationary.judge(samples, seconds_min=warmup.seconds_min))
        return verdicts[-1].reached or all_fail()

    with report.phase("warmup", load.observer):
        load.segment("warmup", {"seconds": warmup.seconds_max}, seen)
        if all_fail():
            asks_why = False
            samples.clear()
            load.segment("warmup", {"seconds": warmup.seconds_max}, seen)
    last = verdicts[-1] if verdicts else stationary.judge(samples, seconds_min=warmup.seconds_min)
    report.found["stationary"] = {
        "reached": last.reached,
        "seconds": round(time.monotonic() - started, 3),
        "test": last.test,
        "detail": last.detail,
    }


def measure(load: Load, report: Report) -> dict[str, Any]:
    """The measured segment between two exact readings of every counter."""
    wanted = load.settings.measure
    stop = {
        "seconds": wanted.seconds,
        "transactions": wanted.transactions_of(load.settings.workload.clients),
    }
    stop = {key: value for key, value in stop.items() if value is not None}
    read_counters(load, report, "before", report.found)
    with report.phase("measure", load.observer):
        summary = load.segment("measure", stop)
    read_counters(load, report, "after", report.found)
    return summary


def read_counters(load: Load, report: Report, name: str, found: dict[str, Any]) -> None:
    """Reads every counter exactly, with no client connected, into `found`; `name`: "before" or "after"."""
    if not load.connection.wait_without_clients():
        report.caveat(f"{name} the measured segment clients were still connected: counters may be late")
    found.setdefault("counters", {})[name] = load.connection.counters()
    found.setdefault("device_counters", {})[name] = device_counters(load.place.devices)
    if load.place.group is not None:
        found.setdefault("group_counters", {})[name] = load.place.group.stats()


def device_counters(names: list[str]) -> dict[str, list[int]]:
    """The columns of /proc/diskstats of the devices watched, in the kernel's order."""
    rows = (line.split() for line in Path("/proc/diskstats").read_text().splitlines())
    return {row[2]: [int(value) for value in row[3:]] for row in rows if row[2] in names}


def finish(report: Report, folder: Path, status: str, reason: str | None = None) -> None:
    """Writes trial.json: what is known, with how it ended."""
    trial = report.trial
    document = {
        "number": trial.number,
        "block": trial.block,
        "treatment": trial.treatment.id,
        "duplicate": trial.duplicate,
        "status": status,
        "reason": reason,
        "server_log_tail": report.log_tail if status == "failed" else None,
        "epoch_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(),
        "caveats": [],
        **report.found,
    }
    writer.write_trial(folder, document)
