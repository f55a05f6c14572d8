"""The sequence of single syncs: one point a call, in the order in which they were made, as study S2 drew it."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.document import Syncs, SystemCalls
from plimsoll.analysis.probes.syscalls import SingleSync, sync_sequence
from plimsoll.record import Run
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.series import shown_trials
from plimsoll.report.probes.syscalls import CLASSES, system_calls_part
from plimsoll.report.section import Section

Json = dict[str, Any]
_POINTS_MAX = 1500
_TRIALS_MAX = 6
_MS = 1e-6


def sync_figures(run: Run, verdict: Json) -> list[Figure]:
    """One panel a treatment, from its first trial; none where the probe was not on."""
    syscalls: SystemCalls | None = verdict.get("syscalls")
    syncs: dict[str, Syncs] = syscalls["syncs"] if syscalls else {}
    if not syncs:
        return []
    labels = treatment_labels(verdict)
    panels: list[tuple[str, list[Json]]] = []
    seen: set[str] = set()
    for trial in shown_trials(run, verdict):
        if trial.treatment in seen or trial.treatment not in syncs or len(panels) == _TRIALS_MAX:
            continue
        syncs_in_order = sync_sequence(trial, _POINTS_MAX)
        if not syncs_in_order:
            continue
        seen.add(trial.treatment)
        panels.append((labels.get(trial.treatment, trial.treatment), [_point(one) for one in syncs_in_order]))
    name, title = "sync-sequence", "The sequence of single syncs"
    if not panels:
        return [Figure(name, title, absent="no sync was made")]
    return [Figure(name, title, _caption(), spec=spec_of(_chart(panels)), original="each fdatasync in its order")]


def _caption() -> str:
    return (
        f"The first {_POINTS_MAX:,} fsync and fdatasync calls of the measured segment, of the first trial of each "
        "treatment, in the order of their entries; the scale is logarithmic."
    )


def _point(sync: SingleSync) -> Json:
    what = f"{sync['call']}, {CLASSES.get(sync['class'], sync['class'])}"
    return {"call": sync["place"], "ms": round(max(sync["ns"], 1) * _MS, 4), "what": what}


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
            tooltip=[alt.Tooltip("call:Q"), alt.Tooltip("ms:Q"), alt.Tooltip("what:N")],
        )
        .properties(width=width, height=220)
        for label, rows in panels
    ]
    return alt.concat(*charts, columns=columns, spacing=26)


SECTION = Section(
    key="system-calls",
    title="System calls and syncs by file class",
    template="probes/syscalls.html.j2",
    applies=lambda page: bool(page.verdict.get("syscalls")),
    context=lambda page: {"syscalls": system_calls_part(page.verdict), "study": page.study},
    figures=lambda page: sync_figures(page.run, page.verdict),
)
