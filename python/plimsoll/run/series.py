"""A trial whose throughput tests are repeated, carried through kills of any part: what was done is never done again.

The fact that constrains it: refresh functions change the tables for good, and what long use leaves in them is the
question. So nothing begins anew after a kill. The cluster lies in a folder that no undo removes until the trial has its
result, and what was done stands on disk (series.json, beside trial.json) before the next test begins. A test that was
cut is done again with the refresh sets that come next; what it had used up stays used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.environment import Fault
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run import private
from plimsoll.run.course import Course
from plimsoll.run.placing import Homes, homes_of
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.run.trial import Report
from plimsoll.target.dataset import Dataset

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

Json = dict[str, Any]
FILE = "series.json"
FAILURES_MAX = 3  # one after the other, with nothing done between: then the trial has failed
KILLED = "the run was killed"
STOPPED = "the run was stopped"


class Series(Course):
    """How far the series has come, on disk at every step.

    `done`: steps in their order; `under_way`: the step that was begun and not ended, null if none; `cut`: steps that
    were begun and not ended before, with why; `found`: what trial.json is to say of what was done; `is_settled`:
    the tables are there and what comes next goes on with them; `result`: null, "finished", or why the trial failed.
    """

    def __init__(self, folder: Path, interrupts: Interrupts) -> None:
        self.folder, self._interrupts = folder, interrupts
        empty: Json = {"done": [], "under_way": None, "cut": [], "found": {}, "is_settled": False, "sittings": 0}
        self.state: Json = read_json(folder / FILE) or {**empty, "result": None}
        self.is_cold = False
        self.failures = 0

    def is_done(self, segment: str) -> bool:
        return segment in self.state["done"]

    def was_cut(self, segment: str) -> bool:
        return any(one["segment"] == segment for one in self.state["cut"])

    @contextmanager
    def step(self, test: str, segment: str, report: Report) -> Iterator[Json]:
        attempt = 1 + sum(one["segment"] == segment for one in self.state["cut"])
        facts = {"attempt": attempt, "sitting": self.state["sittings"], "begins_cold": self.is_cold}
        self.state["under_way"] = {"test": test, "segment": segment, **facts, "began_epoch_ns": time.time_ns()}
        self._save()
        yield facts
        # A stop that comes now waits: the test is done.
        with self._interrupts.must_finish():
            writer.sync_tree(self.folder / segment)  # the agent's tables, before series.json says that they are there
            self.is_cold, self.failures = False, 0
            self.state["under_way"] = None
            self.state["done"].append(segment)
            self.state["is_settled"] = True
            self._keep(report)

    def begin_sitting(self, report: Report) -> bool:
        """Before the server is started: whether it goes on with tables that are there. `report` gets what is known."""
        self.cut(KILLED)
        self.state["sittings"] += 1
        self._save()
        if not self.state["is_settled"]:
            return False
        report.found.clear()
        report.found |= _copy(self.state["found"])
        # What the caches held is gone with the server, or belonged to a group that is gone.
        self.is_cold = True
        return True

    def settle(self, report: Report) -> None:
        """The tables are there: from now on the series goes on with them."""
        self.state["is_settled"] = True
        self._keep(report)

    def cut(self, why: str, *, always: bool = False) -> None:
        """Notes that what was under way has ended before its end; nothing if nothing was, unless `always`."""
        under_way = self.state["under_way"]
        if under_way is None and not always:
            return
        entry = {"test": None, "segment": None, **(under_way or {}), "why": why, "left": None}
        if under_way is not None:
            entry["left"] = self._set_aside(under_way)
        self.state["cut"].append(entry)
        self.state["under_way"] = None
        self._save()

    def _set_aside(self, under_way: Json) -> str | None:
        """What a cut test has left is no result, and is kept beside."""
        folder = self.folder / under_way["segment"]
        if not folder.is_dir():
            return None
        name = f"{under_way['segment']}.cut-{under_way['attempt']}"
        folder.rename(self.folder / name)
        return name

    def end(self, result: str, report: Report) -> None:
        """The trial has its result: "finished", or why it failed."""
        self.state["result"] = result
        self._keep(report)

    def tell(self, report: Report) -> None:
        """What trial.json says of a series: what was begun and not ended, and how often the server was started."""
        report.found["cut"] = self.state["cut"]
        report.found["sittings"] = self.state["sittings"]

    def _keep(self, report: Report) -> None:
        self.state["found"] = _copy(report.found)
        self._save()

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        writer.write_json(self.folder / FILE, self.state)


def has_tables(folder: Path) -> bool:
    """Whether the trial of this folder is a series that goes on with tables that are there."""
    state = read_json(folder / FILE) or {}
    return bool(state.get("is_settled")) and state.get("result") is None


def _copy(found: Json) -> Json:
    """As it is now, for the report goes on."""
    copied: Json = json.loads(json.dumps(found))
    return copied


def run_series(context: RunContext, report: Report, built: dict[str, Dataset]) -> None:
    """One trial of a series, from wherever it stands.

    Raises TrialFailed when it has no result, Stopped when the run is to end.
    """
    settings = report.trial.treatment.settings
    series = Series(writer.trial_folder(context.out, report.trial.number), context.interrupts)
    homes = homes_of(settings, context.state, context.trial_name(report.trial))
    try:
        if series.state["result"] is None:
            try:
                _carry(context, report, built, series, homes)
                series.end("finished", report)
            except TrialFailed as error:
                series.end(str(error), report)
        else:
            report.found |= series.state["found"]  # killed between its end and its trial.json
    finally:
        series.tell(report)
    # From here on a kill finds the result in series.json, and the tables are needed no more.
    with context.interrupts.must_finish():
        homes.remove()
    if series.state["result"] != "finished":
        raise TrialFailed(series.state["result"])


def _carry(context: RunContext, report: Report, built: dict[str, Dataset], series: Series, homes: Homes) -> None:
    """Sitting after sitting until everything is done. A part that was killed ends its sitting and not the series."""
    while True:
        try:
            _sit(context, report, built, series, homes)
            return
        except TrialFailed as error:
            series.failures += 1
            series.cut(str(error), always=True)
            if series.failures >= FAILURES_MAX or not series.state["is_settled"]:
                raise
            context.observer.event("note", text=f"{error}; the series continues where it was")
        except Stopped:
            series.cut(STOPPED)
            raise
        except Fault as fault:
            series.cut(fault.what)
            raise


def _sit(context: RunContext, report: Report, built: dict[str, Dataset], series: Series, homes: Homes) -> None:
    settings = report.trial.treatment.settings
    workload = settings.workload
    assert isinstance(workload, DecisionSupport)
    goes_on = series.begin_sitting(report)
    if not goes_on:
        homes.remove()  # of a begin that did not come as far as a test
    elif not (homes.data / "data").is_dir():
        raise Fault(
            f"{homes.data}: the tables of this series are missing",
            remedy="set PLIMSOLL_STATE as it was when the series began; if they were removed, start a new run",
        )
    with private.opened(context, report, built, goes_on=goes_on) as opened:
        if not goes_on and not settings.workload.loads_itself():
            series.settle(report)
        private.run_tests(opened, workload, report, series)
        with report.phase("stop", opened.load.observer):
            opened.server.abandon()
