"""The sequence of single syncs: one point a call, in the order in which they were made, as study S2 drew it."""

from typing import Any

import numpy as np

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.record import Run
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.series import shown_trials
from plimsoll.report.probes.syscalls import CLASSES

Json = dict[str, Any]
_POINTS_MAX = 1500
_TRIALS_MAX = 6


def sync_figures(run: Run, verdict: Json) -> list[Figure]:
    """One panel a treatment, from its first trial; none where the probe was not on."""
    syncs = (verdict.get("syscalls") or {}).get("syncs") or {}
    if not syncs:
        return []
    labels = treatment_labels(verdict)
    panels: list[tuple[str, list[Json]]] = []
    seen: set[str] = set()
    for trial in shown_trials(run, verdict):
        if trial.treatment in seen or trial.treatment not in syncs or len(panels) == _TRIALS_MAX:
            continue
        table = trial.measure.syncs
        if table is None or not len(table):
            continue
        seen.add(trial.treatment)
        panels.append((labels.get(trial.treatment, trial.treatment), _points(table, trial)))
    name, title = "sync-sequence", "The sequence of single syncs"
    if not panels:
        return [Figure(name, title, absent="no sync was made")]
    return [Figure(name, title, _caption(), spec=spec_of(_chart(panels)), original="each fdatasync in its order")]


def _caption() -> str:
    return (
        f"The first {_POINTS_MAX:,} fsync and fdatasync calls of the measured segment, of the first trial of each "
        "treatment, in the order of their entries; the scale is logarithmic."
    )


def _points(table: Any, trial: Any) -> list[Json]:
    entry = trial.measure.probes.get("sync") or {}
    classes, calls = entry.get("classes") or [], entry.get("calls") or []
    first = table[np.argsort(table["t_ns"], kind="stable")][:_POINTS_MAX]
    return [
        {
            "call": place,
            "ms": round(max(int(row["ns"]), 1) / 1e6, 4),
            "what": f"{calls[row['call']]}, {CLASSES.get(classes[row['class']], classes[row['class']])}",
        }
        for place, row in enumerate(first, start=1)
    ]


def _chart(panels: list[tuple[str, list[Json]]]) -> Any:
    import altair as alt

    columns = min(2, len(panels))
    width = (WIDTH - 90 * columns) // columns
    charts = [
        alt.Chart(alt.Data(values=rows), title=label)
        .mark_circle(size=12, opacity=0.6)
        .encode(
            alt.X("call:Q", title="number of the call"),
            alt.Y("ms:Q", title="milliseconds", scale=alt.Scale(type="log")),
            alt.Color("what:N", title=None),
            tooltip=["call:Q", "ms:Q", "what:N"],
        )
        .properties(width=width, height=220)
        for label, rows in panels
    ]
    return alt.concat(*charts, columns=columns, spacing=26)
