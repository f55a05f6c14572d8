"""Table [soak] of the experiment file: rounds back to back on one server and one set of data, for days.

The fact that constrains it: what long use leaves behind is the question, so nothing is loaded anew between rounds, and
what is tidied up between them is said here and nowhere else. How long a round measures is measure.seconds; the tests
of decision_support are measured whole.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from plimsoll.experiment import size
from plimsoll.experiment.strict import Strict

LENGTH: Final = "14d"
SECONDS_MAX: Final = 366 * 86_400.0
ALLOWED: Final = "a number with s, m, h or d, such as 90s, 12h or 14d, at most 366d"
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_of(text: str) -> float:
    """A duration such as 14d, in seconds. Raises ValueError with what is allowed."""
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    seconds = float(amount[1]) * _UNITS[amount[2]] if amount else 0.0
    if not 0 < seconds <= SECONDS_MAX:
        raise ValueError(f"{text!r} is not a duration of a soak; allowed: {ALLOWED}")
    return seconds


def _checked(text: str) -> str:
    seconds_of(text)
    return text


def _of_its_own(value: int | str) -> int | str:
    try:
        size.parse(value)
    except ValueError as error:
        raise ValueError(f'{error}; allowed: a number of bytes, or a size such as "2 GiB"') from None
    return value


class Soak(Strict):
    """How a soak goes on: how long, what lies between its rounds, what ends it, how large its record may be."""

    length: Annotated[str, AfterValidator(_checked)] = Field(
        LENGTH, description=f"of all rounds, and what is tidied up between them, together: {ALLOWED}"
    )
    between: Literal["vacuum", "checkpoint", "nothing"] = Field(
        "vacuum", description="what is done between two rounds, and is no part of either"
    )
    after_crash: Literal["end", "go on"] = Field(
        "end",
        description="when the server has crashed, which is a result: whether the soak ends there, or goes on with "
        "what the server recovers to",
    )
    record_max: Annotated[int | str, AfterValidator(_of_its_own)] = Field(
        "2 GiB", description="of the whole record; series and rows are thinned to keep it"
    )

    @property
    def seconds(self) -> float:
        """Of the whole soak."""
        return seconds_of(self.length)

    @property
    def record_bytes_max(self) -> int:
        """The same of the record, in bytes."""
        return size.parse(self.record_max)
