"""What is said of one part of a verdict: sentences for the terminal and for the head of the page.

The fact that constrains it: the flow of words (verdict.py) knows parts by their list alone (parts.py). Each answer is a
list of sentences, empty where the verdict does not have the part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


def _nothing(_verdict: Json) -> list[str]:
    return []


@dataclass(frozen=True)
class Sentences:
    """The sentences about the part that verdict.json has under `key`; each short enough for a reader in a hurry."""

    key: str
    leads: Callable[[Json], list[str]] = _nothing  # answers, before those of the comparisons
    explains: Callable[[Json], list[str]] = _nothing  # what stands behind the differences, where levels are compared
    adds: Callable[[Json], list[str]] = _nothing  # what is to be known of the load, whatever is compared
    warns: Callable[[Json], list[str]] = _nothing  # what is wrong with the run, beside its caveats
    figures: Callable[[Json], list[str]] = _nothing  # the answer in figures, a line each, in place of a comparison's
    is_whole: bool = False  # its answers are the run's: those of comparisons and other parts stand in their sections
    section: str = ""  # the section of the page that has the numbers, by its key
