"""What trials are made of: a new kind of work is a room with its segments, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.experiment import Experiment
from plimsoll.experiment.workloads.base import PHASES, TESTS, TRANSACTIONS
from plimsoll.run.decision_support import tests
from plimsoll.run.phases import passes
from plimsoll.run.trial import transactions
from plimsoll.run.trial.segment import Segment

# By what a workload says that its trials are made of (`made_of`).
SEGMENTS: dict[str, Callable[[Any], list[Segment]]] = {
    TRANSACTIONS: transactions.segments,
    TESTS: tests.segments,
    PHASES: passes.segments,
}


def segments_of(settings: Experiment) -> list[Segment]:
    """The segments of a trial, in their order."""
    return SEGMENTS[settings.workload.made_of](settings.workload)
