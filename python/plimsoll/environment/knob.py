"""A knob: one part of the environment that can be shown, set and put back by the same object.

The constraint: `set` changes the machine, so it takes the journal and records what it found before it acts. How a kind
is put back stands beside the knob, declared with `registry.puts_back`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from .journal import Entry, Journal

Value = TypeVar("Value", contravariant=True)


@dataclass(frozen=True)
class Availability:
    ok: bool
    reason: str = ""  # why not
    remedy: str = ""  # what would make it available


AVAILABLE = Availability(True)


class Knob(Protocol[Value]):
    @property
    def name(self) -> str: ...

    def available(self) -> Availability: ...

    def show(self) -> object:
        """The present state, as JSON can hold it."""
        ...

    def set(self, value: Value, journal: Journal) -> Entry | None:
        """Make it so; the entry puts it back. None if there was nothing to change."""
        ...
