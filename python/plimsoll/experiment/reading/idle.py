"""Places on which nothing lies: in an experiment, once levels of a factor are left out, and in one treatment of it.

The fact that constrains it: a place that no level ever named was forgotten or misspelt, and stays to be refused.
What is read here was not checked yet, so that nothing of its shape is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.experiment.factors import AnyFactor

_FILES = "target.files."
_PLACES = "environment.places."
_PARTS = (_FILES, _PLACES)


def leave_out(raw: dict[str, Any], idle_before: set[str]) -> None:
    """Takes away, in place, what is idle now and was not before, and the factors that vary nothing else."""
    places = _table(_table(raw.get("environment")).get("places"))
    taken: set[str] = set()
    while gone := idle(raw) - idle_before:
        taken |= gone
        for name in gone:
            del places[name]
    factors = raw.get("factors")
    if taken and isinstance(factors, list):
        raw["factors"] = [factor for factor in factors if not _places_varied(_paths(factor)) & taken]


def idle(raw: dict[str, Any]) -> set[str]:
    """The places on which nothing lies, at any level."""
    places = _table(_table(raw.get("environment")).get("places"))
    lying = {name for value in _values(raw) for name in parts(value)}
    below = (one for place in places.values() for one in (_table(place).get("log"), _on(place)))
    return set(places) - lying - {one for one in below if isinstance(one, str)}


def named_only_at_first(settings: dict[str, Any], raw: dict[str, Any]) -> set[str]:
    """Places that a treatment's `settings` have no use for, since every level puts elsewhere what the file puts there
    at first; not those of which a factor varies something, for then it would vary nothing."""
    varied = {path.split(".")[2] for path, _ in _set_by_levels(raw) if path.startswith(_PLACES)}
    return idle(settings) - idle(raw) - varied


def without(factors: Iterable[AnyFactor], settings: dict[str, Any]) -> tuple[str, ...]:
    """The keys of the factors that vary nothing in a treatment of these `settings`: nothing lies on their places there.

    A factor that varies something beside such places is none of them.
    """
    places = _table(_table(settings.get("environment")).get("places"))
    lying, found = [name for value in _files(settings) for name in parts(value)], set[str]()
    while lying:
        if (name := lying.pop()) in places and name not in found:
            found.add(name)
            place = _table(places[name])
            lying += [one for one in (place.get("log"), _on(place)) if isinstance(one, str)]
    return tuple(factor.key for factor in factors if (varied := _places_varied(factor.paths)) and not varied & found)


def _places_varied(paths: Iterable[str]) -> set[str]:
    """The places of which alone something is varied; none where anything else is, too."""
    found = {path.split(".")[2] if path.startswith(_PLACES) else None for path in paths}
    return set() if None in found else {name for name in found if name is not None}


def _paths(factor: Any) -> list[str]:
    """What a factor sets, as far as it can be read."""
    key = _table(factor).get("path")
    levels = _table(factor).get("levels")
    each = [_table(_table(level).get("set")) for level in levels] if isinstance(levels, list) else []
    return [str(key)] if key is not None else [path for one in each for path in one]


def parts(value: Any) -> list[str]:
    """The places of a part, or of the tables of one."""
    return [str(one) for one in (value.values() if isinstance(value, dict) else [value])]


def _files(raw: dict[str, Any]) -> Iterator[Any]:
    yield from _table(_table(raw.get("target")).get("files")).values()


def _values(raw: dict[str, Any]) -> Iterator[Any]:
    yield from _files(raw)
    yield from (value for path, value in _set_by_levels(raw) if path.startswith(_PARTS))


def _set_by_levels(raw: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    factors = raw.get("factors")
    for factor in factors if isinstance(factors, list) else []:
        levels = _table(factor).get("levels")
        for level in levels if isinstance(levels, list) else []:
            key = _table(factor).get("path")
            setting = _table(_table(level).get("set")) if key is None else {str(key): level}
            yield from ((str(path), value) for path, value in setting.items())


def _on(place: Any) -> Any:
    return _table(_table(place).get("nfs")).get("on")


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
