"""What every table of the experiment file is made of: closed tables, the values they share, and marks of their fields.

The fact that constrains it: a mark is read by whoever derives something from the tables (experiment/paths.py), so that
what is true of a field stands at the field and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from plimsoll.experiment import size

Value = TypeVar("Value")


def _check_size(value: int | str) -> int | str:
    try:
        size.parse(value, memory=1)
    except ValueError as error:
        raise ValueError(f"{error}; allowed: {size.ALLOWED}") from None
    return value


def _check_cpus(value: str) -> str:
    if value != "all" and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value):
        raise ValueError(f'{value!r} is not a list of CPUs; allowed: "all", or numbers and ranges such as "0-3,6"')
    return value


Size = Annotated[int | str, AfterValidator(_check_size)]
Cpus = Annotated[str, AfterValidator(_check_cpus)]
Version = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
Scalar = bool | int | float | str
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Strict(BaseModel):
    """A table of the file: unknown keys are an error. What checks it is built when the first one is read: `undo` reads
    none."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True, defer_build=True)


@dataclass(frozen=True)
class Fixed:
    """Marks what every trial of a run shares, so that no factor may name it."""

    why: str


@dataclass(frozen=True)
class FreeKeys:
    """Marks a table whose keys are the user's, and checks them: a factor may name each that fits."""

    pattern: str
    what: str  # such as "the name of a setting"
    allowed: str
    is_varied_whole: bool = True  # whether a factor may name the table too, and so set all its keys at once

    def check_key(self, name: str) -> None:
        """Raises ValueError with what is allowed."""
        if not re.fullmatch(self.pattern, name):
            raise ValueError(f"{name!r} is not {self.what}; allowed: {self.allowed}")

    def _check(self, table: dict[str, Value]) -> dict[str, Value]:
        for name in table:
            self.check_key(name)
        return table

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))


@dataclass(frozen=True)
class NamedTables(FreeKeys):
    """Marks a table of tables, each of them under a name of the user's: a factor may name the keys of each."""

    is_varied_whole: bool = False
