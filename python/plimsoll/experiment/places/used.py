"""Which places a target's parts lie on, and whether every name is one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.experiment.places.place import Place

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")


def is_name(value: str) -> bool:
    """Whether `value` names a place and is no path."""
    return _NAME.fullmatch(value) is not None


def used_places(places: Mapping[str, Place], parts: Iterable[str]) -> list[str]:
    """The places that `parts` (paths, or names of places) lie on, each after the one that holds its log."""
    found: list[str] = []
    for name in parts:
        if name in places and name not in found:
            log = places[name].log
            if log is not None and log not in found:
                found.append(log)
            found.append(name)
    return found


def check_places(places: Mapping[str, Place], parts: Mapping[str, str]) -> None:
    """Raises ValueError where a part lies on no place, or on one without a file system, or a log is nowhere.

    `parts`: by their key, such as target.files.wal.
    """
    allowed = ", ".join(places) or "a table [environment.places.NAME]"
    for key, value in parts.items():
        if not is_name(value):
            continue
        if value not in places:
            raise ValueError(f"{key} = {value!r}: there is no such place; allowed: {allowed}, or a folder's path")
        if places[value].file_system == "none":
            raise ValueError(f'{key} = {value!r}: its file_system is "none"; allowed: a place with a file system')
    for name, place in places.items():
        if place.log is None:
            continue
        key = f"environment.places.{name}.log = {place.log!r}"
        if place.log == name or place.log not in places:
            raise ValueError(f"{key}: there is no such other place; allowed: {allowed}")
        if places[place.log].file_system != "none" or not places[place.log].is_made:
            raise ValueError(f'{key}: a log takes a whole device; allowed: a place with file_system = "none"')
        others = [one for one, other in places.items() if other.log == place.log and one != name]
        if others and {name, *others} <= set(used_places(places, parts.values())):
            raise ValueError(f"{key}: it holds the log of {others[0]} too; allowed: a place for each log")
