"""Cells that tables of loads on files share: values of the verdict, given their unit."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.files.document import Flows, Phase
from plimsoll.analysis.files.metrics import SEEKS
from plimsoll.record.verdict import Mean
from plimsoll.report.drawing.tables import NONE, interval, short_form
from plimsoll.report.original_studies import BONNIE, S2_BONNIE

Json = dict[str, Any]
KB = 1 / 1024
MB = 1e-6
MS = 1e-6
US = 1e-3


def in_unit(mean: Mean | None, scale: float) -> str:
    """A value with its interval, to about three digits."""
    return NONE if not mean else interval(mean, short_form(mean["value"] * scale), scale)


def bonnie_cell(phase: str, one: Phase | None) -> str:
    """K/s, or seeks a second, and the share of one CPU in brackets, as Bonnie prints it."""
    if not one:
        return NONE
    rate = in_unit(one["operations_per_second"], 1.0) if phase == SEEKS else in_unit(one["bytes_per_second"], KB)
    share = NONE if not one["cpu_share"] else f"{one['cpu_share']['value'] * 100:.1f}"
    return f"{rate} ({share})"


def study_rows() -> list[Json]:
    """Study S2's table."""
    rows = []
    for name, cells in S2_BONNIE.items():
        shown = [
            f"{rate:,.1f} ({cpu:.1f})" if phase == SEEKS else f"{rate:,.0f} ({cpu:.1f})"
            for phase, (rate, cpu) in zip(BONNIE, cells, strict=True)
        ]
        rows.append({"label": f"the study, {name}", "ours": False, "cells": shown})
    return rows


def cache_words(one: Flows) -> str:
    """What the page cache did in how many trials."""
    rows = one["cache"]
    if len(rows) == 1:
        return rows[0]["what"]
    return "; ".join(f"{row['trials']} of the trials: {row['what']}" for row in rows) or NONE


def members_words(one: Phase) -> str:
    """What came to each member of an array: MB and requests, the members' own order."""
    said = []
    for what, count, nbytes in (("written", "writes", "written_bytes"), ("read", "reads", "read_bytes")):
        moved = [(member[count], member[nbytes]) for member in one["members"]]  # type: ignore[literal-required]
        if any(requests for requests, _ in moved):
            said.append(f"{what}: " + " | ".join(f"{size * MB:,.1f} in {requests:,}" for requests, size in moved))
    return "; ".join(said)
