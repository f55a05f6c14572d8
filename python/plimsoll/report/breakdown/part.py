"""The breakdown's tables and sentences on the page; the figures are drawn in breakdown_figures.py."""

from collections.abc import Mapping
from typing import Any, cast

from plimsoll.analysis.breakdown.changes import CANNOT_TELL
from plimsoll.analysis.breakdown.document import Breakdown, OfTrial, OfType
from plimsoll.analysis.breakdown.parts import in_order
from plimsoll.analysis.breakdown.sampling import sampling_words
from plimsoll.analysis.breakdown.totals import on_nfs, own_read_share, shares
from plimsoll.analysis.breakdown.trial import MEAN, SLOWEST
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.record.verdict import Mean
from plimsoll.report.breakdown.cost import boundaries, by_calls, cost_row, joined, untold
from plimsoll.report.breakdown.figures import breakdown_figures, shown_figure, type_name
from plimsoll.report.drawing.tables import NONE, number, trials_words
from plimsoll.report.section import Page, Section
from plimsoll.words.probes import breakdown as breakdown_words

Json = dict[str, Any]
_US = 1e-3
_IDLE = "Activity:"  # the server's own name of waits for having nothing to do
_WAITS_OF_SYSTEM = 3
_READ_CAUSES = ("own", "on_its_way", "untold")
_NFS_PARTS = {
    "read": "a read",
    "write": "a write",
    "commit": "a commit",
    "attributes": "attributes",
    "call": "another call",
}


def breakdown_part(verdict: Json) -> Json | None:
    """What the template needs; None for a run without a breakdown. Times are microseconds a transaction."""
    breakdown: Breakdown | None = verdict.get("breakdown")
    if not breakdown:
        return None
    absent: Json = {"absent": breakdown["why_absent"], "not_from": _not_from(breakdown)}
    if breakdown["why_absent"]:
        return absent
    return absent | {
        "sampled": _sampled(verdict),
        "is_sampled": any(entry["one_in_max"] > 1 for entry in breakdown["treatments"].values()),
        "changes": _changes(verdict),
        "slowest": _slowest(verdict),
        "numbers": _numbers(verdict),
        "changed_waits": _changed_waits(verdict),
        "waits": _waits(verdict),
        "payers": _payers(verdict),
        "reads": _reads(verdict),
        "nfs": _on_nfs(verdict),
        "nfs_parts": list(_NFS_PARTS.values()),
        "untold": untold(breakdown["trials"]),
        "syncs": _syncs(verdict),
        "system": _system(verdict),
        "cost": [cost_row(verdict, treatment) for treatment in breakdown["treatments"]],
        "joined": joined(breakdown["trials"]),
        "boundaries": boundaries(breakdown["trials"]),
        "by_calls": by_calls(breakdown["trials"]),
    }


def _not_from(breakdown: Breakdown) -> str:
    refused = [f"{trials_words(row['trials'])}: {row['reason']}" for row in breakdown["refused"]]
    wrong = [str(trial["number"]) for trial in breakdown["trials"] if trial["faults"]]
    refused += [f"time counted twice in trial {', '.join(wrong)}"] if wrong else []
    return "; ".join(refused)


def _found(verdict: Json) -> Breakdown:
    breakdown: Breakdown = verdict["breakdown"]
    return breakdown


def _entered(verdict: Json) -> list[OfTrial]:
    """The trials that the figures are from."""
    entries = _found(verdict)["treatments"].values()
    numbers = {number for entry in entries for number in entry["trials"]}
    return [trial for trial in _found(verdict)["trials"] if trial["number"] in numbers]


def _sampled(verdict: Json) -> str:
    """In which trials not all of the time was watched."""
    trials_of: dict[str, list[int]] = {}
    for trial in _entered(verdict):
        said = sampling_words(trial["sampling"])
        if said:
            trials_of.setdefault(said, []).append(trial["number"])
    return "; ".join(f"{trials_words(numbers)}: {said}" for said, numbers in trials_of.items())


