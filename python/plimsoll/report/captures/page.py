"""The page of an imported capture: calls by operation, and study S2's scatter by density.

Computes nothing: every number stands in capture.json and is only given a unit here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from plimsoll.analysis.captures.document import CaptureDocument
from plimsoll.quantities import duration, size
from plimsoll.record import RecordError, Run, open_run
from plimsoll.record.run import read_json
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.html import write_page
from plimsoll.words.captures import HEADINGS, both_accounts_lines, headline, operation_cells

Json = dict[str, Any]
_PANEL_HEIGHT = 170


def scatter(document: CaptureDocument) -> Figure:
    """Calls by when they were sent and how long their first reply took: READ, GETATTR, everything else."""
    title = "Every call: when it was sent, and how long its first reply took"
    caption = (
        "Each cell counts the calls that were sent within a stretch of time and answered within a range of times; "
        "the darker, the more. Reply times from the first byte of the call to the last of its first reply."
    )
    original = (
        "Study S2 (CITI 2001) drew READ, GETATTR and the others as points over 3000 s, replies under 0.15 s: with noac "
        "an abundance of GETATTR, with rsize and wsize of 1 and 2 KiB far fewer reads."
    )
    if not document["scatter"]:
        return Figure("calls", title, absent="no call has a reply in this capture")
    import altair as alt

    groups = list(dict.fromkeys(cell["group"] for cell in document["scatter"]))
    base = alt.Chart(alt.NamedData("cells"), width=WIDTH - 120, height=_PANEL_HEIGHT)
    panels = [
        base.mark_rect(stroke=None)
        .transform_filter(alt.datum.group == group)
        .encode(
            x=alt.X("from_s:Q", title="sent, seconds into the capture", scale=alt.Scale(nice=False)),
            x2=alt.X2("to_s:Q"),
            y=alt.Y("low_ms:Q", title="reply time, ms", scale=alt.Scale(type="log", nice=False)),
            y2=alt.Y2("high_ms:Q"),
            color=alt.Color(
                "calls:Q", title="calls", scale=alt.Scale(type="log", range=["#B9D7EC", theme.BEST, "#14283F"])
            ),
            tooltip=[
                alt.Tooltip("calls:Q", title="calls"),
                alt.Tooltip("from_s:Q", title="from, s", format=".3f"),
                alt.Tooltip("to_s:Q", title="to, s", format=".3f"),
                alt.Tooltip("low_ms:Q", title="replied within, ms, from", format=".3f"),
                alt.Tooltip("high_ms:Q", title="to", format=".3f"),
            ],
        )
        .properties(title=group)
        for group in groups
    ]
    chart = alt.vconcat(*panels).resolve_scale(x="shared", y="shared", color="shared")
    return Figure("calls", title, caption, original, spec_of(chart, {"cells": document["scatter"]}))


def _facts(run: Run, document: CaptureDocument) -> list[tuple[str, str]]:
    plimsoll = run.data.get("plimsoll") or {}
    totals = document["totals"]
    return [
        ("run", document["run"]),
        ("capture", str(document["file"])),
        ("packets", f"{totals['packets']:,} ({size(totals['packet_bytes'])})"),
        ("lasted", duration(document["seconds"] * 1e9)),
        ("calls", f"{totals['calls']:,}"),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


_COUNTS = {
    "packets_cut": "packets cut by the capture",
    "packets_unread": "packets that are not TCP or UDP over IP",
    "segments_again": "TCP segments that brought nothing new",
    "segments_early": "TCP segments before one that belongs before them",
    "gaps": "gaps that nothing filled",
    "lost_bytes": "bytes in them",
    "resynchronised": "times the next message was searched for",
    "records_lost": "messages given up",
    "datagrams_lost": "datagrams without a fragment",
    "replies_without_call": "replies without their call",
    "messages_unread": "messages not read",
}


def _context(run: Run, document: CaptureDocument) -> Json:
    figure = scatter(document)
    command = run.data.get("command")
    return {
        "title": "Calls of NFS in a packet capture",
        "status": document["status"],
        "facts": _facts(run, document),
        "headline": headline(document),
        "caveats": document["caveats"],
        "accounts": [line for line in both_accounts_lines(document) if line],
        "headings": HEADINGS,
        "operations": [operation_cells(row) for row in document["operations"]],
        "classes": [
            (
                row["file_class"],
                row["name"],
                f"{row['calls']:,}",
                size(row["answered_bytes"]) if row["answered_bytes"] else "–",
                duration(row["reply_ns_p50"]),
                duration(row["reply_ns_p95"]),
            )
            for row in document["classes"]
        ],
        "connections": [
            (row["client"], row["server"], row["transport"], f"{row['calls']:,}") for row in document["connections"]
        ],
        "left_out": document["connections_left_out"],
        "counts": [(text, f"{document['totals'][key]:,}") for key, text in _COUNTS.items()],
        "figure": figure,
        "command": " ".join(str(word) for word in command) if isinstance(command, list) else "",
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
        "specs": {figure.name: figure.spec} if figure.spec is not None else {},
    }


def write_capture_report(run_dir: str | Path, is_with_files: bool = False) -> Path:
    """Draws capture.json; returns the page's path. With files the figure lies beside it as SVG and PNG, too."""
    run = open_run(run_dir)
    document = cast(CaptureDocument | None, read_json(run.path / "capture.json"))
    if document is None:
        raise RecordError(f"{run.path}: no capture.json; judge the run first with plimsoll report")
    context = _context(run, document)
    return write_page(run, "captures/capture.html.j2", context, [context["figure"]], is_with_files)
