"""One round of a soak as a segment: what goes before it, what it measures between exact readings, what it leaves.

The fact that constrains it: the front is at work for days, so what a round tells stands in the round's own folder
(round.json, with the keys of trial.json) and nothing of it stays in memory.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import smart
from plimsoll.environment.processes import boot_id
from plimsoll.record import writer
from plimsoll.record.run import ROUND, ROUND_FILE
from plimsoll.record.run import Segment as RecordedSegment
from plimsoll.run.soak import kernel_log
from plimsoll.run.soak.series import SoakSeries
from plimsoll.run.soak.work import work_of
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.capabilities import Tidies
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.segment import Segment
from plimsoll.run.trial.transactions import TakesTransactions, load_of, warm_up

Json = dict[str, Any]
# After a cut nobody knows which transactions it had begun: as many numbers are passed over as it cannot have used.
LEAP_MIN: Final = 1_000_000
LEAP_ROUNDS: Final = 10
_READINGS: Final = ("counters", "device_counters", "member_counters", "group_counters")


class SoakRound(Segment):
    """Round `number`, from 1."""

    kind = "round"

    def __init__(self, number: int, series: SoakSeries) -> None:
        self.number, self._series = number, series
        self.name = f"{ROUND}{number:04d}"
        self.stands_for_trial = number == 1

    def is_due(self) -> bool:
        """Whether it is done already, or there is time for it."""
        return self._series.is_done(self.name) or self._series.ends(self.number) is None

    def prepare(self, at: AtWork, log: TrialLog, before: Segment | None, *, was_interrupted: bool) -> None:
        """Between two rounds what the experiment says; where the server was started just now, the warm-up."""
        del before
        self._series.prepares()
        at.observer.event("round", number=self.number, of=self._series.expected())
        try:
            if self._series.has_just_started:
                self._series.has_just_started = False
                self._begin_session(at, log)
            if self.number > 1 or was_interrupted:
                self._tidy(at)
        except Exception:  # whatever it is: the server's log tells of a crash only while its folder is there
            self._note_crashes(at)
            raise
        if self._series.log_read(boot_id()) is None and (found := kernel_log.position()) is not None:
            self._series.has_read_log(*found)  # of a new boot, too

    def _begin_session(self, at: AtWork, log: TrialLog) -> None:
        """A server that was started: its caches are filled again, and the load's numbers go on."""
        if not isinstance(at, TakesTransactions):
            return
        is_first = self._series.state["sittings"] <= 1
        if not is_first:
            _go_on(at.load, at.folder)
        if at.settings.warmup.until != "none":
            # Of later warm-ups nothing is said: the first is the trial's own.
            warm_up(load_of(at), log if is_first else TrialLog(log.trial))

    def _tidy(self, at: AtWork) -> None:
        assert at.settings.soak is not None  # else there are no rounds
        wanted = at.settings.soak.between
        if wanted == "nothing":
            return
        assert isinstance(at, Tidies)  # the plan lets no other server have it
        at.observer.event("phase", phase=wanted)
        {"vacuum": at.vacuum, "checkpoint": at.checkpoint}[wanted]()

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        series, name, own = self._series, self.name, TrialLog(log.trial)
        entry: Json = {"round": self.number, **about, "measured_segment": name, "began_epoch_ns": time.time_ns()}
        if isinstance(at, TakesTransactions):
            at.load.log_read = series.log_read(boot_id())
        crashes, began = len(series.state["crashes"]), series.now()
        try:
            read_counters(at.server, at.place, own, "before", entry)
            at.observer.event("phase", phase="measure")
            work_of(at)(at, name, self.number, entry)
            read_counters(at.server, at.place, own, "after", entry)
            entry["sizes"] = at.server.sizes()
            entry["smart"] = smart.read_all([*at.place.devices, *at.place.members])
        finally:
            self._note_crashes(at)
        entry |= {
            "ended_epoch_ns": time.time_ns(),
            "epoch_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(),
            "caveats": own.facts.get("caveats", []),
            "crashes": series.state["crashes"][crashes:],
            "front_bytes": resident_bytes(),
            "thinned": series.thinned(name, series.now() - began),
            "front_most_bytes": most_resident_bytes(),  # with what thinning took, for a moment
        }
        writer.write_json(at.folder / name / ROUND_FILE, entry)
        told: Json = dict(RecordedSegment(at.folder / name, name).probes.get("kernel_log") or {})
        series.has_read_log(str(told.get("boot_id")), told.get("last"))
        if self.stands_for_trial:
            kept = ("measured_segment", "tests", *_READINGS)
            log.facts |= {key: entry[key] for key in kept if key in entry}
        at.observer.event("round_end", number=self.number)
        if series.has_new_crash(crashes):
            series.end_by_crash()

    def _note_crashes(self, at: AtWork) -> None:
        """What the server's own log says, and that it is gone, where it is."""
        new = [self._series.crashed(self.number, *line) for line in at.server.crashes()]
        if not at.server.is_running() and not any(new):
            lines = at.server.log_tail(2000).strip().splitlines()
            last = f"; its log ends with: {lines[-1]}" if lines else ""
            self._series.crashed(self.number, f"the server ended in {self.name}{last}")


def _go_on(load: LoadSession, folder: Path) -> None:
    """Numbers of transactions go on beyond all that were used, and what was committed in a cut is not known."""
    known = [RecordedSegment(path, path.name) for path in (*folder.glob(f"{ROUND}*"), folder / "warmup")]
    used = max((int(one.told.get("next_index") or 0) for one in known), default=0)
    most = max((int(one.identity.get("planned") or 0) for one in known), default=0)
    load.next_index = max(load.next_index, used + max(LEAP_MIN, LEAP_ROUNDS * most))
    load.is_checked = False


def resident_bytes() -> int:
    """The front's own memory."""
    return _of_status("VmRSS:")


def most_resident_bytes() -> int:
    """The most that it ever was."""
    return _of_status("VmHWM:")


def _of_status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0
