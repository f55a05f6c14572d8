"""What the kernel's log told during a run and what of its memory grows; says nothing that the verdict does not hold."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.kernel.document import KernelOfRun, ToldEvent
from plimsoll.analysis.soak.document import Growth, Slope
from plimsoll.analysis.soak.growth import GROWS
from plimsoll.experiment import size
from plimsoll.words.part import Sentences

Json = dict[str, Any]
SECTION = "kernel"
CALLED = {
    "panic": "panic",
    "oops": "oops",
    "lockup": "lockup",
    "hung_task": "hung task",
    "rcu_stall": "RCU stall",
    "bug": "BUG",
    "warning": "WARNING",
    "oom": "out of memory",
    "allocation": "failed allocation",
    "io": "I/O error",
    "file_system": "file system error",
    "machine_check": "hardware error",
    "thermal": "too hot",
}
SAID_MAX = 80


def kernel_of(verdict: Json) -> KernelOfRun | None:
    """None of a run that did not watch the kernel."""
    kernel: KernelOfRun | None = verdict.get("kernel")
    return kernel


def event_words(event: ToldEvent) -> str:
    """ "WARNING 12.3 s into trial 2 (measure): its text"."""
    when = "" if event["seconds"] is None else f"{event['seconds']:.1f} s into "
    by = ", written by a program" if event["by"] == "program" else ""
    called = CALLED.get(event["what"], event["what"])
    return f"{called}, {when}trial {event['trial']} ({event['segment']}){by}: {event['text']}"


def growth_words(growth: Growth) -> str:
    """ "slab dentry +3.1 MiB/h [2.9, 3.3]"."""
    slope = growth["an_hour"]
    assert slope is not None  # what has no slope does not grow
    rest = "" if growth["verdict"] == GROWS else ", and settles"
    return f"{growth['name']} {_slope(slope, growth['unit'])}{rest}"


def _slope(slope: Slope, unit: str) -> str:
    scale, called = 1.0, f" {unit}"
    if unit == "bytes":
        scale, called = next(
            ((one, f" {name}") for one, name in ((2.0**30, "GiB"), (2.0**20, "MiB")) if slope["value"] >= one),
            (1024.0, " KiB"),
        )
    value, low, high = (slope[end] / scale for end in ("value", "low", "high"))  # type: ignore[literal-required]
    # Three digits; large counts whole, in place of powers of ten.
    form = ",.0f" if abs(value) >= 100 else ".3g"
    return f"{value:+{form}}{called}/h [{low:{form}}, {high:{form}}]"


def floor_words(growth: Growth) -> str:
    """From what to what it rose."""
    first, last = growth["first"], growth["last"]
    assert first is not None and last is not None
    if growth["unit"] == "bytes":
        return f"{size.show(int(first))} to {size.show(int(last))}"
    return f"{first:,.0f} to {last:,.0f} {growth['unit']}"


def _warns(verdict: Json) -> list[str]:
    kernel = kernel_of(verdict)
    if kernel is None:
        return []
    said = []
    if kernel["counts"]:
        told = ", ".join(f"{CALLED.get(name, name)} x {count}" for name, count in kernel["counts"].items())
        first = kernel["events"][0]["text"] if kernel["events"] else ""
        cut = first if len(first) <= SAID_MAX else f"{first[: SAID_MAX - 3]}..."
        said.append(f"the kernel's log has {told}" + (f'; first "{cut}"' if cut else ""))
    if unread := kernel["lost"].get("overwritten", 0) + kernel["lost"].get("unreadable", 0):
        said.append(f"{unread} records of the kernel's log were lost: what they told is not known")
    said += [f"the kernel's log was not read: {reason}" for reason in kernel["refused"]]
    grows = [growth_words(one) for one in kernel["growth"] if one["verdict"] == GROWS]
    if grows:
        said.append("keeps growing: " + "; ".join(grows[:3]) + ("; and more" if len(grows) > 3 else ""))
    return said


SENTENCES = Sentences("kernel", warns=_warns, section=SECTION)
