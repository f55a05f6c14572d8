"""The block devices drawn: how long requests queue and are at the device, depth and device time of each second."""

from typing import Any, Final

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.block_requests import dominant
from plimsoll.analysis.probes.block_series import Point, cumulative, of_trial
from plimsoll.analysis.probes.document import BlockRequests, TimeBuckets
from plimsoll.record import Run
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.series import shown_trials
from plimsoll.report.probes.block_requests import block_part, name_of
from plimsoll.report.section import Section

Json = dict[str, Any]
_LINES_MAX = 6
_TREATMENTS_MAX = 6
_SPANS: Final[dict[TimeBuckets, str]] = {"queue_ns_buckets": "in the queue", "device_ns_buckets": "at the device"}


def block_figures(run: Run, verdict: Json) -> list[Figure]:
    """None where the probe was not on."""
    block: dict[str, BlockRequests] = verdict.get("block") or {}
    if not block:
        return []
    labels = treatment_labels(verdict)
    return [_distributions(block, labels), _over_time(run, verdict, block, labels)]


def _distributions(block: dict[str, BlockRequests], labels: dict[str, str]) -> Figure:
    import altair as alt

    name, title = "block-times", "How long requests queue, and how long they are at the device"
    charts = []
    for treatment, one in list(block.items())[:_TREATMENTS_MAX]:
        for span, where in _SPANS.items():
            rows = [
                {"ms": round(ms, 6), "share": round(share, 5), "what": f"{disk}: {name_of(of, operation)}"}
                for disk, of, operation, sums in dominant(one, _LINES_MAX)
                for ms, share in cumulative(sums[span])
            ]
            charts.append(_lines(rows, f"{labels.get(treatment, treatment)}: {where}"))
    if not charts:
        return Figure(name, title, absent="no request was made")
    caption = (
        f"Cumulative distribution of the times of requests, of the {_LINES_MAX} kinds that took most of the time; "
        "logarithmic time axis."
    )
    return Figure(name, title, caption, spec=spec_of(alt.concat(*charts, columns=2, spacing=26)))


def _lines(rows: list[Json], title: str) -> Any:
    import altair as alt

    return (
        alt.Chart(alt.Data(values=rows), title=title)
        .mark_line(interpolate="step-after")
        .encode(
            alt.X("ms:Q", title="milliseconds", scale=alt.Scale(type="log")),
            alt.Y("share:Q", title="share of requests", axis=alt.Axis(format="%")),
            alt.Color("what:N", title=None),
            tooltip=[alt.Tooltip("what:N"), alt.Tooltip("ms:Q"), alt.Tooltip("share:Q", format=".2%")],
        )
        .properties(width=(WIDTH - 180) // 2, height=220)
    )


def _over_time(run: Run, verdict: Json, block: dict[str, BlockRequests], labels: dict[str, str]) -> Figure:
    import altair as alt

    name, title = "block-time", "Depth and device time over the measured segment"
    charts: list[Any] = []
    seen: set[str] = set()
    for trial in shown_trials(run, verdict):
        if trial.treatment in seen or trial.treatment not in block or len(seen) == _TREATMENTS_MAX:
            continue
        over_time = of_trial(trial)
        if over_time is None:
            continue
        seen.add(trial.treatment)
        label = labels.get(trial.treatment, trial.treatment)
        charts += [
            _over(_named(over_time["depth"]), "requests", f"{label}: requests at the device"),
            _over(_named(over_time["device"]), "milliseconds", f"{label}: mean time at the device"),
        ]
    if not charts:
        return Figure(name, title, absent="the series has no second")
    caption = (
        "Of the first trial of each treatment; mean over each sampling interval, and the most requests at once in it."
    )
    return Figure(name, title, caption, spec=spec_of(alt.concat(*charts, columns=2, spacing=26)))


def _over(rows: list[Json], unit: str, title: str) -> Any:
    import altair as alt

    return (
        alt.Chart(alt.Data(values=rows), title=title)
        .mark_line()
        .encode(
            alt.X("seconds:Q", title="seconds of the measured segment"),
            alt.Y("value:Q", title=unit),
            alt.Color("what:N", title=None),
            tooltip=[alt.Tooltip("what:N"), alt.Tooltip("seconds:Q"), alt.Tooltip("value:Q")],
        )
        .properties(width=(WIDTH - 180) // 2, height=200)
    )


def _named(rows: list[Point]) -> list[Json]:
    return [
        {"what": f"{row['device']}, {row['how']}", "seconds": row["seconds"], "value": row["value"]} for row in rows
    ]


SECTION = Section(
    key="block",
    title="Requests of the block devices by what they carry",
    template="probes/block_requests.html.j2",
    applies=lambda page: bool(page.verdict.get("block")),
    context=lambda page: {"block": block_part(page.verdict)},
    figures=lambda page: block_figures(page.run, page.verdict),
)
