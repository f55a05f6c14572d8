"""Decision support over a run: DBT-3's metrics and each query's time by treatment, what changed between treatments,
where a query's time goes, and how throughput drifts from test to test.

The fact that constrains it: a block has one time of each query, and 22 queries are looked at together. So intervals of
differences between treatments hold for all queries of a test at once (Holm), or a run would always find some query
that "changed"; and their errors are told by all queries of the test together (moderated.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from plimsoll.analysis.breakdown.parts import LAG, OTHER
from plimsoll.analysis.breakdown.trial import MEAN
from plimsoll.analysis.comparing.compare import word
from plimsoll.analysis.decision_support import plans as decision_support_plans
from plimsoll.analysis.decision_support.document import (
    BlockSeconds,
    DecisionSupport,
    MetricOver,
    PlanChange,
    QueryChange,
    QueryTime,
    TreatmentOfTests,
    TreatmentPair,
    TrialReading,
)
from plimsoll.analysis.decision_support.drift import drift, trend
from plimsoll.analysis.decision_support.load_test import load_test
from plimsoll.analysis.decision_support.metrics import DECISION_SUPPORT_METRICS, LIKE, WORKLOAD
from plimsoll.analysis.decision_support.trial import NAMES, geometric_mean, reading
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import CONFIDENCE, over_blocks, paired
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.statistics.moderated import holm, moderated
from plimsoll.record import Run
from plimsoll.record.verdict import Comparison, Mean, Used

TESTS: Final = ("power", "throughput")
WORKERS: Final = "workers"
# What a session waits for while others work for it, as the server names it.
_OF_WORKERS = (
    *("IPC:Hash", "IPC:Parallel", "IPC:Bgworker", "IPC:BgWorker", "IPC:ExecuteGather", "IPC:MessageQueue"),
    "IPC:AppendReady",
)
RULE = (
    "times of queries are geometric means over blocks, in the throughput test first over its streams; their ratios are "
    f"within blocks, with intervals that hold at {CONFIDENCE:.0%} for all queries of a test together (Holm); all of "
    "them tell how far they scatter"
)


def decision_support(
    run: Run,
    used: Used,
    comparisons: list[Comparison],
    split: Mapping[str, Any] | None,
    delta: float,
    spread_log: float,
) -> DecisionSupport | None:
    """The `decision_support` of verdict.json; None where the load was another one.

    `used`: the trials that entered, by block and treatment; `split`: the run's breakdown.
    """
    if (run.experiment.get("workload") or {}).get("name") != WORKLOAD:
        return None
    trials = {trial.number: trial for trial in run.trials}
    readings = {number: of_tests for number, trial in trials.items() if (of_tests := reading(trial)) is not None}
    by_treatment: dict[str, dict[int, TrialReading]] = {name: {} for name in run.plan.get("treatments") or {}}
    for (block, treatment), entry in sorted(used.items()):
        if entry["number"] in readings:
            by_treatment.setdefault(treatment, {})[block] = readings[entry["number"]]
    pairs = _pairs(comparisons)
    changes = [row for pair in pairs for row in _changes(pair, by_treatment, delta, spread_log)]
    plans = decision_support_plans.plan_changes(trials, by_treatment, pairs)
    _side_by_side(changes, plans)
    return {
        "like": LIKE,
        "rule": RULE,
        "names": {metric.key: metric.label for metric in DECISION_SUPPORT_METRICS},
        "treatments": {name: _treatment(name, blocks, split) for name, blocks in by_treatment.items()},
        "changes": changes,
        "plans": plans,
        "trials": list(readings.values()),
    }


def _treatment(name: str, blocks: Mapping[int, TrialReading], split: Mapping[str, Any] | None) -> TreatmentOfTests:
    first = next(iter(blocks.values()), None)
    return {
        "trials": [trial["number"] for trial in blocks.values()],
        "scale_factor": None if first is None else first["scale_factor"],
        "streams": None if first is None else first["streams"],
        "metrics": _metrics(blocks),
        "load": load_test(blocks),
        "queries": {test: _queries(blocks, test) for test in TESTS},
        "parts": _parts(name, split),
        "drift": drift(blocks),
        "trend": trend(blocks),
    }


def _metrics(blocks: Mapping[int, TrialReading]) -> dict[str, MetricOver]:
    """Each metric over blocks, and why trials have none: {metric: {`estimate`, `absent`: [{trial, why}], `notes`}}."""
    metrics: dict[str, MetricOver] = {}
    for metric in DECISION_SUPPORT_METRICS:
        figures = {
            trial["number"]: trial["figures"][metric.key] for trial in blocks.values() if metric.key in trial["figures"]
        }
        if not figures:
            continue
        values = [figure["value"] for figure in figures.values() if figure["value"] is not None]
        metrics[metric.key] = {
            "estimate": _over(values),
            "absent": [
                {"trial": number, "why": figure["why_absent"]}
                for number, figure in figures.items()
                if figure["value"] is None
            ],
            "notes": list(dict.fromkeys(note for figure in figures.values() for note in figure["notes"])),
        }
    return metrics


def _over(values: list[float]) -> Mean | None:
    return as_mean(over_blocks(values, log=True))


def _queries(blocks: Mapping[int, TrialReading], test: str) -> dict[str, QueryTime]:
    """Each query that was asked, by name: its time, or in which trials it failed."""
    queries: dict[str, QueryTime] = {}
    for name in NAMES:
        points: list[BlockSeconds] = [
            {"block": block, "value": value} for block, trial in blocks.items() if (value := seconds(trial, test, name))
        ]
        estimate = _over([point["value"] for point in points])
        asked = [trial for trial in blocks.values() if _is_asked(trial, test, name)]
        failed = [trial["number"] for trial in asked if _is_unfit(trial, test, name)]
        if estimate is not None or failed:
            queries[name] = {
                "value": None if estimate is None else estimate["value"],
                "low": None if estimate is None else estimate["low"],
                "high": None if estimate is None else estimate["high"],
                "blocks": 0 if estimate is None else estimate["blocks"],
                "points": points,
                "failed": failed,
            }
    return queries


def seconds(trial: TrialReading, test: str, name: str) -> float | None:
    """What a query took in a trial's test: the geometric mean over its streams; None if it was not done in each.

    The slow ones are those that time out: a mean over the others would be too short.
    """
    return None if _is_unfit(trial, test, name) else geometric_mean(trial["times_s"][test].get(name) or [])


def _is_asked(trial: TrialReading, test: str, name: str) -> bool:
    return any(
        work["name"] == name for segment in trial["segments"] if segment["test"] == test for work in segment["work"]
    )


def _is_unfit(trial: TrialReading, test: str, name: str) -> bool:
    return any(
        work["status"] != "done"
        for segment in trial["segments"]
        if segment["test"] == test
        for work in segment["work"]
        if work["name"] == name
    )


# --- between treatments ---------------------------------------------------------------------------------------------


def _pairs(comparisons: list[Comparison]) -> list[TreatmentPair]:
    """Each level against the best estimate of its comparison; against its first where no level has a figure, since
    queries may have times where the tests have none.
    """
    pairs: list[TreatmentPair] = []
    for comparison in comparisons:
        levels = comparison["levels"]
        base = next((level for level in levels if level["level"] == comparison["reference"]), levels[0])
        for level in levels:
            if level["treatment"] != base["treatment"]:
                pairs.append(
                    {
                        "first": base["treatment"],
                        "second": level["treatment"],
                        "at": comparison["at"],
                        "first_label": base["level"],
                        "second_label": f"{comparison['label']} {level['level']}",
                    }
                )
    return pairs


def _changes(
    pair: TreatmentPair, by_treatment: Mapping[str, Mapping[int, TrialReading]], delta: float, spread_log: float
) -> list[QueryChange]:
    """How much longer each query takes under the second treatment, within blocks, with one confidence for a test."""
    first, second = by_treatment.get(pair["first"]) or {}, by_treatment.get(pair["second"]) or {}
    changes: list[QueryChange] = []
    for test in TESTS:
        ratios = {
            name: [after / before for before, after in both if before and after]
            for name in NAMES
            if (
                both := [
                    (seconds(first[block], test, name), seconds(second[block], test, name))
                    for block in sorted(first.keys() & second.keys())
                ]
            )
        }
        able = {name: mean for name, values in ratios.items() if (mean := paired(np.log(values).tolist())) is not None}
        means = moderated(list(able.values()))
        errors = holm([difference.chance() for difference in means], 1 - CONFIDENCE)
        for name, mean, error in zip(able, means, errors, strict=True):
            estimate = _exp(mean.interval(1 - error))
            changes.append(
                {
                    **pair,
                    "test": test,
                    "query": name,
                    "ratio": estimate["value"],
                    "low": estimate["low"],
                    "high": estimate["high"],
                    "blocks": estimate["blocks"],
                    "verdict": _word(estimate, delta, spread_log),
                    "plan": None,
                }
            )
    return changes


def _exp(interval: Mapping[str, Any]) -> Mean:
    """A difference of logs as a ratio."""
    low, high = (None if interval[key] is None else math.exp(interval[key]) for key in ("low", "high"))
    return {"value": math.exp(interval["value"]), "low": low, "high": high, "blocks": interval["blocks"]}


def _side_by_side(changes: list[QueryChange], plans: list[PlanChange]) -> None:
    """Puts a change of plan beside the change of time: `plan` of a change is null where the plans are the same or not
    known, `change` of a plan that of the power test, whose queries the plans are of."""

    def key(row: QueryChange | PlanChange) -> tuple[str, ...]:
        return row["first"], row["second"], str(row["at"]), row["query"]

    by_query = {key(row): row for row in plans}
    for change in changes:
        plan = by_query.get(key(change))
        change["plan"] = None if plan is None else "other" if plan["is_told"] else "varies"
        if plan is not None and change["test"] == "power":
            plan["change"] = {
                "ratio": change["ratio"],
                "low": change["low"],
                "high": change["high"],
                "verdict": change["verdict"],
            }


def _word(estimate: Mean, delta: float, spread_log: float) -> str:
    """ "slower", "faster", "no relevant difference", "cannot tell"."""
    centre = math.log(estimate["value"])
    half = math.nan if estimate["high"] is None else math.log(estimate["high"]) - centre
    said = word(centre, half, delta, spread_log)
    return {"better": "slower", "worse": "faster"}.get(said, said)  # of times more is worse


# --- where a query's time goes --------------------------------------------------------------------------------------


def _parts(treatment: str, split: Mapping[str, Any] | None) -> dict[str, dict[str, float]]:
    """{query: {part: nanoseconds}} of the test that the breakdown is of; waits for workers are a part of their own.

    Without the lag: a query's time begins when it is sent.
    """
    types = (((split or {}).get("treatments") or {}).get(treatment) or {}).get("types") or {}
    parts_of: dict[str, dict[str, float]] = {}
    for name in NAMES:
        band = ((types.get(name) or {}).get("bands") or {}).get(MEAN)
        if not band:
            continue
        parts = {part: float(estimate["value"]) for part, estimate in band["parts"].items() if estimate and part != LAG}
        workers = sum(
            float(wait["ns_per_transaction"])
            for wait in types[name].get("waits") or []
            if wait["bucket"] == OTHER and str(wait["name"]).startswith(_OF_WORKERS)
        )
        if workers and OTHER in parts:
            parts |= {OTHER: max(0.0, parts[OTHER] - workers), WORKERS: workers}
        parts_of[name] = {part: ns for part, ns in parts.items() if ns > 0}
    return parts_of


def _judge(context: Context) -> DecisionSupport | None:
    return decision_support(
        context.run,
        context.used,
        context.comparisons,
        context.parts["breakdown"],
        context.delta,
        context.spread_log,
    )


PART = Part("decision_support", _judge, needs=("breakdown",))
