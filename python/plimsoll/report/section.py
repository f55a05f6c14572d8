"""A section of a run's page: what it draws, what its template is filled with, and when it is there.

The fact that constrains it: the page knows sections by their list alone (sections.py). Whatever is true of one of them,
its heading, its folds and why it has nothing to draw among them, stands in its own room.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plimsoll.record import Run
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.original_studies import Study, study_of

Json = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """What a section may know: the record, and the verdict on it."""

    run: Run
    verdict: Json

    @property
    def study(self) -> Study | None:
        """The study that the experiment repeats."""
        return study_of(self.run.experiment)

    def names(self, key: str) -> bool:
        """Whether the experiment names this section. A record of before there was such a key names them all: what its
        sections are is what its design varies."""
        named = self.run.experiment.get("sections")
        return named is None or key in named


@dataclass(frozen=True)
class Section:
    """What the page asks of a section; where it does not apply nothing else is asked of it.

    `context` are the names of its template, beside `figures`, `drawn` (whether any of them could be) and `with_files`.
    `evidence` are sentences that stand at its head. Figures that cannot be drawn are listed with their reasons at
    the end of the page, unless the section `says_why` itself. `shows` is a small figure of the answer for the first
    screen, of SHOWN_WIDTH: the first section that has one gives it. `heads` is the template of a table that is the
    answer, and stands there in place of a figure: it has the names of the section's own. A section without any text is
    left out.
    """

    key: str
    title: str
    template: str  # its path below report/
    context: Callable[[Page], Json] = lambda _: {}
    figures: Callable[[Page], list[Figure]] = lambda _: []
    applies: Callable[[Page], bool] = lambda _: True
    evidence: Callable[[Page], list[str]] = lambda _: []
    shows: Callable[[Page], Figure | None] = lambda _: None
    heads: str = ""  # its path below report/
    files: Callable[[Page], dict[str, str]] = lambda _: {}  # for other programs: texts by the file's name
    says_why: Callable[[Page], bool] = lambda _: False
    needs: str = ""  # what is lacking where an experiment names it and it does not apply
