"""What to do next, in sentences: an imperative, and the command where one does it."""

import shlex
from collections.abc import Callable
from typing import Any

from plimsoll.analysis.breakdown.document import Breakdown
from plimsoll.analysis.next_steps.step import Step, StepKind
from plimsoll.quantities import elapsed
from plimsoll.words.said import Said
from plimsoll.words.soak import sentences as soaks

Json = dict[str, Any]


def next_lines(verdict: Json) -> list[Said]:
    """A sentence a step, in their order, with the section that says more; [] for a verdict of before there were any."""
    steps: list[Step] = verdict.get("next_steps") or []
    return [Said(_WORDS[step["kind"]](verdict, step), _section(verdict, step), command_words(step)) for step in steps]


def _section(verdict: Json, step: Step) -> str:
    if step["kind"] == "look":
        if soaks.soak_of(verdict) is not None:
            return soaks.SECTION
        return "breakdown" if _has_breakdown(verdict) else "levels"
    return _SECTIONS.get(step["kind"], "")


def _has_breakdown(verdict: Json) -> bool:
    breakdown: Breakdown | None = verdict.get("breakdown")
    return bool(breakdown and breakdown["treatments"])


def command_words(step: Step) -> str:
    """The command as it is typed; empty for a step without one."""
    given = shlex.join(step.get("command", []))
    return f'{given} --set \'target.settings.NAME=["one", "another"]\'' if step["kind"] == "vary" else given


def _at(step: Step) -> str:
    text = ", ".join(f"{name} {level}" for name, level in step["at"].items())
    return f" at {text}" if text else ""


def _resume(verdict: Json, _step: Step) -> str:
    kind = "soak" if verdict.get("soak") else "run"
    return f"Resume the {kind}: ./plimsoll {kind} --resume, and this run's folder"


def _mend(verdict: Json, _step: Step) -> str:
    count = len(verdict["exclusions"])
    return f"See why {count} {'trial was' if count == 1 else 'trials were'} excluded, fix the cause, and run again"


def _full(_verdict: Json, _step: Step) -> str:
    return "Before deciding by a quick run, run it in full:"


def _choose(_verdict: Json, step: Step) -> str:
    levels, label = step["levels"], step["label"]
    if len(levels) == 1:
        return f"Set {label} to {levels[0]}{_at(step)}"
    return f"Set {label} to one of {', '.join(levels)}{_at(step)}: these cannot be told apart"


def _ease(_verdict: Json, _step: Step) -> str:
    return "Lower the rate until transactions are answered in time; ./plimsoll capacity finds that rate"


def _look(verdict: Json, _step: Step) -> str:
    if (soak := soaks.soak_of(verdict)) is not None:
        return soaks.next_words(soak)
    if _has_breakdown(verdict):
        return "Read where the time of a transaction goes"
    return "Read how the levels compare in the other measures"


def _extend(_verdict: Json, step: Step) -> str:
    beyond = "larger" if step["end"] == "largest" else "smaller"
    return f"Try {beyond} levels, too: {step['label']} {step['levels'][0]} is the {step['end']} that was tried"


def _longer(_verdict: Json, step: Step) -> str:
    took = f", about {elapsed(step['seconds'])}" if step["seconds"] is not None else ""
    if not step["levels"]:
        return f"Run more blocks for a verdict with intervals{took}:"
    what = f"{step['levels'][0]} from {step['levels'][1]}, if they differ by a ratio of {step['ratio']:.2f}"
    return f"To distinguish {what}: about {step['blocks']} blocks{took}:"


def _vary(_verdict: Json, _step: Step) -> str:
    return "Give it levels to compare:"


_WORDS: dict[StepKind, Callable[[Json, Step], str]] = {
    "resume": _resume,
    "mend": _mend,
    "full": _full,
    "choose": _choose,
    "ease": _ease,
    "extend": _extend,
    "longer": _longer,
    "vary": _vary,
    "look": _look,
}
_SECTIONS = {"mend": "trials", "choose": "levels", "ease": "time", "longer": "levels"}
