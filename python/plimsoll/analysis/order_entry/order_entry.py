"""What the order-entry workload did, against the rules it is made after: mix, ranges, response times, throughput.

The transactions of all trials of a treatment are taken together: the rules are about one run of the load, and a trial
is often too short to tell. Nothing here decides between levels, and nothing here makes a result a published one: it
is "-like" whatever it is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from plimsoll.analysis.order_entry import ranges as bounds
from plimsoll.analysis.order_entry.document import Bound, Ledger, Limit, OfTreatment, OrderEntry, PerWarehouse, Rate
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.distributions import binomial_quantile, normal_quantile, rate_interval, share_interval
from plimsoll.analysis.statistics.intervals import CONFIDENCE, over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.trial import histograms
from plimsoll.analysis.trial.histograms import Histogram
from plimsoll.analysis.trial.readings import seconds_measured
from plimsoll.analysis.workload import Workload
from plimsoll.record import Run, Trial
from plimsoll.record.summary import Summary
from plimsoll.record.verdict import Used

Json = dict[str, Any]
WORKLOAD: Final = "order_entry"
LIKE = "TPC-C-like, not comparable to published results"
WITHOUT_USERS = "order entry without keying and think time: a different benchmark"
TPMC_LIKE, NEW_ORDERS = "tpmC-like", "New-Orders a minute"
# With no time for responses a warehouse's ten terminals make at most 12.86 a minute, and a result counts from 9 on.
CEILING_PER_WAREHOUSE, MINIMUM_PER_WAREHOUSE = 12.86, 9.0
TERMINALS_PER_WAREHOUSE = 10
INTERVAL_MINUTES_MIN = 120
NAMES: Final = {
    "new_order": "New-Order",
    "payment": "Payment",
    "order_status": "Order-Status",
    "delivery": "Delivery",
    "stock_level": "Stock-Level",
}
KINDS = tuple(NAMES)
# Of PostgreSQL: what is acknowledged is not on a disk, or may not survive a page that is written in half.
UNSAFE: Final = (("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off"))
DECK: Final = {"new_order": 10, "payment": 10, "order_status": 1, "delivery": 1, "stock_level": 1}
CYCLE_S: Final = {"new_order": 30.0, "payment": 15.0, "order_status": 12.0, "delivery": 7.0, "stock_level": 7.0}
# Clause 5.2.5: seconds that nine in ten responses may take; a deferred Delivery is completed within 80 s.
LIMIT_S: Final = {"new_order": 5.0, "payment": 5.0, "order_status": 5.0, "delivery": 5.0, "stock_level": 20.0}
DEFERRED_LIMIT_S = 80.0
EQUAL_S = 0.1
SHARE = 0.9


def order_entry(run: Run, used: Used) -> OrderEntry | None:
    """The `order_entry` of verdict.json; None where the load was another one."""
    if (run.experiment.get("workload") or {}).get("name") != WORKLOAD:
        return None
    trials = {trial.number: trial for trial in run.trials}
    treatments: dict[str, OfTreatment] = {}
    for name in run.plan.get("treatments") or {}:
        of_treatment = [trials[entry["number"]] for (_, treatment), entry in sorted(used.items()) if treatment == name]
        if what_was_done := of_trials(of_treatment):
            treatments[name] = what_was_done
    ledgers = [(trial, kept) for trial in run.trials if (kept := trial.data.get("ledger"))]
    if (run.experiment.get("target") or {}).get("dsn"):
        ledgers = ledgers[-1:]  # the data of an existing server are made once: each check is about all trials so far
    return {
        "like": LIKE,
        "rule": bounds.RULE,
        "treatments": treatments,
        "ledger": [
            cast(Ledger, {"trial": trial.number, **kept, "unsafe": unsafe_settings(trial.data)})
            for trial, kept in ledgers
        ],
    }


def unsafe_settings(trial: Mapping[str, Any]) -> list[str]:
    """Those of a trial.json under which a crash may lose what was acknowledged, each with its value: of the server, and
    of the exports that its files lie on."""
    told = (trial.get("server") or {}).get("durability") or {}
    found = [f"{name} {value}" for name, value in told.items() if (name, str(value)) in UNSAFE]
    places = (trial.get("layout") or {}).get("places") or {}
    return found + [
        f"NFS export of {name}: async"
        for name, place in places.items()
        if "async" in (place.get("nfs") or {}).get("export", ())
    ]


def of_trials(trials: Sequence[Trial]) -> OfTreatment | None:
    """What the load did in these trials of one treatment; None where no trial says."""
    trials = [trial for trial in trials if trial.measure.told.get("totals") and seconds_measured(trial.measure)]
    if not trials:
        return None
    workload = (trials[0].planned.get("resolved") or {}).get("workload") or {}
    facts = trials[0].measure.told.get("facts") or {}
    totals = _sums(trial.measure.told["totals"] for trial in trials)
    done = _sums(
        {kind: int(counts.get("done") or 0) for kind, counts in trial.measure.by_kind.items()} for trial in trials
    )
    minutes = [(seconds_measured(trial.measure) or 0.0) / 60 for trial in trials]
    warehouses = int(workload.get("warehouses") or 1)
    terminals = int(workload.get("clients") or 1)
    is_dealt = workload.get("mix", "deck") == "deck"
    is_deferred = facts.get("delivery") == "deferred"
    return {
        "benchmark": benchmark(facts),
        "is_tpmc_like": is_tpmc_like(facts),
        "warehouses": warehouses,
        "terminals": terminals,
        "minutes": sum(minutes),
        "trials": [trial.number for trial in trials],
        "facts": facts,
        "departures": departures(workload, facts, min(minutes)),
        "mix": bounds.mix(
            {kind: done.get(kind, 0) for kind in KINDS}, terminals=terminals * len(trials), is_dealt=is_dealt
        ),
        "ranges": bounds.ranges(totals, warehouses=warehouses, minutes=sum(minutes)),
        "limits": limits([histograms.of_segment(trial.measure) for trial in trials], is_deferred=is_deferred),
        "rate": rate(trials, minutes, workload, facts),
    }


def _sums(parts: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums.get(name, 0) + int(value)
    return sums


def time_scale(facts: Json) -> float | None:
    """The factor of keying and think times; None where nobody keys and thinks."""
    pacing = facts.get("pacing") or {}
    return float(pacing.get("time_scale") or 1.0) if pacing.get("keying_and_think") else None


def is_tpmc_like(facts: Json) -> bool:
    """Whether users keyed and thought as long as the specification says."""
    return time_scale(facts) == 1.0


def benchmark(facts: Json) -> str:
    """Which benchmark this is, in words that always stand beside the figures."""
    scale = time_scale(facts)
    if scale is None:
        return WITHOUT_USERS
    if scale != 1.0:
        return f"order entry with keying and think times multiplied by {scale:g}: a different benchmark"
    return "order entry with keying and think time"


def departures(workload: Json, facts: Json, minutes_min: float) -> list[str]:
    """Where this run knowingly leaves the specification."""
    warehouses, terminals = int(workload.get("warehouses") or 1), int(workload.get("clients") or 1)
    departed = []
    if time_scale(facts) is None:
        departed.append("no keying and think times")
    elif not is_tpmc_like(facts):
        departed.append(f"keying and think times multiplied by {time_scale(facts):g}")
    if terminals != TERMINALS_PER_WAREHOUSE * warehouses:
        departed.append(
            f"{terminals} terminals where {TERMINALS_PER_WAREHOUSE * warehouses} belong to {warehouses} warehouse(s)"
        )
    if minutes_min < INTERVAL_MINUTES_MIN:
        departed.append(f"measured for {minutes_min:.1f} minutes a trial, not for {INTERVAL_MINUTES_MIN}")
    if facts.get("delivery") != "deferred":
        departed.append("the user of a Delivery waits for it")
    if workload.get("mix", "deck") != "deck":
        departed.append("types drawn by weights that the experiment gives")
    if not workload.get("foreign_keys", True):
        departed.append("no foreign keys")
    if facts.get("isolation") != "serializable":
        departed.append(
            f"isolation {facts.get('isolation')}, where the specification asks for serializable transactions"
        )
    return departed


# --- response times -------------------------------------------------------------------------------------------------


def limits(segments: Sequence[Mapping[str, Histogram]], *, is_deferred: bool) -> list[Limit]:
    """For each type: nine in ten within the limit, and the 90th percentile not below the average.

    The acknowledgement of a deferred Delivery is given by the load itself and takes no time; what is judged is its
    completion.
    """
    rows: list[Limit] = []
    for kind in KINDS:
        parts = [segment[kind] for segment in segments if kind in segment]
        limit_s = DEFERRED_LIMIT_S if kind == "delivery" and is_deferred else LIMIT_S[kind]
        label = "Delivery, queued to completed" if kind == "delivery" and is_deferred else NAMES[kind]
        row = bounds.bound(kind, label, "s", None, limit_s)
        rows.append(_limit(row, histograms.merged(parts), limit_s))
    return rows


def _limit(bound: Bound, latencies: Histogram, limit_s: float) -> Limit:
    total = latencies.total
    row: Limit = {
        **bound,
        "p90_ns": latencies.percentile(SHARE),
        "mean_ns": None,
        "p90_not_below_mean": bounds.CANNOT_TELL,
    }
    if not total:
        return row
    over = int(latencies.count[latencies.low >= limit_s * 1e9].sum())
    low, high = share_interval(over, total, CONFIDENCE)
    middle = (latencies.low + latencies.high - 1) / 2
    mean = float((middle * latencies.count).sum() / total)
    return {
        **row,
        "count": over,
        "of": total,
        "value": over / total,
        "low": low,
        "high": high,
        "verdict": bounds.word(low, high, None, 1 - SHARE),
        "mean_ns": mean,
        "p90_not_below_mean": _against_mean(latencies, middle, mean),
    }


def _against_mean(latencies: Histogram, middle: np.ndarray, mean: float) -> str:
    """Whether the 90th percentile reaches the average, which counts as reached a tenth of a second below it."""
    total = latencies.total
    upto = np.cumsum(latencies.count)
    first, last = (binomial_quantile(tail, total, SHARE) for tail in (bounds.TAIL, 1 - bounds.TAIL))
    if first < 1 or last + 1 > total:
        return bounds.CANNOT_TELL
    p90_low, p90_high = (float(middle[int(np.searchsorted(upto, rank))]) for rank in (first, last + 1))
    sd = math.sqrt(float((latencies.count * (middle - mean) ** 2).sum()) / total)
    half = float(normal_quantile(1 - bounds.TAIL)) * sd / math.sqrt(total)
    return bounds.word(p90_low + EQUAL_S * 1e9 - (mean + half), p90_high + EQUAL_S * 1e9 - (mean - half), 0.0, None)


# --- throughput -----------------------------------------------------------------------------------------------------


def rate(trials: Sequence[Trial], minutes: Sequence[float], workload: Json, facts: Json) -> Rate:
    """New-Orders a minute, those rolled back included; with users, what their times allow."""
    counts = [_new_orders(trial) for trial in trials]
    each = [count / length for count, length in zip(counts, minutes, strict=True)]
    warehouses, paced = int(workload.get("warehouses") or 1), is_tpmc_like(facts)
    low, high = (value / sum(minutes) / warehouses for value in rate_interval(sum(counts), CONFIDENCE))
    per_warehouse: PerWarehouse = {"value": sum(counts) / sum(minutes) / warehouses, "low": low, "high": high}
    allowed = allowed_per_minute(workload, facts)
    ceiling, minimum = CEILING_PER_WAREHOUSE, MINIMUM_PER_WAREHOUSE
    return {
        "name": TPMC_LIKE if paced else NEW_ORDERS,
        "per_minute": as_mean(over_blocks(each, log=True)),
        "new_orders": sum(counts),
        "per_warehouse": per_warehouse,
        "ceiling": {"bound": ceiling, "verdict": bounds.word(low, high, None, ceiling)} if paced else None,
        "minimum": {"bound": minimum, "verdict": bounds.word(low, high, minimum, None)} if paced else None,
        "allowed_per_minute": allowed,
        "of_allowed": None if not allowed else sum(counts) / sum(minutes) / allowed,
    }


def _new_orders(trial: Trial) -> int:
    totals = trial.measure.told["totals"]
    return int(totals["new_order_done"]) + int(totals["new_order_rolled_back"])


def allowed_per_minute(workload: Json, facts: Json) -> float | None:
    """New-Orders a minute if no response took any time: all that keying and thinking leaves; None without them."""
    scale = time_scale(facts)
    given = workload.get("mix", "deck")
    weights: Mapping[str, int] = given if isinstance(given, dict) else DECK
    cycle_s = sum(weights.get(kind, 0) * CYCLE_S[kind] for kind in KINDS) * (scale or 0.0)
    return 60 * int(workload.get("clients") or 1) * weights.get("new_order", 0) / cycle_s if cycle_s else None


def _judge(context: Context) -> OrderEntry | None:
    return order_entry(context.run, context.used)


def _rolled_back(summary: Summary) -> int:
    return int((summary.get("totals") or {}).get("new_order_rolled_back") or 0)


PART = Part("order_entry", _judge)
ORDER_ENTRY: Final = Workload(
    WORKLOAD,
    rolled_back=_rolled_back,
    rolled_back_rule="; New-Orders that the workload itself rolls back are done and not committed, so they are taken "
    "off",
)
