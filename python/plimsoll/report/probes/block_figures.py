"""The block devices drawn: how long requests queue and are at the device, depth and device time of each second."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.block_requests import dominant
from plimsoll.record import Run
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.series import shown_trials
from plimsoll.report.probes.block_requests import name_of

Json = dict[str, Any]
_LINES_MAX = 6
_TREATMENTS_MAX = 6
_POINTS_MAX = 120
_SPANS = {"queue_ns": "in the queue", "device_ns": "at the device"}


def block_figures(run: Run, verdict: Json) -> list[Figure]:
    """None where the probe was not on."""
    found = verdict.get("block") or {}
    if not found:
        return []
    labels = treatment_labels(verdict)
    return [_distributions(found, labels), _over_time(run, verdict, found, labels)]


def _steps(buckets: list[list[int]]) -> Iterator[tuple[float, float]]:
    """Times in milliseconds, and the share of requests that took no longer."""
    total, seen = sum(count for _, count in buckets), 0
    every = max(1, len(buckets) // _POINTS_MAX)
    for place, (least, count) in enumerate(buckets):
        seen += count
        if place % every == 0 or place == len(buckets) - 1:
            yield max(least, 1) / 1e6, seen / total


def _distributions(found: Json, labels: dict[str, str]) -> Figure:
    import altair as alt

    name, title = "block-times", "How long requests queue, and how long they are at the device"
    charts = []
    for treatment, one in list(found.items())[:_TREATMENTS_MAX]:
        for span, where in _SPANS.items():
            rows = [
                {"ms": round(ms, 6), "share": round(share, 5), "what": f"{disk}: {name_of(of, operation)}"}
                for disk, of, operation, sums in dominant(one, _LINES_MAX)
                for ms, share in _steps(sums[f"{span}_buckets"])
            ]
            charts.append(_lines(rows, f"{labels.get(treatment, treatment)}: {where}"))
    if not charts:
        return Figure(name, title, absent="no request was made")
    caption = (
        f"The share of requests that took no longer; the {_LINES_MAX} kinds that took most of the time. "
        "The scale of time is logarithmic."
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
            tooltip=["what:N", "ms:Q", alt.Tooltip("share:Q", format=".2%")],
        )
        .properties(width=(WIDTH - 180) // 2, height=220)
    )


def _over_time(run: Run, verdict: Json, found: Json, labels: dict[str, str]) -> Figure:
    import altair as alt

    name, title = "block-time", "Depth and device time over the measured segment"
    charts: list[Any] = []
    seen: set[str] = set()
    for trial in shown_trials(run, verdict):
        if trial.treatment in seen or trial.treatment not in found or len(seen) == _TREATMENTS_MAX:
            continue
        devices = (trial.measure.probes.get("block") or {}).get("devices") or []
        depth = depth_rows(trial.measure.series("block_depth"), devices)
        if not depth:
            continue
        began_ns = int(trial.measure.series("block_depth")["t_ns"][0])
        times = device_rows(trial.measure.series("block"), devices, began_ns)
        seen.add(trial.treatment)
        label = labels.get(trial.treatment, trial.treatment)
        charts += [
            _over(depth, "requests", f"{label}: requests at the device"),
            _over(times, "milliseconds", f"{label}: mean time at the device"),
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
            tooltip=["what:N", "seconds:Q", "value:Q"],
        )
        .properties(width=(WIDTH - 180) // 2, height=200)
    )


def depth_rows(table: Any, devices: list[str]) -> list[Json]:
    """Mean and most of each interval; the sums count from the first look, just before the first interval."""
    rows: list[Json] = []
    for place, disk in enumerate(devices if table is not None else []):
        mine = table[table["device"] == place]
        began = mine["t_ns"][:-1]
        for at, (since, until) in enumerate(zip(began, mine["t_ns"][1:], strict=True), start=1):
            seconds = round(float(until - mine["t_ns"][0]) / 1e9, 2)
            mean = float(mine["depth_ns"][at] - mine["depth_ns"][at - 1]) / max(1.0, float(until - since))
            rows += [
                {"what": f"{disk}, mean", "seconds": seconds, "value": round(mean, 4)},
                {"what": f"{disk}, most", "seconds": seconds, "value": int(mine["depth_max"][at])},
            ]
    return rows


def device_rows(table: Any, devices: list[str], began_ns: int) -> list[Json]:
    """Mean milliseconds of each interval at the device, of the reads, the writes and the flushes."""
    rows: list[Json] = []
    for place, disk in enumerate(devices if table is not None else []):
        mine = table[table["device"] == place]
        for number, operation in enumerate(("reads", "writes", "flushes")):
            of = mine[mine["operation"] == number]
            moments, at = np.unique(of["t_ns"], return_inverse=True)
            count, times = (
                np.bincount(at, weights=of[column].astype(float), minlength=len(moments))
                for column in ("count", "device_ns")
            )
            grown, spent = np.diff(count, prepend=0), np.diff(times, prepend=0)
            for moment, more, ns in zip(moments, grown, spent, strict=True):
                if more > 0:
                    seconds, ms = float(moment - began_ns) / 1e9, float(ns / more) / 1e6
                    row = {"what": f"{disk}, {operation}", "seconds": round(seconds, 2), "value": round(ms, 4)}
                    rows.append(row)
    return rows
