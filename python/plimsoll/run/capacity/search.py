"""A capacity run: one server, warmed once, and trial after trial at the rates that the search asks for.

Which trial comes next and what it showed is decided by pure functions (analysis/capacity/search.py, capacity_judge.py);
here they are only run, each as a trial of an ordinary record with its schedule in it. A stop or a crash leaves the
finished trials readable, and the machine is put back as after any run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from plimsoll.analysis.capacity.kind import KIND
from plimsoll.analysis.capacity.objective import Objective
from plimsoll.analysis.capacity.reading import SATURATION, Reading, read_trial
from plimsoll.analysis.capacity.search import Step, Tried, limits, next_step
from plimsoll.analysis.capacity.verdict import assess
from plimsoll.experiment import Plan, PlannedTrial, Treatment
from plimsoll.record import Trial, writer
from plimsoll.record.run import read_json
from plimsoll.run.capacity.source import late_limit_ms, lines_full, lines_max, settings_for
from plimsoll.run.one_trial import run_trial
from plimsoll.run.planning import documents
from plimsoll.run.planning.needs import Needs
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import workload_request
from plimsoll.run.runner import Runner
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.transactions import TakesTransactions, measure, warm_up

FAILURES_MAX = 2
CLOSING_SECONDS = 5.0
WRITES_BYTES_PER_SECOND = 8 * 2**20
Work = Callable[[Step, TrialLog], None]


@dataclass(frozen=True)
class Asked:
    """What a capacity run was asked for."""

    subject: str
    objective: Objective
    arrivals: str
    clients: int
    clients_called: str  # "connections" of a server, "sessions" of files
    seconds: float

    @property
    def is_of_connections(self) -> bool:
        """Whether it is connections that are looked for, and not a rate."""
        return self.objective.conforming is not None

    def document(self) -> dict[str, Any]:
        """The `capacity` of run.json."""
        return {
            "subject": self.subject,
            "objective": self.objective.as_json(),
            "arrivals": self.arrivals,
            "clients": self.clients,
            "clients_called": self.clients_called,
            "budget_seconds": self.seconds,
            "late_limit_ms": late_limit_ms(self.objective),
            "checks": None,
        }


@dataclass
class CapacityRunner(Runner):
    """The run of one search; it ends when the search does or its time is up."""

    repeats_spoilt: ClassVar[bool] = False  # the search itself asks for a rate again
    asked: Asked = field(kw_only=True)
    tried: list[Tried] = field(init=False, default_factory=list)
    _readings: list[Reading] = field(init=False, default_factory=list)
    _document: dict[str, Any] = field(init=False, default_factory=dict)
    _next_index: int = field(init=False, default=0)
    _has_failed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.seed is not None
        self.plan = Plan(self.source.experiment, self.seed, self.source.treatments, [])

    @property
    def _base(self) -> Any:
        return self.source.treatments[0].settings

    def needs(self) -> Needs:
        """The time is given; what is written in it is estimated."""
        needs = super().needs()
        needs.seconds = needs.build_seconds + self.asked.seconds
        if kind_of(self.source.experiment).is_private:
            needs.disk_bytes += int(WRITES_BYTES_PER_SECOND * self.asked.seconds)
        return needs

    def _open_record(self) -> dict[str, Any]:
        self._document = super()._open_record()
        self._document |= {"kind": KIND, "capacity": self.asked.document()}
        writer.write_run(self.out, self._document)
        return self._document

    def _trials(self) -> None:
        began, is_private = time.monotonic(), kind_of(self.source.experiment).is_private
        with self._servers() as server_of:
            if is_private:
                self._on_one_server(server_of, time.monotonic())  # building data is not in the time that was given
            else:
                self._search(partial(self._on_its_own, server_of), began)
        if not is_private:
            self._keep_checks(self._last_checks())

    def _on_one_server(self, server_of: ServerOfTrial, began: float) -> None:
        """A private server is started once, and warmed by the first trial."""
        opening = TrialLog(self._opening())
        try:
            with server_of(opening).opened(opening) as at:
                self._search(partial(self._on_shared, at, opening), began)
                if not self._has_failed:  # what a failed trial did to the data is not known
                    self.observer.event("phase", phase="check")
                    at.check(opening)
                    self._keep_checks(opening.facts["checks"])
        except TrialFailed as error:
            if not self.plan.trials:  # the server never came up: the run has this one trial, which says why
                self.plan.trials.append(opening.trial)
                opening.write(self.out, "failed", str(error))
            self.observer.event("note", text=f"the search ended early: {error}")

    def _opening(self) -> PlannedTrial:
        """The trial whose settings the server is started with: of a search over connections with room for all."""
        trial = self._planned(1, self._step_zero())
        if not self.asked.is_of_connections:
            return trial
        most = settings_for(self._base, {"kind": "closed"}, 1, warm=True, clients=lines_max())
        return replace(trial, treatment=replace(trial.treatment, settings=most))

    def _step_zero(self) -> Step:
        step = next_step([], self._limits(), 0.0)
        assert step is not None  # a search begins with a trial, whatever its time
        return step

    def _limits(self) -> Any:
        # Of connections each trial counts them all, however short it is.
        tail = 1 - max((percentile.share for percentile in self.asked.objective.percentiles), default=0.0)
        most = lines_max() if self.asked.is_of_connections else None
        return limits(self.asked.seconds - CLOSING_SECONDS, tail, self.seed or 0, most)

    # --- the search -------------------------------------------------------------------------------------------------

    def _search(self, work: Work, began: float) -> None:
        """Trial after trial until the search or its time is over, or trials fail again and again."""
        failures, overhead = 0, 1.5
        while failures < FAILURES_MAX:
            lines_of = partial(lines_full, self._base) if self.asked.is_of_connections else None
            self.tried = assess(self._readings, self.asked.objective, self.tried, lines_of)
            spent = time.monotonic() - began
            self.observer.event("capacity", tried=self.tried, spent=spent, budget=self.asked.seconds)
            step = next_step(self.tried, self._limits(), spent, overhead)
            if step is None:
                return
            started = time.monotonic()
            trial = self._planned(len(self.plan.trials) + 1, step)
            self.plan.trials.append(trial)
            self._write_plan()
            self.one(trial, partial(work, step))
            reading = read_trial(Trial(writer.trial_folder(self.out, trial.number), {}))
            failures = 0 if reading is not None else failures + 1
            self._has_failed |= reading is None
            if reading is not None:
                self._readings.append(reading)
                if step.role != SATURATION:  # that one had the warm-up in it
                    overhead = 0.5 * overhead + 0.5 * max(0.5, time.monotonic() - started - step.seconds)

    def _planned(self, number: int, step: Step) -> PlannedTrial:
        clients = self._clients(step) if self.asked.is_of_connections else None
        settings = settings_for(
            self._base,
            self._schedule(step, number),
            step.seconds,
            warm=step.role == SATURATION,
            clients=clients,
            has_lines=step.rate is not None,
        )
        name = "closed loop" if step.rate is None else f"{step.rate:g}/s" if clients is None else str(clients)
        return PlannedTrial(number, 1, number, Treatment(name, {}, settings), duplicate=False)

    def _clients(self, step: Step) -> int:
        """How many connections a trial has: of a search over them its `rate`."""
        of_step = self.asked.is_of_connections and step.rate is not None
        return int(step.rate or 0) if of_step else self.asked.clients

    def _schedule(self, step: Step, number: int) -> dict[str, Any]:
        if step.rate is None or self.asked.is_of_connections:
            return {"kind": "closed"}
        return {
            "kind": self.asked.arrivals,
            "rate": step.rate,
            "seed": ((self.seed or 0) * 1000 + number) % 2**62,  # no two trials have the same arrivals
            "late_limit_ms": late_limit_ms(self.asked.objective),
        }

    def _write_plan(self) -> None:
        """plan.json grows with the search: it holds the trials that were begun."""
        document = documents.plan_document(self.plan)
        for planned in document["trials"]:
            planned["levels"] = {"rate": planned["treatment"]}
        names = dict.fromkeys(planned["treatment"] for planned in document["trials"])
        document["treatments"] = {name: {"label": name, "levels": {"rate": name}} for name in names}
        writer.write_json(self.out / "plan.json", document)

    def _place(self, step: Step) -> dict[str, Any]:
        """The `capacity` of trial.json."""
        return {
            "role": step.role,
            "rate": step.rate,
            "seconds": step.seconds,
            "clients": self._clients(step),
            "late_limit_ms": late_limit_ms(self.asked.objective),
        }

    # --- one trial --------------------------------------------------------------------------------------------------

    def _on_shared(self, at: AtWork, opening: TrialLog, step: Step, log: TrialLog) -> None:
        """A trial on the server that is up; its first one has what was told of the server's start."""
        assert isinstance(at, TakesTransactions)  # a workload without a load line was refused
        first = log.trial.number == 1
        told = opening.facts if first else {key: opening.facts[key] for key in ("server", "cpus")}
        log.facts |= told | {"capacity": self._place(step)}
        folder = writer.trial_folder(self.out, log.trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        settings = log.trial.treatment.settings
        load = replace(
            at.load,
            settings=settings,
            workload=workload_request(settings),
            folder=folder,
            next_index=self._next_index,
        )
        try:
            with at.explaining(log):
                warm_up(load, log)
                measure(load, log)
        finally:
            left = read_json(folder / "measure" / "summary.json") or {}  # a load that failed may have got far
            self._next_index = max(load.next_index, int(left.get("next_index") or 0))

    def _on_its_own(self, server_of: ServerOfTrial, step: Step, log: TrialLog) -> None:
        log.facts["capacity"] = self._place(step)
        run_trial(self, log, server_of(log))

    # --- the end ----------------------------------------------------------------------------------------------------

    def _last_checks(self) -> list[dict[str, Any]]:
        """An existing server's data are checked after every trial; the last check speaks for all before it."""
        for trial in reversed(self.plan.trials):
            stored = read_json(writer.trial_folder(self.out, trial.number) / "trial.json") or {}
            if stored.get("checks") is not None:
                return list(stored["checks"])
        return []

    def _keep_checks(self, checks: list[dict[str, Any]]) -> None:
        self._document["capacity"]["checks"] = checks
        writer.write_run(self.out, self._document)
