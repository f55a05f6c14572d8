"""Queues whose percentiles are known: M/M/c, and a server that pauses (M/G/1 with two kinds of exponential work).

Times in seconds unless the name says; everything is decided by the generator of random numbers that is given.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.statistics.percentile import Cells

PARTS = 200  # of the code of a cell: 20 powers of ten and 10 to 99 of each
_STEPS = 60


@dataclass(frozen=True)
class Server:
    """`count` processors of mean `service` each; with one it may pause for `pause` on the mean, `pauses` a second."""

    count: int
    service: float
    pause: float = 0.0
    pauses: float = 0.0

    @property
    def most(self) -> float:
        """What it gets done when it is never idle, per second."""
        return self.count * (1 - self.pauses * self.pause) / self.service

    def beyond(self, value: float, rate: float) -> float:
        """P(sojourn > value) in the steady state at `rate` a second."""
        if rate >= self.most:
            return 1.0
        return self._paused(value, rate) if self.pauses else self._erlang(value, rate)

    def _erlang(self, value: float, rate: float) -> float:
        offered, mu = rate * self.service, 1 / self.service
        terms = [offered**n / math.factorial(n) for n in range(self.count)]
        last = offered**self.count / math.factorial(self.count) * self.count / (self.count - offered)
        waiting, spare = last / (sum(terms) + last), self.count - 1 - offered
        alone = math.exp(-mu * value)
        if abs(spare) < 1e-9:
            return alone * (1 + waiting * mu * value)
        return alone + waiting * (alone - math.exp(-mu * value * (1 + spare))) / spare

    def _paused(self, value: float, rate: float) -> float:
        """A pause is work that nobody asked for, in the queue with the rest: the poles of Pollaczek and Khinchine."""
        mu, delta, every = 1 / self.service, 1 / self.pause, rate + self.pauses
        own, idle = rate / every, 1 - rate * self.service - self.pauses * self.pause
        half = (mu + delta - every) / 2
        root = math.sqrt(half**2 - (mu * delta - every * ((1 - own) * mu + own * delta)))
        first, second = -half + root, -half - root

        def part(pole: float, other: float) -> float:
            return idle * mu * (delta + pole) / (pole - other) * math.exp(pole * value) / -pole

        return part(first, second) + part(second, first)

    def line(self, level: float, limit: float) -> float:
        """The highest rate at which a share `level` takes no longer than `limit`, per second."""
        low, high = 0.0, self.most
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.beyond(limit, middle) <= 1 - level else (low, middle)
        return low

    def run(self, rate: float, seconds: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(arrivals, sojourns) of `seconds` at Poisson arrivals, from an empty queue."""
        arrivals = _arrivals(rate, seconds, random)
        times = random.exponential(self.service, len(arrivals))
        if self.count > 1:
            return arrivals, _waits_of_many(arrivals, times, self.count) + times
        if not self.pauses:
            return arrivals, _waits(arrivals, times) + times
        begun = _arrivals(self.pauses, seconds, random)
        both = np.concatenate([arrivals, begun])
        work = np.concatenate([times, random.exponential(self.pause, len(begun))])
        order = np.argsort(both, kind="stable")
        sojourns = _waits(both[order], work[order]) + work[order]
        return arrivals, sojourns[order < len(arrivals)]


def _arrivals(rate: float, seconds: float, random: np.random.Generator) -> np.ndarray:
    """A Poisson process: as many as chance gives, at times that know nothing of each other."""
    return np.sort(random.random(random.poisson(rate * seconds)) * seconds)


def _waits(arrivals: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Lindley's recursion, without a loop."""
    sums = np.concatenate([[0.0], np.cumsum(times[:-1] - np.diff(arrivals))])[: len(arrivals)]
    return sums - np.minimum.accumulate(np.minimum(sums, 0.0))


def _waits_of_many(arrivals: np.ndarray, times: np.ndarray, count: int) -> np.ndarray:
    free, waits = [0.0] * count, []
    for arrival, time in zip(arrivals.tolist(), times.tolist(), strict=True):
        begin = max(free[0], arrival)
        heapq.heapreplace(free, begin + time)
        waits.append(begin - arrival)
    return np.array(waits)


def cells(arrivals: np.ndarray, sojourns: np.ndarray, seconds: int) -> Cells:
    """Histograms by second of end, as coarse as the agent's; what ends later belongs to the last second."""
    second = np.minimum((arrivals + sojourns).astype(np.int64), seconds - 1)
    ns = np.maximum(sojourns * 1e9, 10.0)
    power = np.floor(np.log10(ns)).astype(np.int64) - 1
    digits = np.clip((ns / 10.0**power).astype(np.int64), 10, 99)
    code, count = np.unique((second * PARTS // 10 + power) * 100 + digits, return_counts=True)
    power, digits = code // 100 % (PARTS // 10), code % 100
    low = digits * 10.0**power
    return Cells(code // 100 // (PARTS // 10), low, low + 10.0**power, count.astype(float), np.zeros(seconds))
