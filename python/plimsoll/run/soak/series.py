"""How far a soak has come, on disk at every step: a series whose rounds are as many as its time is enough for.

The fact that constrains it: the soak ends by the time that its rounds have taken and not by a date, so that what was
lost to kills and reboots is made up for. That time stands in series.json with what else outlives a kill.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from plimsoll.experiment import Experiment
from plimsoll.record import writer
from plimsoll.record.run import ROUND, ROUND_FILE, read_json
from plimsoll.record.thinning import STEPS_S, Thinned, bytes_of, thin
from plimsoll.run.signals import Interrupts
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Segment
from plimsoll.run.trial.series import FINISHED, Series

Json = dict[str, Any]
Clock = Callable[[], float]
ROUNDS_MAX: Final = 2000
# Of the record's bound, what rounds may take; the rest is for the copies in Parquet, the verdict and the page.
ROUNDS_SHARE: Final = 0.7
CUT_KEPT: Final = 20  # folders of interrupted rounds; older ones go
TIME, ROUNDS, CRASH, FAILURES = "time", "rounds", "crash", "failures"  # what ended it
_KEYS: Final[Json] = {"spent_s": 0.0, "crashes": [], "full": [], "ended_by": None, "why": None, "log_read": None}


class SoakSeries(Series):
    """Beside the keys of a series: `spent_s`, of rounds that were done and what was tidied up before them; `crashes`
    of the server; `full`: when the record's disk was, and what was thinned; `ended_by` and `why`; `log_read`: of which
    boot's kernel log which record was read last.
    """

    def __init__(
        self, folder: Path, interrupts: Interrupts, settings: Experiment, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(folder, interrupts)
        self.state = {**_copied(_KEYS), **self.state}
        assert settings.soak is not None  # else it is no soak
        self._asked, self._settings, self._clock = settings.soak, settings, clock
        self._prepared_at: float | None = None
        self.has_just_started = False  # the server, and no round has begun since

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def spent_s(self) -> float:
        return float(self.state["spent_s"])

    def ends(self, number: int) -> str | None:
        """What ends it before round `number`; None where that is to be performed.

        A round of a stated length is begun where at least half of it is within the time.
        """
        if self.state["ended_by"]:
            return str(self.state["ended_by"])
        enough_for = self._settings.workload.rounds_max()
        if number > min(ROUNDS_MAX, enough_for or ROUNDS_MAX):
            return ROUNDS
        return TIME if self.spent_s + (self._settings.measure.seconds or 0.0) / 2 > self._asked.seconds else None

    def expected(self) -> int:
        """How many rounds there will be, about: by those that are done, else by their stated length."""
        done = self.rounds_done
        mean = self.spent_s / done if done and self.spent_s else self._settings.measure.seconds
        if not mean:
            return done + 1
        return max(done + 1, min(ROUNDS_MAX, round(self._asked.seconds / mean)))

    @contextmanager
    def step(self, segment: Segment, log: TrialLog) -> Iterator[Json]:
        with super().step(segment, log) as about:
            yield about
            if self._prepared_at is not None:  # else it is the load of the tables, which is before the soak
                self.state["spent_s"] = self.spent_s + self._clock() - self._prepared_at

    def now(self) -> float:
        """Seconds on its clock."""
        return self._clock()

    def prepares(self) -> None:
        """What goes before a round begins: it is part of its time."""
        self._prepared_at = self._clock()

    # --- what a round leaves ----------------------------------------------------------------------------------------

    @property
    def rounds_done(self) -> int:
        return sum(name.startswith(ROUND) for name in self.state["done"])

    @property
    def is_over(self) -> bool:
        """Whether all that is left is to say so."""
        return self.ends(self.rounds_done + 1) is not None

    def end_by(self, what: str | None) -> None:
        """What ended it, for good."""
        self.state["ended_by"] = what

    def end_by_crash(self) -> None:
        """The server has crashed: that ends the soak, unless it is to go on."""
        if self._asked.after_crash == "end":
            self.end_by(CRASH)

    def fail(self, why: str, log: TrialLog) -> None:
        """It has failed again and again: the rounds that it has are its result."""
        self.state |= {"ended_by": FAILURES, "why": why}
        self.end(FINISHED if self.rounds_done else why, log)

    def crashed(self, number: int, text: str, epoch_ns: int | None = None) -> bool:
        """Notes a crash of the server, unless it is known; whether it was new. `epoch_ns`: now, where nobody knows."""
        if any(known["text"] == text for known in self.state["crashes"]):
            return False
        self.state["crashes"].append({"round": number, "epoch_ns": epoch_ns or time.time_ns(), "text": text})
        return True

    def has_new_crash(self, count_before: int) -> bool:
        return len(self.state["crashes"]) > count_before

    def allotment(self, seconds: float) -> float:
        """The bytes that a round of so many seconds may take: its share of the time is its share of the record."""
        share = max(seconds, 1.0) / self._asked.seconds
        return ROUNDS_SHARE * self._asked.record_bytes_max * min(1.0, share)

    def thinned(self, name: str, seconds: float) -> Thinned:
        """A round thinned to what it may take; to the least, once the disk was full."""
        return thin(self.folder / name, 0 if self.state["full"] else self.allotment(seconds))

    def interrupt(self, why: str, *, always: bool = False) -> None:
        super().interrupt(why, always=always)
        for path in self._cut():
            thin(path, 0)
        for old in self._cut()[:-CUT_KEPT]:
            shutil.rmtree(old)

    def _cut(self) -> list[Path]:
        """Folders of interrupted rounds, oldest first."""
        return sorted(self.folder.glob(f"{ROUND}*.cut-*"), key=lambda path: path.stat().st_mtime_ns)

    def make_room(self) -> int:
        """The disk of the record is full: thins every round to the least; returns the bytes that this gave."""
        (self.folder / RESERVE).unlink(missing_ok=True)  # so that what follows can be written
        before = bytes_of(self.folder)
        for path in self._cut():
            shutil.rmtree(path)
        for path in sorted(self.folder.glob(f"{ROUND}*/{ROUND_FILE}")):
            known = read_json(path) or {}
            found = thin(path.parent, 0)
            writer.write_json(path, known | {"thinned": found})
        given = before - bytes_of(self.folder)
        self.state["full"].append({"epoch_ns": time.time_ns(), "freed_bytes": given})
        self._save()
        return given

    def keep_reserve(self) -> None:
        """Room for what has to be written when the disk is full."""
        path = self.folder / RESERVE
        if not path.exists():
            path.write_bytes(bytes(RESERVE_BYTES))

    def release_reserve(self) -> None:
        (self.folder / RESERVE).unlink(missing_ok=True)

    # --- the kernel's log -------------------------------------------------------------------------------------------

    def log_read(self, boot_id: str) -> int | None:
        """The last record of this boot's log that was read; None where none was."""
        known = self.state["log_read"]
        return int(known["last"]) if known and known["boot_id"] == boot_id else None

    def has_read_log(self, boot_id: str, last: int | None) -> None:
        if last is not None:
            self.state["log_read"] = {"boot_id": boot_id, "last": int(last)}

    def tell(self, log: TrialLog) -> None:
        super().tell(log)
        keys = ("spent_s", "crashes", "full", "ended_by", "why")
        log.facts["soak"] = {key: self.state[key] for key in keys} | {"steps_s": list(STEPS_S)}


RESERVE, RESERVE_BYTES = "reserve", 2**20


def _copied(keys: Json) -> Json:
    return {key: list(value) if isinstance(value, list) else value for key, value in keys.items()}
