"""Places on which nothing lies any more once levels of a factor are left out: they are left out with them.

The fact that constrains it: a place that no level ever named was forgotten or misspelt, and stays to be refused.
What is read here was not checked yet, so that nothing of its shape is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_FILES = "target.files."
_PLACES = "environment.places."
_PARTS = (_FILES, _PLACES)


def leave_out(raw: dict[str, Any], idle_before: set[str]) -> None:
    """Takes away, in place, what is idle now and was not before."""
    places = _table(_table(raw.get("environment")).get("places"))
    while gone := idle(raw) - idle_before:
        for name in gone:
            del places[name]


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


def parts(value: Any) -> list[str]:
    """The places of a part, or of the tables of one."""
    return [str(one) for one in (value.values() if isinstance(value, dict) else [value])]


def _values(raw: dict[str, Any]) -> Iterator[Any]:
    yield from _table(_table(raw.get("target")).get("files")).values()
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
