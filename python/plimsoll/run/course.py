"""How far a trial of several tests has come: of one that is done in one go, not at all.

run/series.py has the other kind, which is written down as it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plimsoll.run.trial import Report


class Course:
    """A trial that begins at its beginning: nothing of it was done, and nothing is written down on the way."""

    def is_done(self, segment: str) -> bool:
        """Whether a test was done already."""
        del segment
        return False

    def was_cut(self, segment: str) -> bool:
        """Whether a test was begun before and not ended."""
        del segment
        return False

    @contextmanager
    def step(self, test: str, segment: str, report: Report) -> Iterator[dict[str, Any]]:
        """Around a test; gives what trial.json has of it beside its readings."""
        del test, segment, report
        yield {}
