"""A knob: one part of the environment as an experiment asks for it, with what stands in its way and how it is set.

The constraint: arranging changes the machine, so it takes the journal, and what was found is recorded there before
anything is changed. How a kind of change is put back stands beside the part, declared with `registry.puts_back`; the
journal is put back newest first, and so in the reverse order of arranging. The knobs there are stand
in run/surroundings/knobs.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.state import StateDir

if TYPE_CHECKING:
    from plimsoll.experiment import Experiment

Value = TypeVar("Value")
Taken = TypeVar("Taken", contravariant=True)
Made = TypeVar("Made")
Given = TypeVar("Given", covariant=True)


@dataclass(frozen=True)
class Availability:
    ok: bool
    reason: str = ""  # why not
    remedy: str = ""  # what would make it available


AVAILABLE = Availability(True)


class Part(Protocol[Taken]):
    """What a knob sets: one thing on the machine that can be shown, set and put back by the same object."""

    @property
    def name(self) -> str: ...

    def available(self) -> Availability: ...

    def show(self) -> object:
        """The present state, as JSON can hold it."""
        ...

    def set(self, value: Taken, journal: Journal) -> Entry | None:
        """Make it so; the entry puts it back. None if there was nothing to change."""
        ...


class TurnedPart(Part[Taken], Protocol[Taken]):
    """A part of the whole machine that is set in milliseconds, so that servers which take turns may differ in it."""

    @property
    def unseen_in_turns(self) -> str:
        """What turns of it do not show, beside what is so of every setting of the machine."""
        ...

    def expect(self, wanted: Mapping[str, Sequence[Any]], journal: Journal) -> Entry:
        """Makes durable what is found and all values that are going to be written, and changes nothing.

        `wanted`: those of every part that takes turns, by the part's name: one may be set by setting another.
        """
        ...

    def write(self, value: Taken) -> None:
        """One of the values that were expected. Raises Fault where it is not in force then."""
        ...


@dataclass
class Site:
    """The trial that knobs are arranged for."""

    settings: Experiment  # with the sizes of its environment in bytes
    state: StateDir
    name: str  # of the trial: unique on the machine
    data: Path  # where the server's data are to lie
    at_turns: frozenset[str] = frozenset()  # the keys that each turn of its server sets, and nothing arranges
    _made: dict[str, object] = field(default_factory=dict)

    def arrange(self, knob: Knob[object], journal: Journal) -> None:
        self._made[knob.name] = knob.arrange(self, journal)

    def made_by(self, knob: Knob[Made]) -> Made:
        """What a knob that was arranged before has made, for those that come after it."""
        return cast("Made", self._made[knob.name])


class Knob(ABC, Generic[Given]):
    """What an experiment's settings ask of one part of the environment, and how it is had."""

    name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]  # the settings, or tables of them, that turn it
    after: ClassVar[tuple[str, ...]] = ()  # names of the knobs that have to be arranged before it
    # Why servers that are up at once cannot differ in it; empty where each server, group or load has its own.
    why_shared: ClassVar[str] = "it is set for the whole machine"

    @abstractmethod
    def obstacles(self, site: Site) -> Iterator[str]:
        """Why it cannot be had here, each with its remedy; asked before anything is started. Changes nothing."""

    def turned(self, site: Site) -> Iterator[tuple[str, TurnedPart[Any], Any]]:
        """What of it each turn of a server can set: the key that asks, the part, and what it is to be."""
        del site
        yield from ()

    def alone(self, site: Site) -> Iterator[str]:
        """Why two servers that are up at once cannot each have theirs, as this one's settings ask for it."""
        del site
        yield from ()

    @abstractmethod
    def arrange(self, site: Site, journal: Journal) -> Given:
        """Makes it so, every change by the journal; what it gives is for the knobs after it (`Site.made_by`)."""


class KnobOfParts(Knob[None], Generic[Value]):
    """A knob that sets parts one by one, and is in nobody's way where nothing is asked for."""

    @abstractmethod
    def wanted(self, site: Site) -> Iterator[tuple[str, Part[Value], Value]]:
        """The key that asks, the part, and what it is to be."""

    def obstacles(self, site: Site) -> Iterator[str]:
        for key, part, _ in self.wanted(site):
            yield from refusal(key, part.available())

    def arrange(self, site: Site, journal: Journal) -> None:
        for key, part, value in self.wanted(site):
            if key not in site.at_turns:
                part.set(value, journal)


def refusal(key: str, answer: Availability) -> Iterator[str]:
    """The obstacle that the answer is, if it is one."""
    if not answer.ok:
        yield f"{key}: {answer.reason}; {answer.remedy}"


def in_order(knobs: Sequence[Knob[object]]) -> tuple[Knob[object], ...]:
    """As declared, but each after those that it depends on.

    Raises ValueError where a name is declared twice, or one that is depended on not at all or in a circle.
    """
    named = {knob.name: knob for knob in knobs}
    if len(named) < len(knobs):
        raise ValueError(f"two knobs of one name: {', '.join(sorted(knob.name for knob in knobs))}")
    ordered: dict[str, Knob[object]] = {}

    def put(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            raise ValueError(f"a circle of knobs, each to come after the next: {' > '.join((*way, name))}")
        if name not in named:
            raise ValueError(f"the knob {way[-1]} comes after {name!r}, which is none of {', '.join(named)}")
        if name not in ordered:
            for other in named[name].after:
                put(other, (*way, name))
            ordered[name] = named[name]

    for name in named:
        put(name, ())
    return tuple(ordered.values())
