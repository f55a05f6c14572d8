"""The paths a factor may name, derived from the tables of the experiment file.

The fact that constrains it: a factor sets what a trial has of its own. What every trial of a run shares is marked
`Fixed` where it is declared; every other key of every table can be varied, in a table of free keys each that fits. A
field that may be a plain value as well as a table is one setting, and is given whole.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plimsoll.experiment.strict import Fixed, FreeKeys, NamedTables

Mark = TypeVar("Mark", Fixed, FreeKeys, NamedTables)
ANY = "*"  # stands for the name of a table that the user has named


@dataclass
class Paths:
    """What can be varied of a file's tables, and why the rest cannot; a table that may be one of several has the keys
    of all: which of them belong together is seen in each treatment."""

    tables: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    free: dict[str, FreeKeys] = field(default_factory=dict)
    fixed: dict[str, Fixed] = field(default_factory=dict)
    named: dict[str, NamedTables] = field(default_factory=dict)  # their tables stand here under the name ANY

    def check(self, path: str) -> None:
        """Raises ValueError where no factor may name the path: why, what is close to it, and what is allowed."""
        at = _above(path, self.named)
        wrong = None
        if at is not None and path != at:
            wrong = _wrong_key(self.named[at], path.removeprefix(f"{at}.").partition(".")[0], at)
        wrong = wrong or self._wrong(self._anonymous(path))
        if wrong is not None:
            why, allowed = wrong
            raise ValueError(f"{path!r} cannot be varied: {why}; allowed: {allowed}")

    def _wrong(self, path: str) -> tuple[str, str] | None:
        if (at := _above(path, self.fixed)) is not None:
            return self.fixed[at].why, self._everything()
        if path in self.settings:
            return None
        if path in self.tables:
            return "it is a table", f"its keys, {path}.*"
        if (at := _above(path, self.free)) is not None:
            return _wrong_key(self.free[at], path.removeprefix(f"{at}."), at)
        if (at := _above(path, self.settings)) is not None:
            return f"{at} is one setting and is given whole", at
        close = difflib.get_close_matches(path, sorted(self.settings))
        return (
            "there is no such key",
            f"{', '.join(close)}, or other {self._everything()}" if close else self._everything(),
        )

    def _anonymous(self, path: str) -> str:
        """The path with ANY for the name of a table that the user has named."""
        at = _above(path, self.named)
        if at is None or path == at:
            return path
        _, dot, inside = path.removeprefix(f"{at}.").partition(".")
        return f"{at}.{ANY}{dot}{inside}"

    def _everything(self) -> str:
        """In few words."""
        tables = ", ".join(f"{path}.*" for path in sorted(self.tables) if "." not in path)
        but = ", ".join(path for path in sorted(self.fixed) if "." in path)
        return f"keys of {tables} but {but}" if but else f"keys of {tables}"

    def parts(self, path: str) -> list[str]:
        """The keys that a path is made of. A free key may hold dots of its own, such as vm.swappiness in sysctl."""
        at = _above(self._anonymous(path), self.free)
        if at is None or at == self._anonymous(path):
            return path.split(".")
        above = at.count(".") + 1
        return path.split(".", above)


def paths_of(model: type[BaseModel]) -> Paths:
    """The paths of a file of this type."""
    found = Paths()
    _walk(model, "", found)
    return found


def _walk(model: type[BaseModel], above: str, found: Paths) -> None:
    for name, each in model.model_fields.items():
        path = f"{above}{each.alias or name}"
        if (fixed := _mark(each, Fixed)) is not None:
            found.fixed[path] = fixed
        elif (named := _mark(each, NamedTables)) is not None:
            found.tables |= {path, f"{path}.{ANY}"}
            found.named[path] = named
            for table in _tables(get_args(each.annotation)[1]):
                _walk(table, f"{path}.{ANY}.", found)
        elif tables := _tables(each.annotation):
            found.tables.add(path)
            for table in tables:
                _walk(table, f"{path}.", found)
        else:
            free = _mark(each, FreeKeys)
            if free is not None:
                found.free[path] = free
            (found.settings if free is None or free.is_varied_whole else found.tables).add(path)


def _mark(each: FieldInfo, kind: type[Mark]) -> Mark | None:
    return next((mark for mark in each.metadata if isinstance(mark, kind)), None)


def _tables(annotation: Any) -> list[type[BaseModel]]:
    """The tables that a type is one of; none where it may be a plain value."""
    arms = [arm for arm in _arms(annotation) if arm is not type(None)]
    tables = [arm for arm in arms if isinstance(arm, type) and issubclass(arm, BaseModel)]
    return tables if len(tables) == len(arms) else []


def _arms(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _arms(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for arm in get_args(annotation):
            yield from _arms(arm)
    else:
        yield annotation


def _above(path: str, known: dict[str, Any] | set[str]) -> str | None:
    """Which of `known` the path is, or lies in."""
    return next((one for one in known if f"{path}.".startswith(f"{one}.")), None)


def _wrong_key(free: FreeKeys, key: str, table: str) -> tuple[str, str] | None:
    try:
        free.check_key(key)
    except ValueError as error:
        why, _, allowed = str(error).partition("; allowed: ")
        return why, f"{table}.* with {allowed}"
    return None
