"""Trials as they begin and end, one by one or several at once: what is told of them and written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from plimsoll.environment import Fault
from plimsoll.experiment import Plan, PlannedTrial
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.record.trial import FAILED, FINISHED, RESULTS, SKIPPED
from plimsoll.run.context import RunContext
from plimsoll.run.refusals import Refused, TrialFailed, shared
from plimsoll.run.signals import Stopped
from plimsoll.run.trial import again, repeat
from plimsoll.run.trial.log import TrialLog


@dataclass
class Carrier(RunContext):
    """Whoever carries trials of a plan out."""

    repeats_spoilt: ClassVar[bool] = False  # trials that time would mend (trial/repeat.py)
    plan: Plan = field(init=False)
    _again: list[PlannedTrial] = field(init=False, default_factory=list)  # that failed, and are to be done again
    _refused: set[str] = field(init=False, default_factory=set)  # what the server has refused, by refusals.shared

    def is_done(self, trial: PlannedTrial) -> bool:
        """Whether a trial has its result: a failure is one, a stop is none."""
        return self._has_result(trial) and not repeat.is_open(self.out, trial.number) and trial not in self._again

    def _has_result(self, trial: PlannedTrial) -> bool:
        stored = self.stored(trial)
        return stored is not None and stored.get("status") in RESULTS

    def stored(self, trial: PlannedTrial) -> dict[str, Any] | None:
        """What a trial wrote down of itself; None where it did not come so far."""
        return read_json(writer.trial_folder(self.out, trial.number) / "trial.json")

    def do_again(self) -> int:
        """Trials that failed are done again by the run to come; returns how many failed."""
        self._again = again.to_do(self.out, self.plan)
        return len(again.failed(self.out, self.plan))

    def _set_aside_again(self) -> None:
        """Once the run may begin: before that a failure stays the result that it is."""
        again.set_aside(self.out, self._again)
        self._again = []

    @property
    def left(self) -> list[PlannedTrial]:
        """Those that have no result yet."""
        return [trial for trial in self.plan.trials if not self.is_done(trial)]

    def one(self, trial: PlannedTrial, work: Callable[[TrialLog], None]) -> None:
        """One trial from its begin to its end, whatever becomes of `work`."""
        if self._has_result(trial) and not self._is_set_aside(TrialLog(trial)):
            # killed before it was chosen whether it stands, and it does
            self.observer.event("trial_end", trial=trial, status=FINISHED, reason=None)
            self._tell_of_block(trial)
            return
        log = self.begin(trial)
        failure: TrialFailed | None = None
        try:
            work(log)
        except TrialFailed as error:
            failure = error
        except Stopped:
            log.write(self.out, "stopped", "the run was stopped")
            raise
        if not self._is_repeated(log, failure):
            self._has_ended(log, failure)
            return
        self.one(trial, work)

    def _is_repeated(self, log: TrialLog, failure: TrialFailed | None) -> bool:
        """Writes a trial's result down; whether it is set aside at once, to be done again."""
        if failure is not None or not self.repeats_spoilt:
            self._write_result(log, failure)
            return False
        repeat.leave_open(self.out, log.trial.number)
        self._write_result(log, None)
        return self._is_set_aside(log)

    def _is_set_aside(self, log: TrialLog) -> bool:
        why = repeat.set_aside(self.out, self.plan, log)
        if why:
            self.observer.event("note", text=f"trial {log.trial.number} is repeated: {'; '.join(why)}")
        return bool(why)

    def begin(self, trial: PlannedTrial) -> TrialLog:
        """A trial begins."""
        writer.append_event(self.out, "trial", trial=trial.number)
        self.observer.event("trial", trial=trial)
        log = repeat.begun(self.out, trial)
        again.note(self.out, log)
        return log

    def end(self, log: TrialLog, failure: TrialFailed | None) -> None:
        """It has its result. Raises Fault where the server has refused what all that are left would ask of it, too."""
        self._write_result(log, failure)
        self._has_ended(log, failure)

    def _write_result(self, log: TrialLog, failure: TrialFailed | None) -> None:
        self._write(log, FINISHED if failure is None else FAILED, None if failure is None else str(failure))

    def _has_ended(self, log: TrialLog, failure: TrialFailed | None) -> None:
        self._tell_of_block(log.trial)
        if isinstance(failure, Refused):
            self._refused.add(shared(log.trial.treatment.settings))
            self._end_if_hopeless(failure)

    def skip(self, trial: PlannedTrial, reason: str) -> None:
        """It is not begun, and need not be."""
        self._write(TrialLog(trial), SKIPPED, reason)
        self._tell_of_block(trial)

    def _write(self, log: TrialLog, status: str, reason: str | None) -> None:
        trial = log.trial
        log.write(self.out, status, reason)
        writer.append_event(self.out, "trial_end", trial=trial.number, status=status, reason=reason)
        self.observer.event("trial_end", trial=trial, status=status, reason=reason)

    def _tell_of_block(self, trial: PlannedTrial) -> None:
        after = self.plan.trials[trial.number :]
        if not after or after[0].block != trial.block:
            self.observer.event("block_end", block=trial.block)

    def _end_if_hopeless(self, refused: Refused) -> None:
        """Ends the run where every trial that is left would meet a refusal that was met already."""
        left = self.left
        if left and all(shared(trial.treatment.settings) in self._refused for trial in left):
            which = f"the {len(left)} trials that are left" if len(left) > 1 else "the trial that is left"
            raise Fault(f"{refused.what}; {which} would fail the same way, so the run ends here", remedy=refused.remedy)
