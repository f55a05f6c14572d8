"""Calls of NFS: what a transaction makes of them by treatment, by file and kind, both accounts, and the scatter.

Computes nothing: every number stands in verdict.json and is only given a unit here.
"""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.captures.density import GROUPS
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metrics import unit_of_work
from plimsoll.analysis.nfs.document import NfsAccount, NfsCalls, NfsKind, NfsOfTreatment, NfsOperation
from plimsoll.quantities import size
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.report.nfs.client import client_table
from plimsoll.report.section import Page, Section
from plimsoll.words.nfs.sentences import (
    NAMES,
    account_lines,
    agreement_lines,
    effect_lines,
    effect_words,
    kept_words,
    made_lines,
    per_transaction,
)
from plimsoll.words.nfs.sentences import SECTION as KEY

Json = dict[str, Any]
MS = 1e-6
PANELS_MAX = 12
_PANEL_HEIGHT = 110
_READ, _WRITE = "READ", "WRITE"


def calls_part(page: Page) -> Json:
    """What the template draws."""
    found: NfsCalls = page.verdict["nfs_calls"]
    labels, work = treatment_labels(page.verdict), unit_of_work(page.verdict)
    return {
        "groups": [NAMES.get(group, group) for group in GROUPS],
        "rows": [_row(labels.get(name, name), mine) for name, mine in found["treatments"].items()],
        "without": [
            labels.get(name, name)
            for name, entry in page.verdict["treatments"].items()
            if name not in found["treatments"] and entry.get("metrics")
        ],
        "effects": [effect_words(effect, work) for effect in found["effects"]],
        "tables": [_table(labels.get(name, name), mine) for name, mine in found["treatments"].items()],
        "kept": [
            f"{labels.get(name, name)}: {text}"
            for name, mine in found["treatments"].items()
            if (text := kept_words(mine, work)) is not None
        ],
    }


def _of(mine: NfsOfTreatment, name: str) -> NfsOperation | None:
    return next((row for row in mine["operations"] if row["name"] == name), None)


def _each(mean: Mean | None) -> str:
    return NONE if mean is None else per_transaction(mean)


def _bytes(mean: Mean | None) -> str:
    """Without an interval that has no width."""
    if mean is None or mean["low"] is None or round(mean["low"]) != round(mean["value"]):
        return interval(mean, ",.0f")
    return f"{mean['value']:,.0f}"


def _row(label: str, mine: NfsOfTreatment) -> Json:
    read, write = _of(mine, _READ), _of(mine, _WRITE)
    return {
        "label": label,
        "calls": _each(mine["calls_per_transaction"]),
        "groups": [_each(mine["groups"].get(group)) for group in GROUPS],
        "read_bytes": NONE if read is None else _bytes(read["bytes_per_call"]),
        "write_bytes": NONE if write is None else _bytes(write["bytes_per_call"]),
        "read": _times(read),
        "options": [
            f"{mount['source']}: {', '.join(mount['options'])}" for mount in mine["mounts"] if mount["is_targets"]
        ],
    }


def _times(row: NfsOperation | None) -> list[str]:
    if row is None:
        return [NONE] * 3
    return [interval(mean, ",.2f", MS) for mean in (row["reply_ns_p50"], row["reply_ns_p95"], row["reply_ns_p99"])]


def _table(label: str, mine: NfsOfTreatment) -> Json:
    return {
        "label": label,
        "operations": [_operation(row) for row in mine["operations"]],
        "classes": [
            (
                row["file_class"],
                row["name"],
                number(row["calls"], ",.0f"),
                _each(row["per_transaction"]),
                size(row["answered_bytes"]) if row["answered_bytes"] else NONE,
                interval(row["reply_ns_p50"], ",.2f", MS),
            )
            for row in mine["classes"]
        ],
        "kinds": [_kind(row) for row in mine["kinds"]],
        "accounts": [_account(row) for row in mine["accounts"] or []],
        "moved": kept_words(mine),
        "client": None if (client := mine.get("client")) is None else client_table(client),
        "client_absent": mine.get("client_absent"),
    }


def _operation(row: NfsOperation) -> list[str]:
    return [
        f"{row['protocol']} {row['name']}",
        number(row["calls"], ",.0f"),
        _each(row["per_transaction"]),
        size(row["answered_bytes"]) if row["answered_bytes"] else NONE,
        *_times(row),
        number(row["retransmissions"], ",.0f"),
        number(row["unanswered"], ",.0f"),
        number(row["errors"], ",.0f"),
    ]


def _kind(row: NfsKind) -> Json:
    return {
        "kind": row["kind"],
        "transactions": number(row["transactions"], ",.0f"),
        "calls": ", ".join(f"{name} {per_transaction(mean)}" for name, mean in row["operations"].items()) or "none",
        "read": NONE if row["read_bytes"] is None else size(round(row["read_bytes"]["value"])),
        "written": NONE if row["written_bytes"] is None else size(round(row["written_bytes"]["value"])),
    }


