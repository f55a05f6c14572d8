"""One of the servers of a block: opened, warmed, frozen; let go for its windows; ended.

The fact that constrains it: nothing of a frozen server can be asked, and no signal ends it. Whoever does something with
one thaws it first, and whatever goes wrong with one is its own: its trial fails and the block goes on.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from plimsoll.environment import Fault, Group
from plimsoll.experiment.settings import Design
from plimsoll.run.refusals import StoodStill, TrialFailed
from plimsoll.run.trial import repeat
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.transactions import load_of, warm_up
from plimsoll.run.windows.load import WindowedLoad
from plimsoll.run.windows.turning import Turning

Json = dict[str, Any]


@dataclass
class Served:
    """A server that is up, with its trial's log. `failure`: why its trial has ended before its end."""

    at: AtWork
    log: TrialLog
    group: Group
    design: Design
    turning: Turning
    failure: TrialFailed | None = None
    load: WindowedLoad | None = None
    rounds: int = 0
    _around: ExitStack = field(default_factory=ExitStack)  # the measured segment
    _thaw_ns: list[int] = field(default_factory=list)
    _freeze_ns: list[int] = field(default_factory=list)
    _frozen_ns: int = 0
    _frozen_since_ns: int = 0

    def warm(self) -> None:
        """Warms it, reads its counters with no client connected, opens its load, and freezes it."""
        session = load_of(self.at)
        # A trial that was still filling would be done again with a longer warm-up; one server of a block cannot be.
        warm_up(session, self.log, repeat.LONGER)
        self._around.enter_context(self.at.watched(self.log))
        read_counters(self.at.server, self.at.place, self.log, "before", self.log.facts)
        self._around.enter_context(self.log.phase("measure", self.at.observer))
        self.load = WindowedLoad(session)
        self._freeze()

    def window(self, round_: int, position: int) -> Json:
        """Lets it go for one window, and freezes it again when what was under way has ended."""
        assert self.load is not None  # it has been warmed
        self._turn()
        self._thaw()
        told = self.load.window(self.design.window_seconds, round_, position)
        self._freeze()
        self.rounds = round_
        return told

    def end(self) -> None:
        """Its load ends, its counters are read, its data are checked, and it goes."""
        assert self.load is not None
        self._tell()
        self._turn()
        self.group.thaw()
        self.load.end()
        read_counters(self.at.server, self.at.place, self.log, "after", self.log.facts)
        self._around.close()
        with self.log.phase("check", self.at.observer):
            self.at.check(self.log)
        self.at.end(self.log)

    def fail(self, failure: TrialFailed) -> None:
        """Its trial ends with this, and everything of it at once, so that it takes nothing from the others."""
        self.failure = failure
        if self.load is not None:
            self._tell()
            if isinstance(failure, StoodStill):
                self.log.facts["windows"]["stood_still_seconds"] = failure.seconds
        self.kill()
        self._around.__exit__(type(failure), failure, failure.__traceback__)

    def kill(self) -> None:
        """Ends its load and everything in its group."""
        if self.load is not None:
            self.load.kill()
        self.group.kill()

    def _turn(self) -> None:
        """The machine took these settings when this server was opened; where it does not now this trial fails alone."""
        try:
            self.turning.turn(self.log.trial)
        except Fault as fault:
            raise TrialFailed(str(fault)) from fault

    def _freeze(self) -> None:
        took = self.group.freeze()
        self._frozen_since_ns = time.monotonic_ns()
        self._freeze_ns.append(took)

    def _thaw(self) -> None:
        self._frozen_ns += time.monotonic_ns() - self._frozen_since_ns
        self._thaw_ns.append(self.group.thaw())

    def _tell(self) -> None:
        """The `windows` of trial.json."""
        self.log.facts["windows"] = {
            "seconds": self.design.window_seconds,
            "lead_in_seconds": self.design.lead_in_seconds,
            "rounds": self.rounds,
            "thaw_ns": _of(self._thaw_ns),
            "freeze_ns": _of(self._freeze_ns),
            "frozen_seconds": round(self._frozen_ns / 1e9, 3),
        }
        if at_turns := self.turning.of(self.log.trial):
            self.log.facts["windows"]["at_turns"] = at_turns


def _of(values: list[int]) -> Json | None:
    return {"median": round(statistics.median(values)), "max": max(values)} if values else None
