"""What every table of the experiment file is made of: closed tables and the values they share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from plimsoll.experiment import size


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
    """A table of the file: unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)
