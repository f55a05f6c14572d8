"""Which trials have a say in a search: a disturbed one has none, and so the search asks for its rate again.

The fact that constrains it: on a machine from which the hypervisor always takes much, disturbed trials are all there
is, and they say what it carries. So where more than a third are disturbed they count like any other.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

STEAL_DISTURBS = 0.05
DISTURBED_SHARE_MAX = 1 / 3
DISTURBED_ALWAYS = 2  # so many have no say, however few trials there are
FAR_BELOW = 1.6
DISTURBED_RULE = (
    f"a trial that does not hold and from which the hypervisor took at least {STEAL_DISTURBS:.0%} of the CPU time is "
    "disturbed: it has no say and its rate is asked for again, unless more than a third of the trials are; its lag is "
    "not held against the generator"
)


class Heard(Protocol):
    """What is asked of a trial."""

    @property
    def rate(self) -> float | None:
        """As planned; None: the closed loop."""

    @property
    def word(self) -> str:
        """Its verdict."""

    @property
    def disturbed(self) -> bool:
        """By DISTURBED_RULE."""


One = TypeVar("One", bound=Heard)


def heeded(trials: list[One]) -> list[One]:
    """The trials at planned rates that have a say, in their order."""
    opened = [one for one in trials if one.rate is not None]
    disturbed = sum(one.disturbed for one in opened)
    if disturbed > max(DISTURBED_ALWAYS, DISTURBED_SHARE_MAX * len(opened)):
        return opened
    return [one for one in opened if not one.disturbed]


def highest_held(opened: list[One]) -> float | None:
    """The highest rate of a trial that held, where at least as many held at it as did not."""
    for rate in sorted({one.rate for one in opened if one.rate is not None and one.word == "holds"}, reverse=True):
        words = [one.word for one in opened if one.rate == rate]
        if words.count("holds") >= words.count("breaks") + words.count("generator"):
            return rate
    return None
