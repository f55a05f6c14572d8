"""System calls and functions that changed, in lines for the terminal: those that differ from zero, then the others."""

from collections.abc import Callable, Sequence

from plimsoll.analysis.breakdown.changes import CANNOT_TELL
from plimsoll.analysis.breakdown.document import Change, Whole
from plimsoll.analysis.probes.profile import is_kernel
from plimsoll.analysis.runs.document import CallsChange, Explained, FunctionsChange, Ranked
from plimsoll.record.verdict import Mean
from plimsoll.words.comparing.changes import Form, head, line, wrapped
from plimsoll.words.probes.breakdown import amount

ROWS_MAX = 8
SHOWN_MIN = 0.02  # of the largest difference that is told: what is less is only named
NAMES_MAX = 5
TOGETHER = (
    "  (system calls and functions: intervals are corrected for the length of each list: of the names in it at "
    "most one in twenty is expected to be there by chance)"
)
ABOUT = {"breakdown": "parts and wait events", "syscalls": "system calls", "profile": "functions"}
_WORTH = 0.05
_CALLERS = 4
_NAME_WIDTH = 60


def count(mean: Mean, signed: bool = True) -> str:
    """+1.02 [0.98, 1.06], of calls."""
    text = format(mean["value"], ("+" if signed else "") + ".3g")
    return text if mean["low"] is None else f"{text} [{mean['low']:.3g}, {mean['high']:.3g}]"


def call_lines(calls: CallsChange, spread: float | None = None) -> list[str]:
    """The time in system calls, then how many there are."""
    lines = []
    both = ((calls["time"], "time in system calls", amount), (calls["count"], "system calls", count))
    for difference, of, form in both:
        lines += head(of, difference, spread, form)
        lines += _rows(difference, difference, form, _call)
    if calls["lost"]:
        lines += wrapped("the probe lost events: these are lower bounds")
    return lines


def function_lines(functions: FunctionsChange, spread: float | None = None) -> list[str]:
    """The CPU of the server's processes by function: its own, then with what it calls."""
    samples = " and ".join(f"{number:,}" for number in functions["samples"])
    lines = head("CPU of the server's processes", functions, spread, amount)
    lines.append(f"    self time of functions (from {samples} samples):")
    lines += _rows(functions, functions["own"], amount, _function)
    lines.append("    with their callees:")
    lines += _rows(functions, functions["with_callees"], amount, _function)
    if functions["lost"]:
        lines += wrapped("the probe lost samples: these are lower bounds")
    return lines


def absent_lines(explained: Sequence[Explained]) -> list[str]:
    """What is not known of which treatments, why, and what to do."""
    lines = []
    for name, about in ABOUT.items():
        reasons: dict[str, list[str]] = {}
        for treatment in explained:
            if name in treatment["absent"]:
                reasons.setdefault(treatment["absent"][name], []).append(treatment["treatment"])
        for why, labels in reasons.items():
            whose = "" if len(labels) == len(explained) else f", {', '.join(labels)}"
            lines.append(f"What changed of {about}{whose}: not known: {why}")
    return lines


def _call(row: Change) -> str:
    return str(row["name"]) + (f" ({row['part']})" if row["part"] else "")


def _function(row: Change) -> str:
    name = _printable(row["name"])
    return f"{name.removesuffix('_[k]')} (kernel)" if is_kernel(name) else name


def _rows(whole: Whole, difference: Ranked, form: Form, named: Callable[[Change], str]) -> list[str]:
    changed = [row for row in difference["rows"] if row["word"] != CANNOT_TELL]
    largest = max((abs(row["difference"]["value"]) for row in changed), default=0.0)
    shown = [row for row in changed if abs(row["difference"]["value"]) >= SHOWN_MIN * largest][:ROWS_MAX]
    lines = []
    for row in shown:
        lines.append(line({**row, "name": _shortened(named(row))}, "    ", form))
        lines += _callers(row)
    others = difference["others"]
    if others is not None and others["word"] != CANNOT_TELL:
        lines.append(line({**others, "name": f"{difference['others_count']:,} others together"}, "    ", form))
    least = _WORTH * abs(whole["total"]["value"])
    unknown = [
        named(row)
        for row in difference["rows"]
        if row["word"] == CANNOT_TELL and abs(row["difference"]["value"]) >= least
    ]
    if changed[len(shown) :]:
        lines += wrapped(f"also changed: {_some([named(row) for row in changed[len(shown) :]])}")
    return lines + (wrapped(f"cannot tell for: {_some(unknown)}") if unknown else [])


def _some(names: list[str]) -> str:
    left = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {left} more" if left > 0 else "")


def _callers(row: Change) -> list[str]:
    """Who called it where it changed most, the nearest first; its process's role ends the line."""
    stack = [_printable(name) for name in row.get("stack", [])]
    if len(stack) < 2:
        return []
    role, callers = stack[0], [name.removesuffix("_[k]") for name in reversed(stack[1:-1])]
    shown = callers[:_CALLERS] + (["…"] if len(callers) > _CALLERS else [])
    return wrapped(" < ".join([*(_shortened(name) for name in shown), role]), "          by ", "            ")


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


def _printable(name: str) -> str:
    """Names come from files that anybody may have made: nothing of them steers the terminal."""
    return "".join(character if character.isprintable() else "?" for character in name)
