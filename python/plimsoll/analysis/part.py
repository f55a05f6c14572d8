"""A part of a verdict: what one room says beside the comparisons, of the run, of each treatment and of each trial.

The fact that constrains it: verdict.py knows parts by their list alone (parts.py). Whatever is true of one of them, its
rule for appearing among them, stands in its own room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypedDict

from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Comparison, Treatment, TrialEntry, Used

Json = dict[str, Any]


class Pair(TypedDict):
    """Two treatments that are set against each other, beside the comparisons or by one: second less first."""

    first: str
    second: str
    first_label: str
    second_label: str
    at: dict[str, str]
    about: str
    verdict: str | None
    clients: NotRequired[float]  # of the number of clients


@dataclass(frozen=True)
class Context:
    """What a run's parts may rest on; documents are as verdict.json has them."""

    run: Run
    read: Mapping[str, Any]  # what parts have read of the record, by key
    used: Used  # the trial that stands for each block and treatment
    comparisons: list[Comparison]
    treatments: dict[str, Treatment]
    delta: float  # the relevant ratio less 1
    spread_log: float  # logarithm of the ratio by which equals differ; 0 where it is not known
    parts: Mapping[str, Any]  # parts that were judged before, by key; None where one did not apply
    pairs: list[Pair]  # what these parts set against each other, beside the comparisons
    twins: Used = field(default_factory=dict)  # the duplicates that enter, by the same keys as `used`


def _nothing_read(_run: Run) -> Any:
    return None


def _no_trial_caveats(_trial: Trial, _read: Any) -> list[str]:
    return []


def _no_caveats(_context: Context) -> list[str]:
    return []


def _no_values(_found: Any) -> dict[str, float | None]:
    return {}


def _no_pairs(_found: Any) -> list[Pair]:
    return []


@dataclass(frozen=True)
class Part:
    """What verdict.py asks of a part; each answer but None is stored under `key`, and what is not given is not asked.

    `needs` are the keys of parts that stand before it in the list and that it looks at.
    """

    key: str
    # Of the run; None where the part does not apply, which format 1 stores as null of some parts.
    judge: Callable[[Context], Any] | None = None
    needs: tuple[str, ...] = ()
    is_null_where_absent: bool = False
    # The treatments that it sets against each other, for parts that explain differences.
    pairs: Callable[[Any], list[Pair]] = _no_pairs
    # Of each trial, and the metrics that follow from it.
    of_trial: Callable[[Run, Trial], Any] | None = None
    trial_values: Callable[[Any], dict[str, float | None]] = _no_values
    # Of each treatment, from the entries of the trials that stand for it: {treatment: what is stored}.
    of_treatments: Callable[[Run, Mapping[str, list[TrialEntry]]], Mapping[str, Any]] | None = None
    # What is read of the record once, so that a comparison of two runs need not read it again.
    read: Callable[[Run], Any] = _nothing_read
    # What a reader has to know: of one trial (`read` is this part's), and of the run.
    trial_caveats: Callable[[Trial, Any], list[str]] = _no_trial_caveats
    caveats: Callable[[Context], list[str]] = _no_caveats


def is_named(run: Run, key: str) -> bool:
    """Whether the run's experiment names the section of a part among its `sections`.

    A record of before there was such a key names them all: what its parts are is what its design varies.
    """
    named = run.experiment.get("sections")
    return named is None or key in named
