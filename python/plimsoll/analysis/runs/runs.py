"""Two runs against each other, treatment by treatment.

Their blocks were not interleaved: whatever drifted between the two runs is in the ratio as much as what was changed,
and no interval accounts for it. Runs whose machines differ in a checked key are refused unless the caller insists.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plimsoll.analysis import methods
from plimsoll.analysis.comparing import unbounded
from plimsoll.analysis.comparing.compare import DELTA, word
from plimsoll.analysis.comparing.evidence import Evidence
from plimsoll.analysis.comparing.levels import pair_ratio
from plimsoll.analysis.comparing.standing import chosen, twins
from plimsoll.analysis.guest.part import KEY as GUEST
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.metrics import JUDGED, METRICS
from plimsoll.analysis.runs.explain import BREAKDOWN, explain, sides_of
from plimsoll.analysis.statistics.intervals import grade, welch
from plimsoll.analysis.verdict import analyse, read_by_parts
from plimsoll.record import Run

Json = dict[str, Any]
Difference = str | Json
NOT_INTERLEAVED = (
    "the blocks of the two runs were not interleaved: a drift of the machine between the runs shows as a difference, "
    "and the intervals do not account for it; run both settings as levels of one experiment to be sure"
)


class NotComparable(Exception):
    """The two runs were made on machines or with settings that differ in a checked key."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = [difference_words(difference) for difference in differences]
        super().__init__("the runs differ in what is checked: " + "; ".join(self.differences))


class Unknown(Exception):
    """A treatment that the run does not have; the message names those that it has."""


def difference_words(difference: Difference) -> str:
    """A difference of two fingerprints: text as it is, or {key, a, b}."""
    if isinstance(difference, str):
        return difference
    a, b = ("nothing" if difference.get(side) is None else str(difference[side]) for side in "ab")
    return f"{difference.get('key')}: {a} against {b}"


def unpaired(first: Sequence[float], second: Sequence[float]) -> Json:
    """Ratio second over first with Welch's t interval on logs; no interval below three blocks on either side."""
    difference = welch(np.log(np.asarray(first, float)).tolist(), np.log(np.asarray(second, float)).tolist())
    assert difference is not None, "neither side is empty"
    low, high = (None if end is None else math.exp(end) for end in (difference["low"], difference["high"]))
    blocks = [len(first), len(second)]
    return {
        "ratio": math.exp(difference["value"]),
        "low": low,
        "high": high,
        "blocks": blocks,
        "grade": grade(min(blocks)),
    }


def _by_label(verdict: Json, metric: str) -> dict[str, list[tuple[float, bool]]]:
    """The metric of each block by the treatment's label, and whether it is only the least that it can be."""
    used = chosen(verdict["trials"])
    by_label: dict[str, list[tuple[float, bool]]] = {}
    for (_, treatment), entry in sorted(used.items()):
        label = verdict["treatments"].get(treatment, {}).get("label", treatment)
        value, is_beyond = unbounded.reading(entry, metric)
        if value:
            by_label.setdefault(label, []).append((value, is_beyond))
    return by_label


def _unpaired_row(sides: Sequence[list[tuple[float, bool]]], metric: Metric, delta: float, spread_log: float) -> Json:
    """Two sides of blocks that are not paired: a side that is unbounded in some is never said to be the better one."""
    row = unpaired(*([value for value, _ in side] for side in sides))
    beyond = [sum(is_beyond for _, is_beyond in side) for side in sides]
    half = math.log(row["high"] / row["ratio"]) if row["high"] else math.nan
    mean = (-1.0 if metric.better == "lower" else 1.0) * math.log(row["ratio"])
    if not any(beyond):
        return row | {"verdict": word(mean, half, delta, spread_log)}
    counts = {"unbounded": [{"blocks": n, "of": len(side)} for n, side in zip(beyond, sides, strict=True)]}
    if all(beyond):
        nothing = {"ratio": None, "low": None, "high": None, "bound": "unknown"}
        return row | counts | nothing | {"verdict": "cannot tell"}
    at_least = beyond[1] > 0
    said: str = "worse" if at_least else "better"
    always = max(beyond) == len(sides[at_least]) and unbounded.always_tells(min(map(len, sides)))
    is_told = always or word(mean, half, delta, spread_log) == said
    bound = {"high": None, "bound": "at least"} if at_least else {"low": None, "bound": "at most"}
    return row | counts | bound | {"verdict": said if is_told else "cannot tell"}


