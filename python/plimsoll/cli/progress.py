"""What the terminal shows while a run goes on: where it is, how long it will take, each block's result when it is done.

On a terminal one line is kept up to date; elsewhere (a log file, CI) plain lines appear when something ends.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from rich.live import Live
from rich.text import Text

from plimsoll.cli.console import console
from plimsoll.cli.filling import Filling
from plimsoll.experiment import PlannedTrial
from plimsoll.quantities import elapsed

PHASES = {
    "clone": "cloning the data",
    "start": "starting the server",
    "warm": "reading the data into the page cache",
    "prewarm": "reading the data into the server's cache",
    "warmup": "warming until the caches are stationary",
    "measure": "measuring",
    "load": "load test: filling the database",
    "answers": "comparing the answers",
    "power": "power test",
    "throughput": "throughput test",
    "plans": "collecting the queries' plans",
    "vacuum": "VACUUM",
    "checkpoint": "CHECKPOINT",
    "check": "checking the answers and the data",
    "stop": "stopping the server",
    "put back": "putting the machine's settings back",
}
QUIET_LOG_SECONDS = 30
LABEL_MAX = 52


class Progress:
    """Draws events. `summary(number)` gives a finished trial's one-line figures, from the analysis."""

    def __init__(self, trials: int, seconds: float, summary: Callable[[int], str]) -> None:
        self._out = console()
        self._trials, self._estimate, self._summary = trials, seconds, summary
        self._started = time.monotonic()
        self._ended: float | None = None  # when the last trial did: the time since is that of the trials under way
        self._turns = ""
        self._round = ""  # of a soak
        self._before = 0  # trials that an earlier part of a resumed run has done
        self._trial: PlannedTrial | None = None
        self._durations: list[float] = []
        self._doing, self._rate = "", ""
        self._block: list[tuple[str, str]] = []
        self._last: tuple[int, float] | None = None
        self._filling = Filling()
        self._said: str | None = None  # why the rest was skipped
        self._logged = 0.0
        self._live = Live(console=self._out, auto_refresh=False, transient=True) if self._out.is_terminal else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with contextlib.suppress(OSError):
            if self._live:
                self._live.update(Text(""))
                self._live.__exit__(*error)

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened (run/observer.py)."""
        handler = getattr(self, f"_on_{name}", None)
        with contextlib.suppress(OSError):  # the terminal went away: there is nobody to tell
            if handler:
                handler(**info)
            self._draw()

    # --- events -----------------------------------------------------------------------------------------------------

    def _on_note(self, text: str) -> None:
        self._print(text)

    def _on_dataset(self, line: dict[str, Any]) -> None:
        if self._trial is None:
            self._doing = "building the data set"
        self._rate = self._filling.hear(line) or self._rate
        self._log_sometimes()

    def _on_trial(self, trial: PlannedTrial) -> None:
        now = time.monotonic()
        self._trial, self._rate, self._turns = trial, "", ""
        if self._ended is None:
            self._ended, self._before = now, trial.number - 1
        if not self._durations and trial.number > 1 and now - self._started < 2:
            self._print(f"resuming at trial {trial.number}")

    def _on_phase(self, phase: str) -> None:
        self._doing, self._rate, self._last = PHASES.get(phase, phase), "", None

    def _on_sample(self, line: dict[str, Any]) -> None:
        now, done = line["t_ns"], line["done"]
        if (at := line.get("at")) is not None:
            under_way = " ".join(str(one["name"]) for one in at)
            self._rate = f"{done} of {line['planned']} done, at {under_way}"
            self._log_sometimes()
            return
        if self._last is not None and now > self._last[1]:
            of = "transactions" if self._trial is None else self._trial.treatment.settings.workload.unit
            self._rate = f"{(done - self._last[0]) / (now - self._last[1]) * 1e9:,.0f} {of}/s"
        self._last = (done, now)

    def _on_turn(self, trial: PlannedTrial) -> None:
        self._trial, self._rate, self._turns = trial, "", ""

    def _on_round(self, number: int, of: int) -> None:
        self._round, self._doing, self._rate = f"round {number} of about {of}: ", "", ""

    def _on_round_end(self, number: int) -> None:
        if self._live is None:
            self._print(f"round {number} is done, {self._left()} left")

    def _on_window(self, trial: PlannedTrial, line: dict[str, Any], round: int, rounds: int) -> None:
        del line
        self._turns = f"block {trial.block}: round {round} of {rounds}"
        self._log_sometimes()

    def _on_asking(self, done: int, planned: int) -> None:
        self._rate = f"{done} of {planned} queries"
        self._log_sometimes()

    def _on_trial_end(self, trial: PlannedTrial, status: str, reason: str | None) -> None:
        if status == "skipped":
            if self._said != reason:
                self._print(f"the remaining trials are not run: {reason}")
            self._said = reason
            return
        now = time.monotonic()
        # Of trials that end together the first has taken the time of all; their mean is what is asked for.
        self._durations.append(now - (self._ended or now))
        self._ended = now
        label = trial.treatment.label + (" (A/A)" if trial.duplicate else "")
        figures = self._summary(trial.number) if status == "finished" else f"{status}: {reason}"
        self._block.append((label, figures))
        self._trial, self._turns = None, ""

    def _on_block_end(self, block: int) -> None:
        if not self._block:
            return
        self._print(f"block {block} done, {self._left()} left")
        room = min(LABEL_MAX, max((len(label) for label, _ in self._block), default=0))
        for label, figures in self._block:
            self._print(f"  {label:<{room}}  {figures}")
        self._block = []

    # --- drawing ----------------------------------------------------------------------------------------------------

    def _left(self) -> str:
        done = len(self._durations)
        so_far = time.monotonic() - self._started
        if not done:
            return f"about {elapsed(max(0.0, self._estimate - so_far))}"
        running = time.monotonic() - self._ended if self._trial and self._ended is not None else 0.0
        mean = sum(self._durations) / done
        return f"about {elapsed(max(0.0, mean * (self._trials - done) - running))}"

    def _line(self) -> str:
        passed = f"[{elapsed(time.monotonic() - self._started)}, {self._left()} left]"
        if self._turns:
            return f"{self._turns}  {passed}"
        number = f"trial {self._trial.number} of {self._trials + self._before}: " if self._trial else ""
        label = f"{self._trial.treatment.label}: " if self._trial else ""
        rate = f", {self._rate}" if self._rate else ""
        return f"{self._round or number + label}{self._doing}{rate}  {passed}"

    def _draw(self) -> None:
        if self._live:
            self._live.update(Text(self._line(), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _print(self, text: str) -> None:
        self._out.print(text)
        self._logged = time.monotonic()

    def _log_sometimes(self) -> None:
        if self._live is None and time.monotonic() - self._logged > QUIET_LOG_SECONDS:
            self._print(self._line())