def _changes(verdict: Json) -> list[Json]:
    """Differences of the means, by type."""
    return [
        {"subject": breakdown_words.subject(row), "total": breakdown_words.amount(row["total"])}
        | vars(breakdown_words.told_of(verdict, row))
        for row in _found(verdict)["differences"]
        if row["band"] == MEAN
    ]


def _slowest(verdict: Json) -> list[Json]:
    """What the slowest hundredth of each treatment and type take, and by what that is more than the mean."""
    rows = []
    for treatment, entry in _found(verdict)["treatments"].items():
        for kind, of_type in entry["types"].items():
            spoken = breakdown_words.of_slowest(verdict, treatment, kind)
            if spoken is None:
                continue
            row = {"label": treatment_labels(verdict).get(treatment, treatment), "kind": type_name(kind)}
            slow, mean = of_type["bands"][SLOWEST], of_type["bands"][MEAN]
            assert slow is not None and mean is not None, "it is spoken of"
            row |= {"transactions": f"{slow['transactions']:,}", "beyond": breakdown_words.amount(spoken[0]["total"])}
            times = {name: breakdown_words.amount(side["latency"], signed=False) for name, side in
                     (("slow", slow), ("mean", mean))}  # fmt: skip
            rows.append(row | times | vars(spoken[1]))
    return rows


def _cell(mean: Mean | None) -> str:
    """Microseconds with the interval."""
    if not mean:
        return NONE
    form = ",.1f" if abs(mean["value"]) < 1e5 else ",.0f"
    text = format(mean["value"] * _US, form)
    if mean["low"] is None or mean["high"] is None:
        return text
    return f"{text} [{format(mean['low'] * _US, form)}, {format(mean['high'] * _US, form)}]"


def _numbers(verdict: Json) -> list[Json]:
    """Two tables a type, the mean and the slowest hundredth: a row a treatment, a column a part."""
    breakdown, labels = _found(verdict), treatment_labels(verdict)
    kinds = list(dict.fromkeys(kind for entry in breakdown["treatments"].values() for kind in entry["types"]))
    tables = []
    for kind in kinds:
        for band in (MEAN, SLOWEST):
            have = {
                treatment: band_of
                for treatment, entry in breakdown["treatments"].items()
                if kind in entry["types"] and (band_of := entry["types"][kind]["bands"][band]) is not None
            }
            columns = in_order({part for band_of in have.values() for part in band_of["parts"]})
            rows = [
                {
                    "label": labels.get(treatment, treatment),
                    "transactions": f"{band_of['transactions']:,}",
                    "latency": _cell(band_of["latency"]),
                    "cells": [_cell(band_of["parts"].get(part)) for part in columns],
                }
                for treatment, band_of in have.items()
            ]
            if rows:
                name = "mean" if band == MEAN else "slowest 1 %"
                tables.append({"kind": type_name(kind), "band": name, "columns": columns, "rows": rows})
    return tables


def _each(verdict: Json) -> list[tuple[str, str, OfType]]:
    labels = treatment_labels(verdict)
    return [
        (labels.get(treatment, treatment), type_name(kind), of_type)
        for treatment, entry in _found(verdict)["treatments"].items()
        for kind, of_type in entry["types"].items()
    ]


def _waits(verdict: Json) -> list[Json]:
    """The server's named waits, the longest first within a treatment and type."""
    rows = []
    for label, kind, of_type in _each(verdict):
        for wait in of_type["waits"]:
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


def _changed_waits(verdict: Json) -> list[Json]:
    """Wait events that differ from zero in the differences of the means, the largest first."""
    rows = []
    for row in _found(verdict)["differences"]:
        first_kind = next(iter(_found(verdict)["treatments"][row["second"]]["types"]))
        if row["band"] != MEAN or row["kind"] != first_kind:
            continue
        for wait in row.get("waits", []):
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
    for label, kind, of_type in _each(verdict):
        reads = cast(Mapping[str, float | None], of_type["data_read"])
        if not any(reads[f"{name}_count"] for name in _READ_CAUSES):
            continue
        cells = {name: number(reads[f"{name}_ns_per_transaction"], ",.1f", _US) for name in _READ_CAUSES}
        slow = {f"{name}_slowest": number(reads[f"{name}_ns_per_slowest"], ",.1f", _US) for name in _READ_CAUSES}
        share = number(own_read_share(of_type["data_read"]), ".0%")
        rows.append({"label": label, "kind": kind, "share": share, **cells, **slow})
    return rows


