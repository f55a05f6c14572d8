"""A kind of run: how its record is judged, shown, compared and resumed.

The fact that constrains it: verbs that take a run's folder (cli/records.py) know kinds by their list alone, and asking
which kind a run is loads no statistics; a kind imports what it needs when it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from plimsoll.record import Run

Json = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What came of judging a record, and the page it was drawn on."""

    document: Any  # of the kind's own type, which nobody else looks into
    page: Path


@dataclass(frozen=True)
class Compared:
    """What came of comparing: for other programs, and for people."""

    document: Mapping[str, Any]
    lines: list[str]


@dataclass(frozen=True)
class Refusal:
    """Why a kind cannot do something, and what can be done instead."""

    what: str
    allowed: str


class RunKind(ABC):
    """One kind of run. What a kind cannot do it says as a Refusal, and then nobody asks it to."""

    key: str | None  # the `kind` of run.json
    did: str  # what a run of it did, in a sentence that sets two against one another
    takes_long = False  # whether people are told that judging has begun
    no_files: Refusal | None = None  # figures as files of their own
    no_resume: Refusal | None = None
    no_comparison: Refusal | None = None
    no_comparison_page: Refusal | None = None
    no_treatments: str = ""

    @abstractmethod
    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        """Judges the record and draws its page, its figures as files if asked for."""

    @abstractmethod
    def show(self, judged: Judged) -> None:
        """Prints what was found, for people."""

    def resume(self, out: Path, as_json: bool, metrics: int | None, draws: bool, does_failed_again: bool) -> int:
        """Goes on with a run that was stopped, as `run` does, or also does what failed again; returns the exit code."""
        raise NotImplementedError  # its Refusal is given before this is asked

    def compare(self, first: Run, second: Run, force: bool, page: Path | None) -> Compared:
        """Two runs of this kind; `page`: an HTML file to make. Raises NotComparable where the machines differ, unless
        by force."""
        raise NotImplementedError  # its Refusal is given before this is asked

    def compare_treatments(self, run: Run, first: str, second: str, page: Path | None) -> Compared:
        """Two treatments of one run, by label or id; `page`: an HTML file to make."""
        raise NotImplementedError  # its Refusal is given before this is asked


def refuse_if(refusal: Refusal | None, where: str, key: str) -> None:
    """Ends the verb where the kind refuses."""
    if refusal is not None:
        refuse(where, key, refusal.what, refusal.allowed)


def refuse(where: str, key: str, what: str, allowed: str) -> NoReturn:
    """Says what is wrong with the command line."""
    from plimsoll.experiment import ExperimentError, Problem  # dear to load, and seldom needed

    raise ExperimentError([Problem(where, key, what, allowed)])
