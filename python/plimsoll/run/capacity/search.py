"""A capacity run: one server, warmed once, and trial after trial at the rates that the search asks for.

Which trial comes next and what it showed is decided by pure functions (analysis/capacity_search.py, capacity_judge.py);
here they are only run, each as a trial of an ordinary record with its schedule in it. A stop or a crash leaves the
finished trials readable, and the machine is put back as after any run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg

from plimsoll.analysis.capacity import assess
from plimsoll.analysis.capacity_kind import KIND
from plimsoll.analysis.capacity_objective import Objective
from plimsoll.analysis.capacity_reading import SATURATION, Reading, read_trial
from plimsoll.analysis.capacity_search import Step, Tried, limits, next_step
from plimsoll.experiment import Plan, PlannedTrial, Treatment
from plimsoll.record import Trial, writer
from plimsoll.record.run import read_json
from plimsoll.run import agent, datasets, documents, planning
from plimsoll.run.capacity.source import late_limit_ms, settings_for
from plimsoll.run.existing import ExistingServer
from plimsoll.run.private import Private, explained, opened
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.runner import Runner
from plimsoll.run.trial import Report, finish, measure, warm_up

FAILURES_MAX = 2
CLOSING_SECONDS = 5.0
WRITES_BYTES_PER_SECOND = 8 * 2**20
Work = Callable[[Step, Report], None]


@dataclass(frozen=True)
class Asked:
    """What a capacity run was asked for."""

    subject: str
    objective: Objective
    arrivals: str
    clients: int
    seconds: float

    def document(self) -> dict[str, Any]:
        """The `capacity` of run.json."""
        return {
            "subject": self.subject,
            "objective": self.objective.as_json(),
            "arrivals": self.arrivals,
            "clients": self.clients,
            "budget_seconds": self.seconds,
            "late_limit_ms": late_limit_ms(self.objective),
            "checks": None,
        }


@dataclass
class CapacityRunner(Runner):
    """The run of one search; it ends when the search does or its time is up."""

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

    def needs(self) -> planning.Needs:
        """The time is given; what is written in it is estimated."""
        needs = super().needs()
        needs.seconds = needs.build_seconds + self.asked.seconds
        if not self.source.experiment.target.dsn:
            needs.disk_bytes += int(WRITES_BYTES_PER_SECOND * self.asked.seconds)
        return needs

    def _open_record(self) -> dict[str, Any]:
        self._document = super()._open_record()
        self._document |= {"kind": KIND, "capacity": self.asked.document()}
        writer.write_run(self.out, self._document)
        return self._document

    def _trials(self) -> None:
        if self.source.experiment.target.dsn:
            began = time.monotonic()
            with ExistingServer(self, self._base) as server:
                self._search(partial(self._on_existing, server), began)
            self._keep_checks(self._last_checks())
            return
        built = datasets.build_all(self.plan, self.state, self.observer, self.interrupts)
        began = time.monotonic()
        opening = Report(self._planned(1, self._step_zero()))
        try:
            with opened(self, opening, built) as private:
                self._search(partial(self._on_private, private, opening), began)
                if not self._has_failed:  # what a failed trial did to the data is not known
                    self.observer.event("phase", phase="check")
                    self._keep_checks(private.load.check())
        except TrialFailed as error:
            if not self.plan.trials:  # the server never came up: the run has this one trial, which says why
                self.plan.trials.append(opening.trial)
                finish(opening, self.out, "failed", str(error))
            self.observer.event("note", text=f"the search ended early: {error}")

    def _step_zero(self) -> Step:
        step = next_step([], self._limits(), 0.0)
        assert step is not None  # a search begins with a trial, whatever its time
        return step

    def _limits(self) -> Any:
        tail = 1 - max(one.share for one in self.asked.objective.percentiles)
        return limits(self.asked.seconds - CLOSING_SECONDS, tail, self.seed or 0)

    # --- the search -------------------------------------------------------------------------------------------------

    def _search(self, work: Work, began: float) -> None:
        """Trial after trial until the search or its time is over, or trials fail again and again."""
        failures, overhead = 0, 1.5
        while failures < FAILURES_MAX:
            self.tried = assess(self._readings, self.asked.objective, self.tried)
            spent = time.monotonic() - began
            self.observer.event("capacity", tried=self.tried, spent=spent, budget=self.asked.seconds)
            step = next_step(self.tried, self._limits(), spent, overhead)
            if step is None:
                return
            started = time.monotonic()
            trial = self._planned(len(self.plan.trials) + 1, step)
            self.plan.trials.append(trial)
            self._write_plan()
            self._one(trial, partial(work, step))
            found = read_trial(Trial(writer.trial_folder(self.out, trial.number), {}))
            failures = 0 if found is not None else failures + 1
            self._has_failed |= found is None
            if found is not None:
                self._readings.append(found)
                if step.role != SATURATION:  # that one had the warm-up in it
                    overhead = 0.5 * overhead + 0.5 * max(0.5, time.monotonic() - started - step.seconds)

    def _planned(self, number: int, step: Step) -> PlannedTrial:
        settings = settings_for(self._base, self._schedule(step, number), step.seconds, warm=step.role == SATURATION)
        name = "closed loop" if step.rate is None else f"{step.rate:g}/s"
        return PlannedTrial(number, 1, number, Treatment(name, {}, settings), duplicate=False)

    def _schedule(self, step: Step, number: int) -> dict[str, Any]:
        if step.rate is None:
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
            "clients": self.asked.clients,
            "late_limit_ms": late_limit_ms(self.asked.objective),
        }

    # --- one trial --------------------------------------------------------------------------------------------------

    def _on_private(self, private: Private, opening: Report, step: Step, report: Report) -> None:
        first = report.trial.number == 1
        found = opening.found if first else {key: opening.found[key] for key in ("server", "cpus")}
        report.found |= found | {"capacity": self._place(step)}
        folder = writer.trial_folder(self.out, report.trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        load = replace(
            private.load, settings=report.trial.treatment.settings, folder=folder, next_index=self._next_index
        )
        try:
            warm_up(load, report)
            measure(load, report)
        except (agent.AgentFailed, psycopg.Error) as error:
            report.log_tail = private.server.log_tail()
            raise explained(error, private.place, private.server.log_tail(2000)) from error
        finally:
            left = read_json(folder / "measure" / "summary.json") or {}  # a load that failed may have got far
            self._next_index = max(load.next_index, int(left.get("next_index") or 0))
            report.found["group"] = private.place.describe_group()

    def _on_existing(self, server: ExistingServer, step: Step, report: Report) -> None:
        report.found["capacity"] = self._place(step)
        server.run_trial(report)

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
