"""The breakdown's tables and sentences on the page; the figures are drawn in breakdown_figures.py."""

from typing import Any

from plimsoll.analysis.breakdown.moved import CANNOT_TELL
from plimsoll.analysis.breakdown.parts import in_order
from plimsoll.analysis.breakdown.sampling import sampling_words
from plimsoll.analysis.breakdown.totals import own_read_share, shares
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.report.breakdown.cost import boundaries, by_calls, cost_row, joined
from plimsoll.report.breakdown.figures import breakdown_figures, type_name
from plimsoll.report.drawing.tables import NONE, number, trials_words
from plimsoll.report.section import Page, Section
from plimsoll.words import breakdown as breakdown_words

Json = dict[str, Any]
_US = 1e-3
_IDLE = "Activity:"  # the server's own name of waits for having nothing to do
_WAITS_OF_SYSTEM = 3
_LINES_MAX = 8
_READ_CAUSES = ("own", "on_its_way", "untold")


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
        "sampled": _sampled(verdict),
        "lines": lines[:_LINES_MAX],
        "more_lines": lines[_LINES_MAX:] + others,
        "numbers": _numbers(verdict),
        "moved": _moved(verdict),
        "waits": _waits(verdict),
        "payers": _payers(verdict),
        "reads": _reads(verdict),
        "syncs": _syncs(verdict),
        "system": _system(verdict),
        "cost": [cost_row(verdict, treatment) for treatment in found["treatments"]],
        "joined": joined(found["trials"]),
        "boundaries": boundaries(found["trials"]),
        "by_calls": by_calls(found["trials"]),
    }


def _not_from(found: Json) -> str:
    refused = [f"{trials_words(row['trials'])}: {row['reason']}" for row in found["refused"]]
    wrong = [str(one["number"]) for one in found["trials"] if one["faults"]]
    refused += [f"time counted twice in trial {', '.join(wrong)}"] if wrong else []
    return "; ".join(refused)


def _entered(verdict: Json) -> list[Json]:
    """The trials that the figures are from."""
    entries = verdict["breakdown"]["treatments"].values()
    numbers = {number for entry in entries for number in entry["trials"]}
    return [one for one in verdict["breakdown"]["trials"] if one["number"] in numbers]


def _sampled(verdict: Json) -> str:
    """In which trials not all of the time was watched."""
    found: dict[str, list[int]] = {}
    for one in _entered(verdict):
        said = sampling_words(one["sampling"])
        if said:
            found.setdefault(said, []).append(one["number"])
    return "; ".join(f"{trials_words(numbers)}: {said}" for said, numbers in found.items())


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
        for wait in found["waits"]:
            rows.append(
                {
                    "label": label,
                    "kind": kind,
                    "name": wait["name"],
                    "bucket": wait["bucket"],
                    "times": number(wait["times_per_transaction"], ",.3f"),
                    "each": number(wait["ns_per_transaction"], ",.1f", _US),
                    "slowest": number(wait["ns_per_slowest"], ",.1f", _US),
                }
            )
    return rows


def _moved(verdict: Json) -> list[Json]:
    """Wait events that differ from zero in the differences of the means, the largest first."""
    rows = []
    for row in verdict["breakdown"]["differences"]:
        first_kind = next(iter(verdict["breakdown"]["treatments"][row["second"]]["types"]))
        if row["band"] != MEAN or row["kind"] != first_kind:
            continue
        for wait in row.get("waits") or []:
            if wait["word"] != CANNOT_TELL:
                cells = {"each": _cell(wait["difference"]), "first": number(wait["first"], ",.1f", _US)}
                cells |= {"second": number(wait["second"], ",.1f", _US)}
                share = NONE if wait["share"] is None else f"{wait['share']:+.0%}"
                about = {"subject": breakdown_words.subject(row), "name": wait["name"], "part": wait["part"]}
                rows.append(about | cells | {"share": share})
    return rows


def _reads(verdict: Json) -> list[Json]:
    """What the waits for data were for, where there were any."""
    rows = []
    for label, kind, found in _each(verdict):
        reads = found["data_read"]
        if not any(reads[f"{name}_count"] for name in _READ_CAUSES):
            continue
        cells = {name: number(reads[f"{name}_ns_per_transaction"], ",.1f", _US) for name in _READ_CAUSES}
        slow = {f"{name}_slowest": number(reads[f"{name}_ns_per_slowest"], ",.1f", _US) for name in _READ_CAUSES}
        share = number(own_read_share(reads), ".0%")
        rows.append({"label": label, "kind": kind, "share": share, **cells, **slow})
    return rows


def _syncs(verdict: Json) -> Json | None:
    """Calls that sync, a treatment; None where no record tells of any."""
    labels, found = treatment_labels(verdict), verdict["breakdown"]["treatments"]
    columns = list(dict.fromkeys(what for entry in found.values() for what in entry["syncs"]))
    rows = [
        {
            "label": labels.get(treatment, treatment),
            "cells": [
                (f"{one['count']:,}", number(one["per_transaction"], ",.4f"))
                if (one := entry["syncs"].get(what))
                else (NONE, NONE)
                for what in columns
            ],
        }
        for treatment, entry in found.items()
        if entry["syncs"]
    ]
    return {"columns": columns, "rows": rows} if rows else None


def _payers(verdict: Json) -> list[Json]:
    """Group commit: who ended the waits for another's sync."""
    rows = []
    for label, kind, found in _each(verdict):
        paid = shares({role: one["ns"] for role, one in found["payers"].items()})
        for role, one in found["payers"].items():
            cells = {"count": f"{one['count']:,}", "share": number(paid[role], ".0%")}
            rows.append({"label": label, "kind": kind, "role": role, **cells})
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
                    "what": one["what"] + (", in the slices watched" if entry["one_in_max"] > 1 else ""),
                    "cpu": number(one["cpu_ns"], ",.1f", 1e-6),
                    "each": number(one["cpu_ns_per_transaction"], ",.2f", _US),
                    "queue": number(one["run_queue_ns"], ",.1f", 1e-6),
                    "waits": ", ".join(f"{name} {wait['ns'] / 1e6:,.1f} ms" for name, wait in longest) or NONE,
                }
            )
    return rows


def _context(page: Page) -> Json:
    return {"breakdown": breakdown_part(page.verdict), "parts": page.verdict["breakdown"].get("parts")}


SECTION = Section(
    key="breakdown",
    template="breakdown/breakdown.html.j2",
    applies=lambda page: bool(page.verdict.get("breakdown")),
    context=_context,
    figures=lambda page: breakdown_figures(page.verdict),
    evidence=lambda page: [f"{line}." for line in breakdown_words.why_lines(page.verdict)],
)
