"""The breakdown's record and samples of pg_stat_activity as the same figures: each wait event's share of the time.

The definition (pg_stat_activity shows a backend that was woken and has no CPU yet as waiting still): an event's share
is the time blocked in it and the time on the run queue after that, of all sessions' time. The record has the run queue
by request and not by wait. Requests that waited for nothing tell what follows a wake-up for the client's message on
average, and those that waited for one event besides what follows a wake-up from that; each request's run queue is
shared out among its wake-ups in that ratio. The least and the most that may belong to an event stand beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from activity_sampler import ON_CPU, Sample
from breakdown_watch import QUEUED

CLIENT_READ = "Client:ClientRead"
SIGMAS = 2
ENOUGH = 100  # rows to tell from


@dataclass(frozen=True)
class Share:
    """Of all sessions' time; each a number from 0 to 1."""

    event: str
    blocked: float
    probe: float  # blocked, and its part of the run queue
    most: float  # blocked, and all the run queue of the requests that waited so
    sampled: float
    binomial: float  # standard error of `sampled`, were every look at every session independent of all others
    error: float  # standard error of the difference, from how it scatters over bins of time

    @property
    def difference(self) -> float:
        return self.sampled - self.probe

    def __str__(self) -> str:
        figures = (self.blocked, self.probe, self.most, self.sampled, self.difference)
        shown = "  ".join(f"{value:8.3%}" for value in figures)
        return f"{self.event:24} {shown}   +- {self.error:.3%} ({self.binomial:.3%})"


HEAD = f"{'':24} {'blocked':>8}  {'probe':>8}  {'most':>8}  {'sampled':>8}  {'off by':>8}   standard error (binomial)"


class Spread:
    """Amounts of time, each spread evenly over the interval that it is known to lie in, gathered by bins."""

    def __init__(self, edges: np.ndarray) -> None:
        self.edges, self.bins = edges, np.zeros(len(edges) - 1)

    def add(self, begins: np.ndarray, ends: np.ndarray, amounts: np.ndarray) -> None:
        """Intervals that do not overlap, in their order."""
        points = np.column_stack([begins, np.maximum(begins, ends)]).ravel()
        sums = np.repeat(np.cumsum(amounts), 2)
        sums[0::2] -= amounts
        if len(points):
            self.bins += np.diff(np.interp(self.edges, points, sums))


@dataclass(frozen=True)
class Sums:
    """Nanoseconds of an event by bins."""

    blocked: Spread
    probe: Spread
    most: Spread


@dataclass(frozen=True)
class Counted:
    """The rows of a record, and of each event (a column) how often and how long each row waited so."""

    rows: np.ndarray
    events: list[str]
    counts: np.ndarray
    ns: np.ndarray

    @staticmethod
    def of(rows: np.ndarray, waits: np.ndarray, names: Mapping[str, str]) -> Counted:
        """What arrived and was not there already ended a wait for the client."""
        known = np.unique(waits["wait"])
        events = sorted({CLIENT_READ, *(str(names[str(number)]) for number in known)})
        column = np.array([events.index(str(names[str(number)])) for number in known], np.int64)
        at = (np.searchsorted(rows["request"], waits["request"]), column[np.searchsorted(known, waits["wait"])])
        counts, ns = np.zeros((len(rows), len(events))), np.zeros((len(rows), len(events)))
        np.add.at(counts, at, waits["count"])
        np.add.at(ns, at, waits["ns"])
        counts[:, events.index(CLIENT_READ)] += rows["flags"] & QUEUED == 0
        return Counted(rows, events, counts, ns)

    def run_queue(self) -> np.ndarray:
        """Each row's time on the run queue that is an event's, (rows, events)."""
        queue, expected = self.rows["run_queue_ns"], self.counts * self._after_wake_up()
        whole = expected.sum(axis=1)
        shared: np.ndarray = expected * np.divide(queue, whole, out=np.zeros(len(queue)), where=whole > 0)[:, None]
        return shared

    def _after_wake_up(self) -> np.ndarray:
        """By events, what follows a wake-up on average; all alike where too few rows tell of the client's alone."""
        queue, place = self.rows["run_queue_ns"], self.events.index(CLIENT_READ)
        client, every = self.counts[:, place], self.counts.sum(axis=1)
        alone, mixed = (every == client) & (client > 0), every > client
        if alone.sum() < ENOUGH or mixed.sum() < ENOUGH:
            return np.ones(len(self.events))
        one = queue[alone].sum() / client[alone].sum()

        def others(among: np.ndarray) -> float:
            """What follows any other wake-up, of these rows."""
            rest = queue[among].sum() - one * client[among].sum()
            return float(max(rest, 0) / (every - client)[among].sum())

        found = np.full(len(self.events), others(mixed))
        for column in range(len(self.events)):
            only = mixed & (self.counts[:, column] == every - client)
            if column != place and only.sum() >= ENOUGH:
                found[column] = others(only)
        found[place] = one
        return found + 1

    @property
    def cpu(self) -> np.ndarray:
        """Each row's time on a CPU, with what follows the answer before."""
        spent: np.ndarray = self.rows["cpu_ns"] + self.rows["after_ns"]
        return spent


