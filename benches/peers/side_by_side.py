"""Two generators that ran at the same time, held to what both did while both were at work; and what is judged of files.

The constraint: a device that is shared changes by more than 5 % from run to run, so its latencies are compared within
one stretch of time that both went through, and nothing that one of them did alone enters. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from peers import judge
from peers.arms import Run
from peers.judge import Bound, Ratio

CPU_BOUND = {"sync": 0.9, "io_uring": 1.0}
THROUGHPUT_BOUND = 0.97
AGREEMENT = 0.05
# At both ends of the stretch: fio's log has milliseconds, and the first reads find a device that has stood still.
MARGIN_S = 0.05
SHARED_MIN = 0.5


class Apart(Exception):
    """The two were not at work at the same time for long enough."""


@dataclass(frozen=True)
class TimedRun(Run):
    """A run that says of each operation, as of its latency, when it ended: in seconds since 1970."""

    ended_s: np.ndarray = field(default_factory=lambda: np.empty(0))

    def within(self, first_s: float, last_s: float) -> TimedRun:
        """What ended from then to then; its CPU time is still that of the whole run, an operation."""
        kept = (self.ended_s >= first_s) & (self.ended_s < last_s)
        count = int(np.count_nonzero(kept))
        return replace(
            self,
            transactions=count,
            seconds=last_s - first_s,
            cpu_ns=round(self.cpu_ns * count / self.transactions),
            latency_us=self.latency_us[kept],
            service_us=self.service_us[kept],
            ended_s=self.ended_s[kept],
        )


def shared(ours: TimedRun, theirs: TimedRun, seconds: float) -> tuple[TimedRun, TimedRun]:
    """Both, cut to the stretch in which both were at work. `seconds`: how long each was asked to be.

    Raises Apart where it is shorter than half of that.
    """
    if not ours.ended_s.size or not theirs.ended_s.size:
        raise Apart("one of the two has recorded nothing")
    first = max(float(run.ended_s.min()) for run in (ours, theirs)) + MARGIN_S
    last = min(float(run.ended_s.max()) for run in (ours, theirs)) - MARGIN_S
    if last - first < SHARED_MIN * seconds:
        raise Apart(f"both were at work for {max(0.0, last - first):.2f} s of {seconds:g} s")
    return ours.within(first, last), theirs.within(first, last)


def cost(ours: Sequence[Run], theirs: Sequence[Run]) -> list[Ratio]:
    """CPU time an operation, and throughput."""
    return [
        judge.ratio("CPU an operation", [run.cpu_us for run in ours], [run.cpu_us for run in theirs]),
        judge.ratio("throughput", [run.tps for run in ours], [run.tps for run in theirs]),
    ]


def latency(ours: Sequence[Run], theirs: Sequence[Run]) -> list[Ratio]:
    """Percentiles, of each side's own record of every read."""
    ratios = []
    for name, share in (("p50", 50), ("p99", 99)):
        both = [[float(np.percentile(run.service_us, share)) for run in runs] for runs in (ours, theirs)]
        ratios.append(judge.ratio(f"{name} of a read", *both))
    return ratios


def judged(case: str, ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[list[Ratio], list[Bound]]:
    """What pairs of a case show, and whether its bounds hold: of `direct` the percentiles, else CPU time and rate."""
    if case == "direct":
        found = latency(ours, theirs)
        return found + cost(ours, theirs), [judge.within(each, AGREEMENT) for each in found]
    cpu, throughput = found = cost(ours, theirs)
    return found, [judge.at_most(cpu, CPU_BOUND[case]), judge.at_least(throughput, THROUGHPUT_BOUND)]
