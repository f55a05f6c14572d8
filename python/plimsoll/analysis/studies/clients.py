"""Study S2's figure and its open question: what limits 20 or 30 clients of pgbench?

Every TPC-B-like transaction changes a row of branches and holds it until it has committed. At scale 1 there is one such
row, so only one transaction at a time gets past it, whatever the number of clients; at a scale of at least as many
branches as clients most find a row of their own. The same clients at both scales, compared within blocks, tell how much
of the limit that row is; several levels of transactions per client are averaged within the block first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from plimsoll.analysis.metrics import METRICS
from plimsoll.analysis.part import Context, Pair, Part, is_named
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.studies.document import AgainstSmallest, Clients, ClientsGrowth, ClientsRow, Over
from plimsoll.record.verdict import Used

Json = dict[str, Any]
CLIENTS, SCALE, EACH = "workload.clients", "workload.scale", "measure.transactions_per_client"
METRIC = "throughput_per_second"
WORKLOAD = "bank"  # whose branch rows the question is about
ABOUT = "clients"  # of the breakdown's differences
Values = dict[tuple[int, float, float, Any], float]  # by block, scale, clients and transactions per client


def clients(plan: Json, experiment: Json, used: Used, delta: float) -> Clients | None:
    """The `clients` of verdict.json; None unless pgbench's tables are loaded by several numbers of clients."""
    factors = {factor.get("path"): factor for factor in plan.get("factors") or []}
    if (experiment.get("workload") or {}).get("name") != WORKLOAD or len(_levels(factors, CLIENTS)) < 2:
        return None
    places = {name: _place(entry, factors, experiment) for name, entry in (plan.get("treatments") or {}).items()}
    values: Values = {}
    for (block, treatment), entry in used.items():
        place, value = places.get(treatment), entry["metrics"].get(METRIC)
        if place is not None and value:
            values[block, *place] = value
    whole = {name: place for name, place in places.items() if place is not None}
    return {
        "metric": METRIC,
        "rows": [row for name, place in whole.items() if (row := _row(name, place, values)) is not None],
        "growth": _growth(values),
        "against_smallest": _against_smallest(values),
        "delta": delta,
    }


def _levels(factors: Mapping[Any, Json], path: str) -> list[Json]:
    return list((factors.get(path) or {}).get("levels") or [])


def _place(treatment: Json, factors: Mapping[Any, Json], experiment: Json) -> tuple[float, float, Any] | None:
    """Scale, clients and transactions per client of a treatment; those that no factor varies are the experiment's."""
    values: list[Any] = []
    for path in (SCALE, CLIENTS, EACH):
        table, key = path.split(".")
        value = (experiment.get(table) or {}).get(key)
        for level in _levels(factors, path):
            if str(level.get("label")) == str((treatment.get("levels") or {}).get(path)):
                value = level.get("value")
        values.append(value)
    return None if values[0] is None or values[1] is None else (values[0], values[1], values[2])


def _row(treatment: str, place: tuple[float, float, Any], values: Values) -> ClientsRow | None:
    points = [value for key, value in sorted(values.items(), key=lambda item: item[0][0]) if key[1:] == place]
    mean = as_mean(over_blocks(points, METRICS[METRIC].scale == "log"))
    if mean is None:
        return None
    scale, count, each = place
    return {
        "treatment": treatment,
        "scale": scale,
        "clients": count,
        "transactions_per_client": each,
        **mean,
        "points": points,
    }


def _logs(values: Values, top: tuple[float, float], base: tuple[float, float]) -> dict[int, float]:
    """Log of the throughput at one (scale, clients) over that at another, by block."""
    by_block: dict[int, list[float]] = {}
    for (block, scale, count, each), value in values.items():
        below = values.get((block, *base, each))
        if (scale, count) == top and below:
            by_block.setdefault(block, []).append(math.log(value / below))
    return {block: float(np.mean(logs)) for block, logs in sorted(by_block.items())}


def _ratio(logs: Mapping[int, float]) -> Over | None:
    """A ratio over blocks with its interval."""
    mean = over_blocks([math.exp(log) for log in logs.values()], log=True)
    return None if mean is None else {"ratio": mean.value, "low": mean.low, "high": mean.high, "blocks": mean.blocks}


def _growth(values: Values) -> list[ClientsGrowth]:
    """How throughput grows with the clients, at each scale: over that of the fewest."""
    rows: list[ClientsGrowth] = []
    for scale in sorted({key[1] for key in values}):
        counts = sorted({key[2] for key in values if key[1] == scale})
        for count in counts[1:]:
            if (ratio := _ratio(_logs(values, (scale, count), (scale, counts[0])))) is not None:
                rows.append({"scale": scale, "clients": count, "fewest": counts[0], **ratio})
    return rows


def _against_smallest(values: Values) -> list[AgainstSmallest]:
    """What a larger scale gains over the smallest, at each number of clients.

    `beyond_fewest`: over what the fewest clients gain by it, who hardly wait for each other; null for these.
    """
    scales = sorted({key[1] for key in values})
    rows: list[AgainstSmallest] = []
    for scale in scales[1:]:
        counts = sorted({key[2] for key in values if key[1] in (scale, scales[0])})
        alone = _logs(values, (scale, counts[0]), (scales[0], counts[0]))
        for count in counts:
            logs = _logs(values, (scale, count), (scales[0], count))
            if (ratio := _ratio(logs)) is not None:
                both = {block: log - alone[block] for block, log in logs.items() if block in alone}
                beyond = _ratio(both) if count != counts[0] else None
                rows.append({"scale": scale, "smallest": scales[0], "clients": count, **ratio, "beyond_fewest": beyond})
    return rows


def pairs(study: Clients | None) -> list[Pair]:
    """For the breakdown: at each number of clients the smallest scale against the largest."""
    groups: dict[tuple[float, float | None], list[ClientsRow]] = {}
    for row in study["rows"] if study else []:
        groups.setdefault((row["clients"], row["transactions_per_client"]), []).append(row)
    compared: list[Pair] = []
    for (count, each), rows in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        small, large = min(rows, key=lambda row: row["scale"]), max(rows, key=lambda row: row["scale"])
        if small["scale"] == large["scale"]:
            continue
        at = {"clients": f"{count:g}"} | ({} if each is None else {"transactions per client": f"{each:g}"})
        compared.append(
            {
                "first": large["treatment"],
                "second": small["treatment"],
                "first_label": f"{large['scale']:g}",
                "second_label": f"scale {small['scale']:g}",
                "at": at,
                "about": ABOUT,
                "clients": count,
                "verdict": None,
            }
        )
    return compared


def _judge(context: Context) -> Clients | None:
    if not is_named(context.run, "clients"):
        return None
    return clients(context.run.plan, context.run.experiment, context.used, context.delta)


PART = Part("clients", _judge, is_null_where_absent=True, pairs=pairs)
