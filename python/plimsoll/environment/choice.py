"""Files of the kernel that list what may be chosen and mark what is in force, as parts that are set and put back.

The constraint: which choices there are is the kernel's to say, and differs between builds; so a value that is none of
them is refused with the list, before anything is started.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, values_set
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site, refusal


class Choice:
    """One of the choices of a file."""

    name: str
    kind: ClassVar[str]  # of the journal's entries
    unseen_in_turns: str = ""

    @abstractmethod
    def path(self) -> Path:
        """Raises OSError where what it lies in cannot be had."""

    @abstractmethod
    def located(self) -> dict[str, str]:
        """What its putting back finds the file by, in another process."""

    @property
    def shown(self) -> str:
        """Where people find it."""
        return str(self.path())

    @property
    def lacking(self) -> Availability:
        """What is said where the kernel has no such file."""
        return Availability(False, f"{self.shown}: this kernel does not have it", "leave it out, or use another kernel")

    def choices(self) -> list[str]:
        return kernel_files.choices(kernel_files.read(self.path()) or "")

    def available(self) -> Availability:
        if not self.choices():
            return self.lacking
        try:
            with self.path().open("r+b", buffering=0):
                return AVAILABLE
        except OSError:
            return Availability(False, f"{self.shown}: is not writable", "run as root, outside a container")

    def lacks(self, value: str) -> Availability:
        """Whether one of the choices is there."""
        able = self.available()
        if not able.ok or value in self.choices():
            return able
        return Availability(
            False, f"{self.shown}: {value!r} is not a choice", f"use one of {', '.join(self.choices())}"
        )

    def show(self) -> str | None:
        text = kernel_files.read(self.path())
        return kernel_files.selected(text) if text is not None else None

    def set(self, value: str, journal: Journal) -> Entry | None:
        able = self.lacks(value)
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        before = self.show()
        if before == value:
            return None
        return journal.change(self.kind, lambda: self.write(value), **self.located(), found=before, set=value)

    def expect(self, wanted: Mapping[str, Sequence[str]], journal: Journal) -> Entry:
        return journal.record(self.kind, **self.located(), found=self.show(), set=list(wanted[self.name]))

    def write(self, value: str) -> None:
        kernel_files.write(self.path(), value)
        if (now := self.show()) != value:
            raise Fault(f"{self.shown}: {value} was written and {now} is in force", remedy=f"use {now}")


class KnobOfChoices(KnobOfParts[str]):
    """Refuses what is no choice of this kernel, too."""

    def obstacles(self, site: Site) -> Iterator[str]:
        for key, part, value in self.wanted(site):
            yield from refusal(key, part.lacks(value))

    @abstractmethod
    def wanted(self, site: Site) -> Iterator[tuple[str, Choice, str]]: ...

    def turned(self, site: Site) -> Iterator[tuple[str, Choice, str]]:
        return self.wanted(site)


def put_back(path: Path, args: Args, item: str = "") -> str:
    """What was found, unless somebody else has chosen since. `item`: what the file is called for people."""
    found, now = args["found"], kernel_files.selected(kernel_files.read(path) or "")
    ours = values_set(args, otherwise=now)
    if now not in (found, *ours):
        remedy = f"to set it back: `echo {found} > {item or path}`"
        raise ChangedSince(changed_since(item or str(path), found=found, ours=" or ".join(ours), now=now), remedy)
    if now != found:
        kernel_files.write(path, found)
    return f"{item or path} = {found}"
