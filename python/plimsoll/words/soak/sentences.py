"""What a soak has shown: whether its rounds drifted, where they changed, and what happened; nothing that the verdict
does not hold."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import shorten
from typing import Any, Final

from plimsoll.analysis.metric import TRANSACTION
from plimsoll.analysis.metrics import metric_of, unit_of_work
from plimsoll.analysis.soak.document import Crash, DiskChange, FoundInside, FoundStep, Interruption, Share, SoakOfRun
from plimsoll.analysis.soak.growth import GROWS
from plimsoll.analysis.soak.rounds import CANNOT_TELL, EQUAL_SPEED
from plimsoll.experiment import size
from plimsoll.quantities import elapsed
from plimsoll.words.kernel.sentences import growth_words
from plimsoll.words.part import Sentences

Json = dict[str, Any]
KEY: Final = "soak"
SECTION: Final = "soak"
MOVED: Final = {"lower": "fell", "higher": "rose"}
SHOWN_MAX, TEXT_MAX = 3, 160
ENDED: Final = {
    "crash": "it ended with the crash of the server",
    "failures": "it ended early, for it failed again and again",
    "rounds": "it ended early, for its data are enough for no more rounds",
}


def soak_of(verdict: Json) -> SoakOfRun | None:
    """None of any other run."""
    found: SoakOfRun | None = verdict.get(KEY)
    return found


def days(seconds: float) -> str:
    """How long, in days where it is days."""
    return elapsed(seconds) if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def when(epoch_ns: int | None) -> str:
    """A time of the world, to the second."""
    if epoch_ns is None:
        return "at a time that is not known"
    return f"{datetime.fromtimestamp(epoch_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def share_words(share: Share) -> str:
    """ "-8.7 % [-9.4, -8.0]"."""
    form = "+.2g" if abs(share["value"]) < 0.1 else "+.1f"
    value, low, high = (format(100 * share[end], form) for end in ("value", "low", "high"))  # type: ignore[literal-required]
    return f"{value} % [{low}, {high}]"


def drift_words(found: SoakOfRun) -> str:
    """The verdict on the drift, with the whole of it."""
    drift, name = found["drift"], metric_of(found["metric"]).name
    count = len(found["each"])
    rounds = f"{count} round{'' if count == 1 else 's'} in {days(found['spent_s'])}"
    over = f"over {rounds}"
    if drift["over_all"] is None:
        return f"{name}: cannot tell whether it drifts; {rounds} {'is' if count == 1 else 'are'} too few"
    whole = share_words(drift["over_all"])
    if drift["told"] == EQUAL_SPEED and (equal := drift["at_equal_speed"]) is not None:
        over, whole = f"at equal speed of the machine {over}", f"{share_words(equal['over_all'])} (as measured {whole})"
    if (moved := MOVED.get(drift["verdict"])) is not None:
        how = " in steps" if drift["shape"] == "in steps" else ""
        return f"{name} {moved}{how} {over}: {whole}"
    if drift["verdict"] == CANNOT_TELL:
        return f"{name}: cannot tell whether it drifts {over}: {whole}"
    return f"{name}: {drift['verdict']} {over}: {whole}"


def machine_words(found: SoakOfRun) -> str | None:
    """What the machine's own speed did to the rounds; None where it is not known, or did nothing that shows."""
    drift, name = found["drift"], metric_of(found["metric"]).name
    if (equal := drift["at_equal_speed"]) is None or drift["scatter"] is None:
        return None
    widest = 100 * equal["by_machine_widest"]
    scatter, left = (100 * one for one in (drift["scatter"], equal["scatter"]))
    drifts = "" if drift["told"] == EQUAL_SPEED else f", and the drift is {share_words(equal['over_all'])}"
    return (
        f"the machine's own speed changed {name} by up to {widest:.2g} % from one round to another: at equal speed "
        f"neighbouring rounds scatter by {left:.2g} %, as measured by {scatter:.2g} %{drifts}"
    )


def next_words(found: SoakOfRun) -> str:
    """What follows from how the rounds went."""
    drift = found["drift"]
    if drift["steps"] or drift["verdict"] in MOVED:
        return "Read in which rounds it changed, and what the machine did in them"
    if drift["verdict"] != CANNOT_TELL:
        return "Read how the rounds compare with the first"
    scatter = drift["scatter"]
    why = "" if scatter is None else f": neighbouring rounds scatter by {100 * scatter:.1f} %"
    return f"Soak for longer, or where nothing else runs{why}"


