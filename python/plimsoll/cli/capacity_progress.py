"""What the terminal shows while a load line is looked for: each trial with its verdict, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from plimsoll.cli.progress import Progress
from plimsoll.experiment import PlannedTrial
from plimsoll.quantities import elapsed


class CapacityProgress(Progress):
    """Draws the events of a capacity run; the time that is left is the budget's."""

    def __init__(self, seconds: float, summary: Callable[[int], str]) -> None:
        super().__init__(0, seconds, summary)
        self._budget_left, self._told = seconds, time.monotonic()

    def _on_capacity(self, tried: list[Any], spent: float, budget: float) -> None:
        del tried
        self._budget_left, self._told = budget - spent, time.monotonic()

    def _on_trial_end(self, trial: PlannedTrial, status: str, reason: str | None) -> None:
        said = self._summary(trial.number) if status == "finished" else f"{status}: {reason}"
        seconds = trial.treatment.settings.measure.seconds or 0
        self._print(f"{trial.number:>3}  {trial.treatment.id:>12}  {seconds:>3.0f} s  {said}")
        self._trial = None

    def _on_block_end(self, block: int) -> None:
        del block

    def _left(self) -> str:
        left = self._budget_left - (time.monotonic() - self._told)
        return f"at most {elapsed(max(0.0, left))}"

    def _line(self) -> str:
        where = f"trial {self._trial.number}, {self._trial.treatment.id}: " if self._trial else ""
        rate = f", {self._rate}" if self._rate else ""
        so_far = elapsed(time.monotonic() - self._started)
        return f"{where}{self._doing}{rate}  [{so_far}, {self._left()} left]"
