"""One comparison of levels in a sentence.

A comparison without an interval gets no ratio in its sentence, because a bare ratio would be read as a finding.
"""

import math
from collections.abc import Mapping
from typing import Any

from plimsoll.analysis.comparing.unbounded import blocks_words
from plimsoll.analysis.metric import TRANSACTION, Metric
from plimsoll.analysis.metrics import metric_of
from plimsoll.record.verdict import Comparison, Level, Ratio

NO_INTERVAL = "[no interval]"
# By the fewest blocks that tell anything.
_FEW = {3: "fewer than three common blocks", 2: "one start of each server: how far starts differ is not known"}


def ratio(value: Mapping[str, Any]) -> str:
    """1.42 x [1.31, 1.54]; without interval the bare ratio says so, and one that is a bound says which."""
    if value.get("ratio") is None:
        return "a ratio that is not known"
    return f"{_bound(value)}{value['ratio']:.2f} x {ends(value)}"


def _bound(value: Mapping[str, Any]) -> str:
    return f"{value['bound']} " if value.get("bound") else ""


def ends(value: Mapping[str, Any]) -> str:
    """[1.31, 1.54], with "no bound" where a ratio is only a bound; [no interval] where there is none."""
    low, high = value.get("low"), value.get("high")
    if low is None and high is None:
        return NO_INTERVAL
    return f"[{'no bound' if low is None else f'{low:.2f}'}, {'no bound' if high is None else f'{high:.2f}'}]"


def _slower(value: Ratio, metric: Metric) -> str:
    return f"{_bound(value)}{value['ratio']:.2f} x {metric.worse} {ends(value)}"


def _worse(level: Level, metric: Metric) -> str:
    """How much worse a level is; "worst" where no block has a bound."""
    unbounded, slower = level.get("unbounded"), level["times_slower"]
    assert slower is not None, "it was found to be worse"
    text = _slower(slower, metric)
    if not unbounded:
        return text
    if unbounded["blocks"] == unbounded["of"]:
        return f"worst: {blocks_words(unbounded)}, {text}"
    return f"{text} ({blocks_words(unbounded)})"


def _unbounded(level: Level, metric: Metric) -> str:
    """In how many blocks a level that is not worse has no bound, and the least that its ratio to the best can be."""
    slower = level["times_slower"]
    least = f", {_slower(slower, metric)}" if slower and slower.get("bound") == "at least" else ""
    assert level["unbounded"] is not None, "only such are told so"
    return f"{blocks_words(level['unbounded'])}{least}"


def in_few_words(level: Level, metric: Metric) -> str:
    """What is said of a level beside its mark: best, 1.42 x slower [1.31, 1.54], not told apart."""
    if level["verdict"] == "worse" and level["times_slower"]:
        return _worse(level, metric)
    if unbounded := level.get("unbounded"):
        return blocks_words(unbounded)
    if level["verdict"] == "best estimate":
        return "best estimate"
    if level["verdict"] == "cannot tell":
        return "not distinguishable"
    return level["verdict"]


def _span(comparison: Comparison, chosen: list[str]) -> str:
    """A to B when the levels stand side by side in the sweep, else all of them."""
    order = [level["level"] for level in comparison["levels"]]
    places = [order.index(level) for level in chosen]
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"{chosen[0]} to {chosen[-1]}"
    return ", ".join(chosen)


def at_words(comparison: Mapping[str, Any]) -> str:
    """The other factors, for a sentence: "at database size 2 x memory"; empty when there are none."""
    names = comparison.get("at_labels") or {}
    parts = [f"{names.get(path, path)} {level}" for path, level in comparison["at"].items()]
    return "at " + ", ".join(parts) if parts else ""


def _is_never_bounded(level: Level) -> bool:
    unbounded = level.get("unbounded")
    return bool(unbounded and unbounded["blocks"] == level["blocks"])


def _times(level: Level) -> float:
    """How many times slower a level is; without bound where that is not known."""
    slower = level["times_slower"]
    return (slower["ratio"] if slower else None) or math.inf


def headline(comparison: Comparison, work: str = TRANSACTION) -> str:
    """One sentence for one comparison; `work`: what a unit of it is called."""
    name, levels = comparison["label"], comparison["levels"]
    measured = [level for level in levels if level["estimate"] is not None]
    where = at_words(comparison)
    judged = metric_of(comparison.get("metric"))
    where = where if judged.is_usual else f"{where}, by {judged.name}".lstrip(", ")
    tail = f" ({where})" if where else ""
    if not measured:
        lacks = f" with a value (too many {work}s were not answered in time, or too few done)"
        return f"{name}: no verdict, because no trial could be used{lacks if judged.may_be_unbounded else ''}{tail}"
    if comparison["grade"] == "none":
        best = comparison["reference"]
        most = "lowest" if judged.better == "lower" else "highest"
        too_few = _FEW.get(comparison.get("blocks_min", 3), _FEW[3])
        return f"{name}: no verdict from {too_few}; {most} estimate at {best}{tail}"
    if all(_is_never_bounded(level) for level in measured) and judged.better == "higher":
        return f"{name}: no verdict, every level stood still in every block{tail}"
    if all(_is_never_bounded(level) for level in measured):
        what = f"too many of the {work}s that were due were not answered in time"
        return f"{name}: no verdict, {judged.name} is unbounded in every block of every level ({what}){tail}"
    inside = comparison["best_set"]
    measured = [level for level in measured if level["verdict"] != "too few blocks"]
    few = [level["level"] for level in levels if level["verdict"] in ("too few blocks", "no data")]
    tail = (f"; not judged, too few blocks: {', '.join(few)}" if few else "") + tail
    losers = sorted(
        (level for level in levels if level["verdict"] == "worse" and level["times_slower"]),
        key=lambda level: -_times(level),
    )
    doubtful = [level for level in levels if level.get("unbounded") and level not in losers]
    tail = "".join(f"; {level['level']}: {_unbounded(level, judged)}" for level in doubtful) + tail
    sure = [one for one in inside if one == comparison["reference"] or one not in {d["level"] for d in doubtful}]
    if len(inside) == len(measured):
        if comparison["best_set_alike"]:
            return f"{name} {_span(comparison, inside)}: no difference larger than {comparison['delta']:.0%}{tail}"
        return f"{name} {_span(comparison, inside)}: indistinguishable; cannot tell any of them apart{tail}"
    alone = "best" if len(inside) == 1 else "best estimate"
    best = f"{name} {_span(comparison, sure)}: {'indistinguishable best' if len(sure) > 1 else alone}"
    others = ", ".join(f"{level['level']} is {_worse(level, judged)}" for level in losers[:3])
    more = f", and {len(losers) - 3} more" if len(losers) > 3 else ""
    return f"{best}{'; ' + others + more if others else ''}{tail}"
