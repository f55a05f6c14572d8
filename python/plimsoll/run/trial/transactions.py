"""The segments of a load of transactions: the warm-up, and what is measured between exact readings.

The server's counters are read with no client connected, because a backend flushes its statistics late.
"""

from __future__ import annotations

import time
from typing import Any, Protocol, runtime_checkable

from plimsoll.analysis.statistics import stationary
from plimsoll.analysis.statistics.room import room_of
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.load_session import LoadSession
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.segment import Segment

# Lines, one a second, after which a script that did nothing but fail is asked why.
FAILING_SAMPLES = 2


@runtime_checkable
class TakesTransactions(Protocol):
    """A server at work that the agent's load is run against."""

    load: LoadSession


def segments(_workload: object) -> list[Segment]:
    """Of every workload that is made of transactions."""
    return [WarmUp(), Measure()]


class WarmUp(Segment):
    """The load until its caches are filled; nothing of it is measured."""

    name = kind = "warmup"

    def perform(self, at: AtWork, log: TrialLog, about: dict[str, Any]) -> None:
        del about
        warm_up(load_of(at), log)


class Measure(Segment):
    """What is measured."""

    name = kind = "measure"
    stands_for_trial = True

    def perform(self, at: AtWork, log: TrialLog, about: dict[str, Any]) -> None:
        del about
        measure(load_of(at), log)


def load_of(at: AtWork) -> LoadSession:
    """The load of a server that takes transactions."""
    assert isinstance(at, TakesTransactions)  # the plan has paired the workload with a server that does
    return at.load


def warm_up(load: LoadSession, log: TrialLog, patience: float = 1.0) -> None:
    """Runs the load until the miss rates are stationary by the stated test, or until the time is up.

    That is `patience` times the warm-up's longest time.
    """
    warmup = load.settings.warmup
    longest = {"seconds": patience * warmup.seconds_max}
    if warmup.until == "none":
        log.facts["stationary"] = None
        return
    samples: list[dict[str, Any]] = []
    verdicts: list[stationary.Stationarity] = []
    started, room = time.monotonic(), room_of(log.facts.get("cache"))
    # A script whose transactions all fail is asked why at once; one that fails for a while goes on after that.
    asks_why = load.settings.workload.is_users_own

    def all_fail() -> bool:
        return asks_why and len(samples) >= FAILING_SAMPLES and not samples[-1]["done"] and samples[-1]["failed"] > 0

    def seen(line: dict[str, Any]) -> bool:
        samples.append(line)
        verdicts.append(stationary.judge(samples, seconds_min=warmup.seconds_min, room=room))
        return verdicts[-1].reached or all_fail()

    with log.phase("warmup", load.observer):
        load.segment("warmup", longest, seen)
        if all_fail():
            asks_why = False
            samples.clear()
            load.segment("warmup", longest, seen)
    last = verdicts[-1] if verdicts else stationary.judge(samples, seconds_min=warmup.seconds_min, room=room)
    log.facts["stationary"] = {
        "reached": last.reached,
        "seconds": round(time.monotonic() - started, 3),
        "test": last.test,
        "detail": last.detail,
    }


def measure(load: LoadSession, log: TrialLog) -> dict[str, Any]:
    """The measured segment between two exact readings of every counter."""
    wanted = load.settings.measure
    stop = {
        "seconds": wanted.seconds,
        "transactions": wanted.transactions_of(load.settings.workload.clients),
    }
    stop = {key: value for key, value in stop.items() if value is not None}
    read_counters(load.server, load.place, log, "before", log.facts)
    with log.phase("measure", load.observer):
        summary = load.segment("measure", stop)
    read_counters(load.server, load.place, log, "after", log.facts)
    return summary
