"""A trial that is carried through kills of any part: a segment that was done is never done again.

The fact that constrains it: segments may change the data for good, and what long use leaves in them is the question. So
nothing begins anew after a kill. The data lie in a folder that no undo removes until the trial has its result, and what
was done stands on disk (series.json, beside trial.json) before the next segment begins. A segment that was interrupted
is set aside and done again; what it had used up stays used. Which server it is, and what its segments do, is theirs:
the data have to outlive kills (TrialServer), and the workload has to say that it goes on after them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.environment import Fault
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.run.trial.at_work import AtWork, TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Progress, Segment, perform

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext

Json = dict[str, Any]
FILE = "series.json"
FAILURES_MAX = 3  # one after the other, with nothing done between: then the trial has failed
KILLED = "the run was killed"
STOPPED = "the run was stopped"
FINISHED = "finished"


class Series(Progress):
    """How far the series has come, on disk at every step; the keys of its file are those of schema/record.md.

    `done`: segments in their order; `under_way`: the one that was begun and not ended, null if none; `cut`: those that
    were interrupted before, with why; `found`: what trial.json is to say of what was done; `is_settled`: the data are
    there and what comes next goes on with them; `sittings`: how often the server was started; `result`: null,
    "finished", or why the trial failed.
    """

    def __init__(self, folder: Path, interrupts: Interrupts) -> None:
        self.folder, self._interrupts = folder, interrupts
        empty: Json = {"done": [], "under_way": None, "cut": [], "found": {}, "is_settled": False, "sittings": 0}
        self.state: Json = read_json(folder / FILE) or {**empty, "result": None}
        self.is_cold = False
        self.failures = 0

    @property
    def has_data(self) -> bool:
        """Whether the data are there and are gone on with."""
        return bool(self.state["is_settled"])

    def is_done(self, name: str) -> bool:
        return name in self.state["done"]

    def was_interrupted(self, name: str) -> bool:
        return any(entry["segment"] == name for entry in self.state["cut"])

    @contextmanager
    def step(self, segment: Segment, log: TrialLog) -> Iterator[Json]:
        name = segment.name
        attempt = 1 + sum(entry["segment"] == name for entry in self.state["cut"])
        about = {"attempt": attempt, "sitting": self.state["sittings"], "begins_cold": self.is_cold}
        self.state["under_way"] = {"test": segment.kind, "segment": name, **about, "began_epoch_ns": time.time_ns()}
        self._save()
        yield about
        # A stop that comes now waits: the segment is done.
        with self._interrupts.must_finish():
            writer.sync_tree(self.folder / name)  # the agent's tables, before series.json says that they are there
            self.is_cold, self.failures = False, 0
            self.state["under_way"] = None
            self.state["done"].append(name)
            self.settle(log)

    def begin_session(self, log: TrialLog) -> bool:
        """Before the server is started: whether it goes on with data that are there. `log` gets what is known."""
        self.interrupt(KILLED)
        self.state["sittings"] += 1
        self._save()
        if not self.has_data:
            return False
        log.facts.clear()
        log.facts |= _copy(self.state["found"])
        # What the caches held is gone with the server, or belonged to a group that is gone.
        self.is_cold = True
        return True

    def settle(self, log: TrialLog) -> None:
        """The data are there: from now on the series goes on with them."""
        self.state["is_settled"] = True
        self._keep(log)

    def interrupt(self, why: str, *, always: bool = False) -> None:
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
        """What an interrupted segment has left is no result, and is kept beside."""
        folder = self.folder / under_way["segment"]
        if not folder.is_dir():
            return None
        name = f"{under_way['segment']}.cut-{under_way['attempt']}"
        folder.rename(self.folder / name)
        return name

    def end(self, result: str, log: TrialLog) -> None:
        """The trial has its result: "finished", or why it failed."""
        self.state["result"] = result
        self._keep(log)

    def fail(self, why: str, log: TrialLog) -> None:
        """It cannot go on."""
        self.end(why, log)

    def tell(self, log: TrialLog) -> None:
        """What trial.json says of a series: what was begun and not ended, and how often the server was started."""
        log.facts["cut"] = self.state["cut"]
        log.facts["sittings"] = self.state["sittings"]

    def _keep(self, log: TrialLog) -> None:
        self.state["found"] = _copy(log.facts)
        self._save()

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        writer.write_json(self.folder / FILE, self.state)


def goes_on(folder: Path) -> bool:
    """Whether the trial of this folder is a series that goes on with data that are there."""
    state = read_json(folder / FILE) or {}
    return bool(state.get("is_settled")) and state.get("result") is None


def _copy(facts: Json) -> Json:
    """As they are now, for the log goes on."""
    copied: Json = json.loads(json.dumps(facts))
    return copied


def carry(context: RunContext, log: TrialLog, server: TrialServer, segments: Sequence[Segment]) -> None:
    """One trial as a series, from wherever it stands.

    Raises TrialFailed when it has no result, Stopped when the run is to end.
    """
    series = Series(writer.trial_folder(context.out, log.trial.number), context.interrupts)
    to_its_result(context, log, server, series, lambda: _until_done(context, log, server, segments, series))


def to_its_result(
    context: RunContext, log: TrialLog, server: TrialServer, series: Series, go_on: Callable[[], None]
) -> None:
    """`go_on` does what is left; the data are kept until the series has its result, and go with it.

    Raises what `go_on` raises, and TrialFailed when the result is that the trial failed.
    """
    try:
        if series.state["result"] is None:
            try:
                go_on()
                series.end(FINISHED, log)
            except TrialFailed as error:
                series.fail(str(error), log)
        else:
            log.facts |= series.state["found"]  # killed between its end and its trial.json
    finally:
        series.tell(log)
    # From here on a kill finds the result in series.json, and the data are needed no more.
    with context.interrupts.must_finish():
        server.remove_data()
    if series.state["result"] != FINISHED:
        raise TrialFailed(series.state["result"])


def _until_done(
    context: RunContext, log: TrialLog, server: TrialServer, segments: Sequence[Segment], series: Series
) -> None:
    """Start after start of the server until everything is done. A part that was killed ends no more than its start."""
    while True:
        try:
            is_continued = begin_session(log, server, series, "series")
            with at_work(log, server, series, is_continued=is_continued) as at:
                perform(segments, at, log, series)
            return
        except TrialFailed as error:
            series.failures += 1
            series.interrupt(str(error), always=True)
            if series.failures >= FAILURES_MAX or not series.has_data:
                raise
            context.observer.event("note", text=f"{error}; the series continues where it was")
        except Stopped:
            series.interrupt(STOPPED)
            raise
        except Fault as fault:
            series.interrupt(fault.what)
            raise


def begin_session(log: TrialLog, server: TrialServer, series: Series, what: str) -> bool:
    """Before a start of the server: whether it goes on with data that are there. `what` names the series in a fault."""
    is_continued = series.begin_session(log)
    if not is_continued:
        server.remove_data()  # of a begin that did not come as far as a segment
    elif not server.data.is_dir():
        raise Fault(
            f"{server.data.parent}: the data of this {what} are missing",
            remedy=f"set PLIMSOLL_STATE as it was when the {what} began; if they were removed, start a new run",
        )
    return is_continued


@contextmanager
def at_work(log: TrialLog, server: TrialServer, series: Series, *, is_continued: bool) -> Iterator[AtWork]:
    """From a start of the server to its end."""
    with server.opened(log, goes_on=is_continued) as at:
        if not is_continued and not at.settings.workload.loads_itself():
            series.settle(log)
        yield at
