"""Segments: what a trial performs on its server one after the other, and the one loop that performs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.log import TrialLog

Json = dict[str, Any]


class Segment(ABC):
    """One part of a trial. `name`: of its folder, by which it is also known when a trial goes on after a kill."""

    name: str
    kind: str
    stands_for_trial: bool = False  # whether what is read around it is of the whole trial

    def prepare(self, at: AtWork, log: TrialLog, before: Segment | None, *, was_interrupted: bool) -> None:
        """What comes before it and is no part of it. `before`: the segment that goes before it in the trial;
        `was_interrupted`: it was begun already, and ended by a kill or a stop."""
        del at, log, before, was_interrupted

    @abstractmethod
    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        """Performs it and writes down what it gave; `about`: what its own entry in trial.json says of this attempt.

        Raises Stopped when the run is to end.
        """

    def conclude(self, at: AtWork) -> None:
        """What comes after it and is no part of it."""
        del at


class Progress:
    """How far a trial has come. Of one that begins at its beginning: nothing was done, nothing is written on the way.

    run/trial/series.py has the other kind, which stands on disk at every step.
    """

    def is_done(self, name: str) -> bool:
        """Whether a segment was done already."""
        del name
        return False

    def was_interrupted(self, name: str) -> bool:
        """Whether a segment was begun before and not ended."""
        del name
        return False

    @contextmanager
    def step(self, segment: Segment, log: TrialLog) -> Iterator[Json]:
        """Around a segment; gives what trial.json has of it beside its readings."""
        del segment, log
        yield {}


def perform(segments: Iterable[Segment], at: AtWork, log: TrialLog, progress: Progress) -> None:
    """Every segment that is yet to be done, in order; then the check of the data, and the server's end."""
    before: Segment | None = None
    for segment in segments:
        if not progress.is_done(segment.name):
            segment.prepare(at, log, before, was_interrupted=progress.was_interrupted(segment.name))
            with progress.step(segment, log) as about, ExitStack() as around:
                if segment.stands_for_trial:
                    around.enter_context(at.watched(log))
                segment.perform(at, log, about)
            segment.conclude(at)
        before = segment
    with log.phase("check", at.observer):
        at.check(log)
    at.end(log)
