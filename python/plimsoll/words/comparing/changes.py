"""What changed, in lines for the terminal: the parts that differ from zero with their wait events, then the others."""

import textwrap
from collections.abc import Callable

from plimsoll.analysis.breakdown.changes import CANNOT_TELL
from plimsoll.analysis.breakdown.document import Change, LatencyChange, Whole
from plimsoll.analysis.runs.document import Explained
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.record.verdict import Mean
from plimsoll.words.probes.breakdown import amount, is_told

Form = Callable[[Mean, bool], str]  # of a mean with its interval, with its sign or without
PARTS_MAX = 8
WAITS_OF_PART = 3
EACH_BY_ITSELF = (
    "  (per transaction; intervals are not corrected for the number of parts: of twenty parts that did not change "
    "about one excludes zero by chance; wait events are included in their parts)"
)
_WORTH = 0.05
_WIDTH = 80


def changes_lines(explained: Explained, spread: float | None = None) -> list[str]:
    """Lines for one treatment: the latency of each type, then the CPU. `spread`: the ratio by which equals differ."""
    lines = []
    for kind, difference in explained["latency"].items():
        of = "mean latency" if kind == ALL or len(explained["latency"]) == 1 else f"mean latency of {kind}"
        lines += [*head(of, difference, spread), *_parts(difference, difference["parts"], difference["waits"])]
        lines += _closure(difference)
    if explained["cpu"]:
        lines += head("CPU of the machine", explained["cpu"], spread)
        lines += _parts(explained["cpu"], explained["cpu"]["users"], [])
        if not explained["cpu"]["others_known"]:
            lines += wrapped(
                "the server's other processes: not known per transaction, because only slices of time were watched"
            )
    return lines


def head(of: str, difference: Whole, spread: float | None, form: Form = amount) -> list[str]:
    """A whole before and after, its difference, and whether that is told."""
    total = difference["total"]
    first, second = (_alone(value) for value in (difference["first"], difference["second"]))
    text = f"  {of}: {form(first, False)}, then {form(second, False)}: {form(total, True)}"
    if total["low"] is None:
        return [text, "    cannot tell: no interval from fewer than three blocks"]
    if not is_told(total):
        return [text, "    cannot tell whether it changed"]
    if difference["word"] == CANNOT_TELL:
        return [text, f"    cannot tell: equal trials differ as much (A/A {spread or 1:.2f} x)"]
    return [text]


def _alone(value: float) -> Mean:
    """A mean of which no interval is told."""
    return {"value": value, "low": None, "high": None, "blocks": 0}


def _parts(difference: Whole, rows: list[Change], waits: list[Change]) -> list[str]:
    told = [row for row in rows if row["word"] != CANNOT_TELL]
    lines = []
    for row in told[:PARTS_MAX]:
        lines.append(line(row, "    "))
        mine = [wait for wait in waits if wait["part"] == row["name"] and wait["word"] != CANNOT_TELL]
        lines += [line(wait, "      ") for wait in mine[:WAITS_OF_PART]]
    least = _WORTH * abs(difference["total"]["value"])
    others = [row["name"] for row in told[PARTS_MAX:]]
    unknown = [row["name"] for row in rows if row["word"] == CANNOT_TELL and abs(row["difference"]["value"]) >= least]
    if others:
        lines += wrapped(f"also changed: {', '.join(others)}")
    return lines + (wrapped(f"cannot tell for: {', '.join(unknown)}") if unknown else [])


def line(row: Change, indent: str, form: Form = amount) -> str:
    """A row: its share of the difference, its difference, its name."""
    share = "" if row["share"] is None else f"{row['share']:+.0%}"
    return f"{indent}{share:>6}  {form(row['difference'], True):<30}  {row['name']}"


def _closure(difference: LatencyChange) -> list[str]:
    error = difference["closure_error"]
    if error is None or abs(error["value"]) <= _WORTH * abs(difference["total"]["value"]):
        return []
    return wrapped(f"{amount(error)} of it is not attributed to any part")


def wrapped(text: str, first: str = "    ", then: str = "      ") -> list[str]:
    """A sentence in lines that fit a terminal."""
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=then)