def _on_nfs(verdict: Json) -> list[Json]:
    """Of the waits those on NFS, by what was asked of the server, where there were any."""
    rows = []
    for label, kind, of_type in _each(verdict):
        if not (parts := of_type.get("nfs")):
            continue
        spent = [parts.get(part) for part in _NFS_PARTS]
        cells = [number(sums["ns_per_transaction"], ",.1f", _US) if sums else NONE for sums in spent]
        share, slowest = on_nfs(of_type)
        whole = {"share": number(share, ".0%"), "slowest": number(slowest, ",.1f", _US)}
        rows.append({"label": label, "kind": kind, "cells": cells, **whole})
    return rows


def _syncs(verdict: Json) -> Json | None:
    """Calls that sync, a treatment; None where no record tells of any."""
    labels, treatments = treatment_labels(verdict), _found(verdict)["treatments"]
    columns = list(dict.fromkeys(what for entry in treatments.values() for what in entry["syncs"]))
    rows = [
        {
            "label": labels.get(treatment, treatment),
            "cells": [
                (f"{sums['count']:,}", number(sums["per_transaction"], ",.4f"))
                if (sums := entry["syncs"].get(what))
                else (NONE, NONE)
                for what in columns
            ],
        }
        for treatment, entry in treatments.items()
        if entry["syncs"]
    ]
    return {"columns": columns, "rows": rows} if rows else None


def _payers(verdict: Json) -> list[Json]:
    """Group commit: who ended the waits for another's sync."""
    rows = []
    for label, kind, of_type in _each(verdict):
        paid = shares({role: sums["ns"] for role, sums in of_type["payers"].items()})
        for role, sums in of_type["payers"].items():
            cells = {"count": f"{sums['count']:,}", "share": number(paid[role], ".0%")}
            rows.append({"label": label, "kind": kind, "role": role, **cells})
    return rows


def _system(verdict: Json) -> list[Json]:
    """The server's other processes; the waits in which they have nothing to do are left out."""
    labels, rows = treatment_labels(verdict), []
    for treatment, entry in _found(verdict)["treatments"].items():
        for row in entry["system"]:
            busy = {name: wait for name, wait in row["waits"].items() if not name.startswith(_IDLE)}
            longest = sorted(busy.items(), key=lambda item: -item[1]["ns"])[:_WAITS_OF_SYSTEM]
            rows.append(
                {
                    "label": labels.get(treatment, treatment),
                    "what": row["what"] + (", in the slices watched" if entry["one_in_max"] > 1 else ""),
                    "cpu": number(row["cpu_ns"], ",.1f", 1e-6),
                    "each": number(row["cpu_ns_per_transaction"], ",.2f", _US),
                    "queue": number(row["run_queue_ns"], ",.1f", 1e-6),
                    "waits": ", ".join(f"{name} {wait['ns'] / 1e6:,.1f} ms" for name, wait in longest) or NONE,
                }
            )
    return rows


def _context(page: Page) -> Json:
    return {"breakdown": breakdown_part(page.verdict), "parts": page.verdict["breakdown"].get("parts")}


SECTION = Section(
    key="breakdown",
    title="Where the time goes",
    template="breakdown/breakdown.html.j2",
    applies=lambda page: bool(page.verdict.get("breakdown")),
    context=_context,
    figures=lambda page: breakdown_figures(page.verdict),
    evidence=lambda page: [f"{line}." for line in breakdown_words.why_lines(page.verdict)],
    shows=lambda page: None if page.verdict["breakdown"]["why_absent"] else shown_figure(page.verdict),
)
