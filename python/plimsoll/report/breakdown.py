"""The breakdown's tables and sentences on the page; the figures are drawn in breakdown_figures.py."""

from typing import Any

from plimsoll.analysis import breakdown_words
from plimsoll.analysis.breakdown_parts import in_order
from plimsoll.analysis.breakdown_trial import MEAN, SLOWEST
from plimsoll.analysis.histograms import ALL
from plimsoll.analysis.words import treatment_labels
from plimsoll.report.breakdown_figures import type_name
from plimsoll.report.tables import NONE, number, trials_words

Json = dict[str, Any]
_US = 1e-3
_IDLE = "Activity:"  # the server's own name of waits for having nothing to do
_WAITS_OF_SYSTEM = 3
_LINES_MAX = 8


def breakdown_part(verdict: Json) -> Json | None:
    """What the template needs; None for a run without a breakdown. Times are microseconds a transaction."""
    found = verdict.get("breakdown")
    if not found:
        return None
    absent = {"absent": found["why_absent"], "not_from": _not_from(found)}
    if found["why_absent"]:
        return absent
    lines, others = _lines(verdict)
    return absent | {
        "lines": lines[:_LINES_MAX],
        "more_lines": lines[_LINES_MAX:] + others,
        "numbers": _numbers(verdict),
        "waits": _waits(verdict),
        "payers": _payers(verdict),
        "system": _system(verdict),
        "cost": [_cost_row(verdict, treatment) for treatment in found["treatments"]],
        "joined": _joined(found["trials"]),
        "boundaries": _boundaries(found["trials"]),
    }


def _not_from(found: Json) -> str:
    refused = [f"{trials_words(row['trials'])}: {row['reason']}" for row in found["refused"]]
    wrong = [str(one["number"]) for one in found["trials"] if one["faults"]]
    refused += [f"time counted twice in trial {', '.join(wrong)}"] if wrong else []
    return "; ".join(refused)


def _lines(verdict: Json) -> tuple[list[str], list[str]]:
    """Differences of the means, then what the slowest are made of: of all types together, and of each by itself."""
    found, labels = verdict["breakdown"], treatment_labels(verdict)
    several = any(len(entry["types"]) > 1 for entry in found["treatments"].values())
    lines = [
        (row["kind"], breakdown_words.difference_line(verdict, row))
        for row in found["differences"]
        if row["band"] == MEAN
    ]
    for treatment, entry in found["treatments"].items():
        for kind in entry["types"]:
            line = breakdown_words.slowest_line(verdict, treatment, kind)
            if line:
                lines.append((kind, f"{labels.get(treatment, treatment)}, {type_name(kind)}: {line}"))
    first = [line for kind, line in lines if kind == ALL or not several]
    return first, [line for kind, line in lines if kind != ALL and several]


def _cell(found: Json | None) -> str:
    """Microseconds with the interval."""
    if not found:
        return NONE
    form = ",.1f" if abs(found["value"]) < 1e5 else ",.0f"
    text = format(found["value"] * _US, form)
    if found["low"] is None:
        return text
    return f"{text} [{format(found['low'] * _US, form)}, {format(found['high'] * _US, form)}]"


def _numbers(verdict: Json) -> list[Json]:
    """Two tables a type, the mean and the slowest hundredth: a row a treatment, a column a part."""
    found, labels = verdict["breakdown"], treatment_labels(verdict)
    kinds = list(dict.fromkeys(kind for entry in found["treatments"].values() for kind in entry["types"]))
    tables = []
    for kind in kinds:
        for band in (MEAN, SLOWEST):
            have = {
                treatment: one
                for treatment, entry in found["treatments"].items()
                if (one := entry["types"].get(kind, {}).get("bands", {}).get(band)) is not None
            }
            columns = in_order({part for one in have.values() for part in one["parts"]})
            rows = [
                {
                    "label": labels.get(treatment, treatment),
                    "transactions": f"{one['transactions']:,}",
                    "latency": _cell(one["latency"]),
                    "cells": [_cell(one["parts"].get(part)) for part in columns],
                }
                for treatment, one in have.items()
            ]
            if rows:
                name = "mean" if band == MEAN else "slowest 1 %"
                tables.append({"kind": type_name(kind), "band": name, "columns": columns, "rows": rows})
    return tables


def _each(verdict: Json) -> list[tuple[str, str, Json]]:
    labels = treatment_labels(verdict)
    return [
        (labels.get(treatment, treatment), type_name(kind), found)
        for treatment, entry in verdict["breakdown"]["treatments"].items()
        for kind, found in entry["types"].items()
    ]


def _waits(verdict: Json) -> list[Json]:
    """The server's named waits, the longest first within a treatment and type."""
    rows = []
    for label, kind, found in _each(verdict):
        count = (found["bands"][MEAN] or {}).get("transactions") or 0
        for wait in found["waits"]:
            rows.append(
                {
                    "label": label,
                    "kind": kind,
                    "name": wait["name"],
                    "bucket": wait["bucket"],
                    "times": number(wait["count"] / count if count else None, ",.3f"),
                    "each": number(wait["ns_per_transaction"], ",.1f", _US),
                    "slowest": number(wait["ns_per_slowest"], ",.1f", _US),
                }
            )
    return rows