def compare_treatments(run: Run, first: str, second: str) -> Json:
    """Two treatments of one run, by label or id, within blocks. Raises Unknown with what there is."""
    read = read_by_parts(run)
    verdict = analyse(run, read)
    labels = {name: treatment["label"] for name, treatment in verdict["treatments"].items()}
    names = [_treatment(labels, word) for word in (first, second)]
    used, metric = chosen(verdict["trials"]), verdict["metric"]
    spread, delta = verdict["a_a"]["ratio_spread"], verdict["relevant_ratio"] - 1
    # levels of one pair are judged by their own blocks: a stored A/A is the spread beside them, and no floor
    evidence = methods.method_of(run, METRICS[metric], 0.0)(names, used, twins(verdict["trials"]), METRICS[metric])
    row = _paired_row(evidence, METRICS[metric], delta, math.log(spread) if spread else 0.0)
    sides = sides_of(run, verdict, read[BREAKDOWN])
    explained_sides = [sides.get(labels[name]) for name in names]
    explained = explain(labels[names[1]], explained_sides[0], explained_sides[1], spread, is_paired=True)
    return {
        "format": 1,
        "first": {"run": verdict["run"], "treatment": labels[names[0]], "path": str(run.path), **_guest(verdict)},
        "second": {"run": verdict["run"], "treatment": labels[names[1]], "path": str(run.path), **_guest(verdict)},
        "metric": metric,
        "metric_label": METRICS[metric].label,
        "relevant_ratio": verdict["relevant_ratio"],
        "ratio_spread": spread,
        "treatments": [{"treatment": labels[names[1]], **row}] if row else [],
        "explained": [explained] if explained else [],
        "only_first": [],
        "only_second": [],
        "caveats": [] if spread else ["no A/A evidence: how much two equal trials differ here is not known"],
    }


def _side(run: Run, verdict: Json) -> Json:
    """Which run it is."""
    return {"run": verdict["run"], "experiment": verdict["experiment"], "path": str(run.path), **_guest(verdict)}


def _guest(verdict: Json) -> Json:
    """Of a run on a guest kernel, since its times may be an emulator's; nothing of any other."""
    guest = verdict.get(GUEST)
    return {GUEST: guest} if guest else {}


def _paired_row(evidence: Evidence, metric: Metric, delta: float, spread_log: float) -> Json | None:
    """Two treatments over the blocks that they share, or each with a reference; None where there are none."""
    common = np.isfinite(evidence.copies[0]).all(1)
    compared, beyond = evidence.found, evidence.beyond[common]
    blocks = int(compared.shown.blocks[0, 1])
    if not blocks:
        return None
    if compared.touched[1, 0]:
        said: str = "worse" if compared.beaten[1, 0] else "better" if compared.beaten[0, 1] else "cannot tell"
    else:
        said = word(float(compared.shown.mean[1, 0]), float(compared.half()[1, 0]), delta, spread_log)
    row: Json = {**pair_ratio(compared, 0, 1, metric), "blocks": blocks, "verdict": said}
    if beyond.any():
        row["unbounded"] = [{"blocks": int(beyond_side.sum()), "of": row["blocks"]} for beyond_side in beyond.T]
    return row | {"grade": grade(row["blocks"], evidence.blocks_min)}


def _treatment(labels: Mapping[str, str], word: str) -> str:
    names = [name for name, label in labels.items() if word in (name, label)]
    if len(names) != 1:
        raise Unknown(f"no treatment is called {word!r}; this run has: {', '.join(labels.values())}")
    return names[0]


def compare_runs(run_a: Run, run_b: Run, differences: Sequence[Difference] = (), accept: bool = False) -> Json:
    """Compare treatments of the same label; raises NotComparable when there are differences and `accept` is false."""
    if differences and not accept:
        raise NotComparable(differences)
    read = [read_by_parts(run) for run in (run_a, run_b)]
    verdict_a, verdict_b = (analyse(run, parts) for run, parts in zip((run_a, run_b), read, strict=True))
    metric = verdict_a["metric"] if verdict_a["metric"] == verdict_b["metric"] else JUDGED
    first, second = _by_label(verdict_a, metric), _by_label(verdict_b, metric)
    evidence = [verdict["a_a"] for verdict in (verdict_a, verdict_b) if verdict["metric"] == metric]
    spreads = [spread_of["ratio_spread"] for spread_of in evidence if spread_of["ratio_spread"]]
    spread = max(spreads, default=None)
    delta = max(verdict_a["relevant_ratio"], verdict_b["relevant_ratio"], 1 + DELTA) - 1
    rows = []
    for label in first:
        if label not in second:
            continue
        spread_log = math.log(spread) if spread else 0.0
        rows.append(
            {"treatment": label, **_unpaired_row((first[label], second[label]), METRICS[metric], delta, spread_log)}
        )
    sides = [
        sides_of(*side) for side in ((run_a, verdict_a, read[0][BREAKDOWN]), (run_b, verdict_b, read[1][BREAKDOWN]))
    ]
    explained = [explain(label, sides[0].get(label), sides[1].get(label), spread) for label in first if label in second]
    caveats = [NOT_INTERLEAVED]
    if spread is None:
        caveats.append("neither run has A/A evidence: how much two equal trials differ here is not known")
    if differences:
        caveats.append(
            "compared although they differ in what is checked: " + "; ".join(map(difference_words, differences))
        )
    return {
        "format": 1,
        "first": _side(run_a, verdict_a),
        "second": _side(run_b, verdict_b),
        "metric": metric,
        "metric_label": METRICS[metric].label,
        "relevant_ratio": 1 + delta,
        "ratio_spread": spread,
        "treatments": rows,
        "explained": [changes for changes in explained if changes],
        "only_first": [label for label in first if label not in second],
        "only_second": [label for label in second if label not in first],
        "caveats": caveats,
    }
