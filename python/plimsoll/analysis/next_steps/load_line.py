"""What to do next after a search for the load line, from capacity.json."""

from typing import Literal

from plimsoll.analysis.capacity.document import Capacity

# keep_below: the line is the answer; generator: the load is the limit; longer: the time did not suffice; look: the
# objective is out of reach, and what takes the time is the question.
Kind = Literal["keep_below", "generator", "longer", "look"]
_TIMES_LONGER = 2
_WIDE = 1.1  # ratio of the interval's ends from which on a longer search is worth it


def steps(verdict: Capacity) -> list[Kind]:
    """In the order in which somebody would take them."""
    line = verdict["line"]
    found: list[Kind] = []
    if line["status"] == "found":
        found.append("keep_below")
        is_wide = line["low"] and line["high"] and line["high"] / line["low"] > _WIDE
        return [*found, "longer"] if is_wide else found
    if line["generator"]:
        found.append("generator")
    elif line["status"] == "below":
        found.append("look")
    return [*found, "longer"]


def minutes_longer(verdict: Capacity) -> float:
    """Minutes of a search that is worth being made after this one."""
    return float(verdict["budget_seconds"] or 0.0) / 60 * _TIMES_LONGER
