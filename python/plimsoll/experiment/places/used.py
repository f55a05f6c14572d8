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
    """The places that `parts` (paths, or names of places) lie on, each after those that it stands on itself: the one
    that holds its log, and the one that it mounts by NFS."""
    found: dict[str, None] = {}

    def put(name: str, way: tuple[str, ...] = ()) -> None:
        if name in places and name not in way:
            for other in places[name].below:
                put(other, (*way, name))
            found.setdefault(name)

    for name in parts:
        put(name)
    return list(found)


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
    _check_exports(places, parts, allowed)
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


def _check_exports(places: Mapping[str, Place], parts: Mapping[str, str], allowed: str) -> None:
    """What this kernel's NFS server exports is a file system that is made for the trial."""
    exported: dict[str, str] = {}
    used = used_places(places, parts.values())
    for name, place in places.items():
        on = place.nfs.on
        if on is None:
            continue
        key = f"environment.places.{name}.nfs.on = {on!r}"
        if on == name or on not in places:
            raise ValueError(f"{key}: there is no such other place; allowed: {allowed}")
        below = places[on]
        if below.nfs.is_given or not below.is_made or below.file_system == "none":
            raise ValueError(f"{key}: what is exported is made for the trial; allowed: a place with an image or "
                             "devices, and a file system")  # fmt: skip
        other = exported.setdefault(on, name) if name in used else name
        if places[other].nfs.export != place.nfs.export:
            raise ValueError(f"{key}: {other} has it, too, and with other export options; allowed: the same ones")