def of_record(counted: Counted, edges: np.ndarray) -> dict[str, Sums]:
    """Of each event nanoseconds of all sessions together, by bins. The rows are the load's, by their numbers."""
    queue = counted.run_queue()
    found = {event: Sums(*(Spread(edges) for _ in range(3))) for event in (*counted.events, ON_CPU)}
    for pid in np.unique(counted.rows["backend_pid"]):
        mine = np.nonzero(counted.rows["backend_pid"] == pid)[0]
        rows = counted.rows[mine]
        begins, ends = rows["arrived_ns"], rows["ended_ns"]
        for column, event in enumerate(counted.events):
            sums = found[event]
            ns = counted.ns[mine, column]
            sums.blocked.add(begins, ends, ns)
            sums.probe.add(begins, ends, ns + queue[mine, column])
            sums.most.add(begins, ends, ns + rows["run_queue_ns"] * (counted.counts[mine, column] > 0))
            if event == CLIENT_READ:
                gaps = np.maximum(begins[1:] - ends[:-1] - rows["after_ns"][1:], 0)
                for spread in (sums.blocked, sums.probe, sums.most):
                    spread.add(ends[:-1], begins[1:], gaps)
        found[ON_CPU].probe.add(begins, ends, counted.cpu[mine])
    return found


def of_samples(samples: list[Sample], pids: list[int], edges: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """How many sessions were seen in each event by bins, and how many looks there were. Only whole looks count."""
    looks = [each for each in samples if edges[0] <= each.begin_ns < edges[-1] and set(pids) <= set(each.seen)]
    place = np.searchsorted(edges, [each.begin_ns for each in looks], "right") - 1
    seen: dict[str, np.ndarray] = {}
    for at, look in zip(place.tolist(), looks, strict=True):
        for pid in pids:
            seen.setdefault(look.seen[pid], np.zeros(len(edges) - 1))[at] += 1
    return seen, np.bincount(place, minlength=len(edges) - 1)


def shares(
    rows: np.ndarray, waits: np.ndarray, summary: Mapping[str, Any], samples: list[Sample], bin_ns: int
) -> list[Share]:
    """Every event that either knows of, the largest share first. The first and the last bin's length is left out."""
    pids = [int(pid) for pid in summary["backend_pids"]]
    begin, end = int(summary["started_ns"]) + bin_ns, int(summary["ended_ns"]) - bin_ns
    edges = np.arange(begin, end + 1, bin_ns)
    seen, looks = of_samples(samples, pids, edges)
    assert looks.min() > 0, "no look for the length of a bin"
    whole, sessions = float(edges[-1] - edges[0]) * len(pids), looks.sum() * len(pids)
    record = of_record(Counted.of(rows, waits, summary["probes"]["breakdown"]["wait_names"]), edges)
    nothing = np.zeros(len(edges) - 1)
    found = []
    for event in record.keys() | seen.keys():
        sums = record.get(event)
        amounts = (sums.blocked.bins, sums.probe.bins, sums.most.bins) if sums else (nothing,) * 3
        times = seen.get(event, nothing)
        by_bin = times / (looks * len(pids)) - amounts[1] / (bin_ns * len(pids))
        sampled = times.sum() / sessions
        binomial = np.sqrt(sampled * (1 - sampled) / sessions)
        error = by_bin.std(ddof=1) / np.sqrt(len(by_bin))
        found.append(Share(event, *(float(each.sum() / whole) for each in amounts), sampled, binomial, error))
    return sorted(found, key=lambda share: -max(share.sampled, share.probe))


def off(found: list[Share], bound: float) -> list[str]:
    """Events whose shares differ by more than the bound at the far end of the interval."""
    waits = [share for share in found if share.event != ON_CPU]
    return [str(share) for share in waits if abs(share.difference) + SIGMAS * share.error > bound]


def outside(found: list[Share], bound: float) -> list[str]:
    """Events that were seen by more than the bound less often, or more often, than they may have been."""
    waits = [share for share in found if share.event != ON_CPU]
    return [str(share) for share in waits if not share.blocked - bound <= share.sampled <= share.most + bound]
