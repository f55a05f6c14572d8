"""A server that stood still while it was measured: it loses to whatever did something then, and is not left out.

The fact that constrains it: of such a trial no rate is known, only the most that it can have been; left out it would be
judged by the blocks in which it did something. As with percentiles without a bound (decision 22) it is censored.
"""

from __future__ import annotations

from plimsoll.analysis.trial.latency import unbounded
from plimsoll.analysis.trial.readings import done_count, is_open_loop, seconds_measured
from plimsoll.analysis.trial.windows import LEAST, windows
from plimsoll.record import Trial
from plimsoll.record.trial import FAILED, FINISHED

RATE = "throughput_per_second"


def hung_seconds(trial: Trial) -> float | None:
    """How long a window's transactions were waited for, in vain, before a trial was given up; None of any other."""
    seconds = (trial.data.get("windows") or {}).get("stood_still_seconds")
    return None if seconds is None or trial.status != FAILED else float(seconds)


def most_per_second(trial: Trial) -> float | None:
    """The most that the rate of a server which stood still can have been, its hang included; None of any other."""
    if not trial.data.get("windows"):
        return _of_closed_loop(trial)
    found, hung = windows(trial), hung_seconds(trial)
    if hung is not None:
        done, seconds = (0.0, 0.0) if found is None else (float(found.done.sum()), float(found.seconds.sum()))
        return max(done, LEAST) / (seconds + hung)
    if trial.status != FINISHED or trial.measure.windows is None or (found is not None and found.done.any()):
        return None
    seconds = seconds_measured(trial.measure) or 0.0 if found is None else float(found.seconds.sum())
    return LEAST / seconds if seconds > 0 else None


def _of_closed_loop(trial: Trial) -> float | None:
    """In an open loop it is the percentiles that have no bound, and tests of queries have results of their own."""
    if trial.status != FINISHED or trial.data.get("tests") or trial.data.get("load_test"):
        return None
    segment = trial.measure
    seconds, planned = seconds_measured(segment), segment.identity.get("planned")
    if is_open_loop(segment) or not planned or done_count(segment) or not seconds:
        return None
    return LEAST / seconds


def bounds(trial: Trial) -> dict[str, float]:
    """{metric: the best that it can be} of what a trial has no value of because something was not answered in time."""
    found = {f"latency_ns_{name}": value for name, value in unbounded(trial.measure).items()}
    most = most_per_second(trial)
    return found if most is None else {**found, RATE: most}