def _payers(verdict: Json) -> list[Json]:
    """Group commit: who ended the waits for another's sync."""
    rows = []
    for label, kind, found in _each(verdict):
        whole = sum(one["ns"] for one in found["payers"].values())
        for role, one in found["payers"].items():
            share = f"{one['ns'] / whole:.0%}" if whole else NONE
            rows.append({"label": label, "kind": kind, "role": role, "count": f"{one['count']:,}", "share": share})
    return rows


def _system(verdict: Json) -> list[Json]:
    """The server's other processes; the waits in which they have nothing to do are left out."""
    labels, rows = treatment_labels(verdict), []
    for treatment, entry in verdict["breakdown"]["treatments"].items():
        for one in entry["system"]:
            busy = {name: wait for name, wait in one["waits"].items() if not name.startswith(_IDLE)}
            longest = sorted(busy.items(), key=lambda item: -item[1]["ns"])[:_WAITS_OF_SYSTEM]
            rows.append(
                {
                    "label": labels.get(treatment, treatment),
                    "what": one["what"],
                    "cpu": number(one["cpu_ns"], ",.1f", 1e-6),
                    "each": number(one["cpu_ns_per_transaction"], ",.2f", _US),
                    "queue": number(one["run_queue_ns"], ",.1f", 1e-6),
                    "waits": ", ".join(f"{name} {wait['ns'] / 1e6:,.1f} ms" for name, wait in longest) or NONE,
                }
            )
    return rows


def _span(values: list[float], form: str, scale: float = 1.0) -> str:
    """The least and the most, or the one value."""
    if not values:
        return NONE
    ends = [format(value * scale, form) for value in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _cost_row(verdict: Json, treatment: str) -> Json:
    """What the probe took, what it lost, and how its figures close, over a treatment's trials."""
    found, entry = verdict["breakdown"], verdict["breakdown"]["treatments"][treatment]
    trials = [one for one in found["trials"] if one["number"] in entry["trials"]]
    costs = [one["cost"] for one in trials]
    seen, sent = ([one["requests"].get(key) for one in trials] for key in ("seen", "sent"))
    known = [value for value in (*seen, *sent) if value is not None]
    whole = len(known) == 2 * len(trials)
    types = entry["types"].values()
    worst = max(
        (one["closure_share_worst"] for one in types if one["closure_share_worst"] is not None), key=abs, default=None
    )
    unnamed = max((one["unnamed_share_max"] for one in types if one["unnamed_share_max"] is not None), default=None)
    absolute = max((one["absolute_share_max"] for one in types if one["absolute_share_max"] is not None), default=None)
    lost: dict[str, int] = {}
    for one in trials:
        for what, count in one["lost"].items():
            lost[what] = lost.get(what, 0) + count
    return {
        "label": treatment_labels(verdict).get(treatment, treatment),
        "each": _span([c["ns_per_transaction"] for c in costs if c["ns_per_transaction"] is not None], ",.2f", _US),
        "share": _span([c["cpu_share"] for c in costs if c["cpu_share"] is not None], ".2f", 100),
        "lost": ", ".join(f"{count:,} {what}" for what, count in lost.items()) or "none",
        "closure": NONE if worst is None else f"{worst:+.2%}",
        "absolute": NONE if absolute is None else f"{absolute:.2%}",
        "unnamed": NONE if unnamed is None else f"{unnamed:.1%}",
        "seen": f"{sum(value or 0 for value in seen):,}" if whole else NONE,
        "sent": f"{sum(value or 0 for value in sent):,}" if whole else NONE,
        "equal": whole and all(one == other for one, other in zip(seen, sent, strict=True)),
    }


def _joined(trials: list[Json]) -> list[tuple[str, str]]:
    """What became of requests and transactions, over the trials."""
    sums: dict[str, int] = {}
    for one in trials:
        for key, count in (one.get("joined") or {}).items():
            sums[key] = max(sums.get(key, 0), count) if key.endswith("_max") else sums.get(key, 0) + count
    names = {
        "requests_joined": "requests joined with a transaction",
        "requests_without_transaction": "requests of no transaction",
        "requests_of_others": "requests of other clients of the server",
        "requests_straddling": "requests that reach into the next transaction",
        "requests_ended_later": "requests whose end was noted after the client had the answer",
        "transactions_joined": "transactions with requests",
        "transactions_without_request": "transactions without a request",
    }
    rows = [(name, f"{sums.get(key, 0):,}") for key, name in names.items()]
    for what in dict.fromkeys(what for one in trials for what in one["counts"]):
        total = sum(int(one["counts"].get(what) or 0) for one in trials)
        rows.append((f"of every client, {what.replace('_', ' ')}", f"{total:,}"))
    if any(one["sampled"] for one in trials):
        rows.append(("transactions recorded", "a sample: requests of the others are of no transaction"))
    return rows


def _boundaries(trials: list[Json]) -> str:
    """What begins and ends a request."""
    found = {(one["boundaries"].get("begin"), one["boundaries"].get("end")) for one in trials if one["boundaries"]}
    return "; ".join(f"{begin} to {end}" for begin, end in sorted(found, key=str))