def _account(row: NfsAccount) -> list[str]:
    if not row["is_of_mount"]:
        said = "of the client itself: counted for no mount"
    elif not row["difference"]:
        said = "agree"
    elif row["is_explained"]:
        said = "calls under way at the segment's edges explain it"
    else:
        said = "not explained"
    return [
        row["operation"],
        number(row["capture_calls"], ",.0f"),
        number(row["client_calls"], ",.0f"),
        number(row["difference"], "+,.0f"),
        said,
    ]


def scatter(page: Page) -> Figure:
    """Calls by when they were sent and how long their first reply took, a row a treatment, the study's three groups."""
    found: NfsCalls = page.verdict["nfs_calls"]
    title = "Every call: when it was sent, and how long its first reply took"
    labels = treatment_labels(page.verdict)
    drawn = [name for name, mine in found["treatments"].items() if mine["scatter"]]
    if not drawn:
        return Figure("nfs-calls", title, absent="no call has a reply")
    import altair as alt

    shown = drawn[:PANELS_MAX]
    left_out = len(drawn) - len(shown)
    order = [labels.get(name, name) for name in shown]
    cells: list[Json] = [
        {**cell, "treatment": labels.get(name, name)} for name in shown for cell in found["treatments"][name]["scatter"]
    ]
    cells += _empty_panels(cells, order)
    width = (WIDTH - 190) // len(GROUPS)
    chart = (
        alt.Chart(alt.NamedData("cells"), width=width, height=_PANEL_HEIGHT)
        .mark_rect(stroke=None)
        .encode(
            x=alt.X("from_s:Q", title="sent, seconds into the segment", scale=alt.Scale(nice=False)),
            x2=alt.X2("to_s:Q"),
            y=alt.Y("low_ms:Q", title="reply, ms", scale=alt.Scale(type="log", nice=False)),
            y2=alt.Y2("high_ms:Q"),
            color=alt.Color(
                "calls:Q", title="calls", scale=alt.Scale(type="log", range=["#B9D7EC", theme.BEST, "#14283F"])
            ),
            column=alt.Column("group:N", title=None, sort=list(GROUPS)),
            row=alt.Row(
                "treatment:N",
                title=None,
                sort=order,
                header=alt.Header(
                    labelAngle=0,
                    labelAlign="left",
                    labelLimit=160,
                    labelFontSize=11,
                    labelExpr="split(datum.label, ', ')",
                ),
            ),
            tooltip=[
                alt.Tooltip("calls:Q", title="calls"),
                alt.Tooltip("from_s:Q", title="from, s", format=".3f"),
                alt.Tooltip("to_s:Q", title="to, s", format=".3f"),
                alt.Tooltip("low_ms:Q", title="replied within, ms, from", format=".3f"),
                alt.Tooltip("high_ms:Q", title="to", format=".3f"),
            ],
        )
    )
    caption = (
        "Each cell counts the calls that were sent within a stretch of time and answered within a range of times; the "
        "darker, the more. One trial of each treatment; reply times from the first byte of the call to the last of its "
        "first reply."
    )
    if left_out:
        caption += f" {left_out} more treatments are not drawn; their numbers are in the tables."
    study = page.study or {}
    return Figure("nfs-calls", title, caption, study.get("nfs_calls", ""), spec_of(chart, {"cells": cells}))


def _empty_panels(cells: list[Json], treatments: list[str]) -> list[Json]:
    """For each panel that has no call a cell without width and height: where a panel has no data at all, the drawing
    moves the data of those behind it."""
    there = {(cell["treatment"], cell["group"]) for cell in cells}
    lowest, least = min(cell["low_ms"] for cell in cells), min(cell["calls"] for cell in cells)
    nothing = {"from_s": 0.0, "to_s": 0.0, "low_ms": lowest, "high_ms": lowest, "calls": least}
    return [
        {**nothing, "group": group, "treatment": treatment}
        for treatment in treatments
        for group in GROUPS
        if (treatment, group) not in there
    ]


def _evidence(page: Page) -> list[str]:
    said = [*made_lines(page.verdict), *effect_lines(page.verdict), *account_lines(page.verdict)]
    said += agreement_lines(page.verdict)
    return [f"{line}." for line in said]


SECTION = Section(
    key=KEY,
    title="Calls of NFS",
    template="nfs/calls.html.j2",
    applies=lambda page: bool(page.verdict.get("nfs_calls")),
    context=lambda page: {"nfs": calls_part(page)},
    evidence=_evidence,
    figures=lambda page: [scatter(page)],
)