def step_words(step: FoundStep, found: SoakOfRun) -> str:
    """A change for good, and when."""
    began = next((one["began_epoch_ns"] for one in found["each"] if one["round"] == step["round"]), None)
    return f"a change for good before round {step['round']} ({when(began)}): {share_words(step['size'])}"


def inside_words(change: FoundInside, found: SoakOfRun, work: str = TRANSACTION) -> str:
    """A change for good inside a round, and when; of what was done, whatever the rounds are judged by."""
    began = next((one["began_epoch_ns"] for one in found["each"] if one["round"] == change["round"]), None)
    at = None if began is None else began + round(change["after_s"] * 1e9)
    equal = change.get("at_equal_speed")  # not in verdicts of before there was one
    left = "" if equal is None else f"; at equal speed of the machine {share_words(equal)}"
    return f"{work}s done changed inside round {change['round']} ({when(at)}): {share_words(change['size'])}{left}"


def crash_words(crash: Crash) -> str:
    """When, and in the server's own words."""
    return f"{when(crash['epoch_ns'])}, in round {crash['round']}: {_cut(crash['text'])}"


def _cut(text: str) -> str:
    """At a word, where it is long: of one line."""
    return shorten(text, TEXT_MAX, placeholder=" …")


def interruption_words(one: Interruption) -> str:
    """What was cut, when it had begun, and why."""
    where = "the start of the server" if one["round"] is None else f"{one['round']}, attempt {one['attempt']}"
    began = "" if one["began_epoch_ns"] is None else f", begun {when(one['began_epoch_ns'])}"
    return f"{where}{began}: {_cut(one['why'])}"


def _leads(verdict: Json) -> list[str]:
    found = soak_of(verdict)
    if found is None:
        return []
    steps = [step_words(step, found) for step in found["drift"]["steps"]]
    inside = [change for change in found["inside"] if not change.get("by_machine")]
    steps += [inside_words(change, found, unit_of_work(verdict)) for change in inside]
    return [drift_words(found), *([] if (by := machine_words(found)) is None else [by]), *_shortened(steps)]


def _warns(verdict: Json) -> list[str]:
    found = soak_of(verdict)
    if found is None:
        return []
    said = []
    if crashes := found["crashes"]:
        count = "crashed" if len(crashes) == 1 else f"crashed {len(crashes)} times, first"
        said.append(f"the server {count} {crash_words(crashes[0])}")
    if (ended := ENDED.get(found["ended_by"] or "")) is not None:
        why = f" ({_cut(found['why'])})" if found["why"] else ""
        said.append(f"{ended} after {days(found['spent_s'])} of {days(found['length_s'])}{why}")
    if cut := found["interruptions"]:
        which = "one round or start was" if len(cut) == 1 else f"{len(cut)} rounds or starts were"
        said.append(f"{which} interrupted; the last: {interruption_words(cut[-1])}")
    if full := found["full"]:
        first = when(full[0]["epoch_ns"])
        said.append(f"the disk of the record was full, first {first}: series were thinned, and the soak went on")
    said += [disk_words(one) for one in found["disks"]]
    grows = [growth_words(one) for one in found["growth"] if one["verdict"] == GROWS]
    if grows:
        said.append("keeps growing: " + "; ".join(_shortened(grows)))
    return said


def disk_words(one: DiskChange) -> str:
    """What a disk counts of its own troubles."""
    name = one["counter"].replace("_", " ") + ("" if one["counter"].endswith("errors") else " sectors")
    return (
        f"{one['device']}: {name} rose from {one['first']:,} to {one['most']:,}, first in round {one['round']} (SMART)"
    )


def memory_words(found: SoakOfRun) -> str:
    """How much front and agent took, and the record."""
    memory = found["memory"]
    both = (memory["front_bytes_max"], memory["agent_bytes_max"])
    front, agent = ("not known" if most is None else size.show(most) for most in both)
    record = f"{size.show(found['record_bytes'])} of at most {size.show(found['record_bytes_max'])}"
    return f"memory at most: front {front}, agent {agent}; rounds in the record: {record}"


def thinned_words(found: SoakOfRun) -> str:
    """How many rounds have their series at which distance."""
    counts = sorted(found["thinned"].items(), key=lambda one: int(one[0]))
    return "series at " + ", ".join(f"{step} s in {count} round{'' if count == 1 else 's'}" for step, count in counts)


def _shortened(lines: list[str]) -> list[str]:
    left = len(lines) - SHOWN_MAX
    return [*lines[:SHOWN_MAX], f"and {left} more"] if left > 0 else lines


SENTENCES = Sentences(KEY, leads=_leads, warns=_warns, section=SECTION)
