"""How each kind of change is put back: one function a kind, found by the name that stands in the journal.

The constraint: `undo` runs in a process that has not made the change and knows only what the journal says, possibly
days later or after a reboot. So a put-back takes nothing but the entry's JSON, must be safe when the change never
happened and when it was put back already, and must never touch what is not ours.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.environment.fault import Fault

Args = Mapping[str, Any]
Action = Callable[[Args], str]


class ChangedSince(Exception):
    """Raised by a put-back that leaves things as they are, since somebody else has changed what we had set."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def changed_since(item: str, *, found: str, ours: str, now: str) -> str:
    """In words: `item` was `found`, we have set it to `ours`, and it is `now`, which was somebody else."""
    return f"{item} was {found}, was set to {ours} by the run, and has become {now} since"


def values_set(args: Args, otherwise: str | None = None) -> tuple[str, ...]:
    """What the change has written: one value, or those of servers that took turns; `otherwise` stands for what journals
    of earlier versions do not hold."""
    written = args.get("set", otherwise)
    return () if written is None else tuple(written) if isinstance(written, list) else (written,)


@dataclass(frozen=True)
class PutBack:
    action: Action  # returns what it did, in words, or raises ChangedSince
    survives_reboot: bool  # false: the kernel forgot the change when the machine went down


_kinds: dict[str, PutBack] = {}
# Modules that journals of earlier versions name, and where their kinds are declared now.
_MOVED = {"plimsoll.run.existing": "plimsoll.run.servers.postgresql.schema"}


def puts_back(kind: str, *, survives_reboot: bool) -> Callable[[Action], Action]:
    """Declare the function that puts a kind of change back."""

    def declare(action: Action) -> Action:
        _kinds[kind] = PutBack(action, survives_reboot)
        return action

    return declare


def find(kind: str, declared_by: str = "") -> PutBack:
    """`declared_by`: the module that the journal names. Other stages declare kinds too, and we do not import them."""
    importlib.import_module("plimsoll.environment")  # its import declares every kind of ours
    if kind not in _kinds and declared_by.startswith("plimsoll."):
        with contextlib.suppress(ImportError):
            importlib.import_module(_MOVED.get(declared_by, declared_by))
    try:
        return _kinds[kind]
    except KeyError:
        raise Fault(
            f"journal entry of kind {kind!r}: this version of Plimsoll cannot put it back",
            remedy="run undo with the version that wrote it",
        ) from None
