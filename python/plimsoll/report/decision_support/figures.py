"""Decision support, drawn: each query's time and its change between treatments, the streams in time, where a query's
time goes, and vmstat's columns as study S3 shows them.
"""

from typing import Any, Literal

import altair as alt

from plimsoll.analysis.breakdown.parts import gathered, in_order, named_among
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.decision_support.document import DecisionSupport, Timeline
from plimsoll.analysis.decision_support.run import WORKERS
from plimsoll.analysis.decision_support.trial import DONE, NAMES, REFRESH_STREAM, lasted_s
from plimsoll.analysis.trial import vmstat
from plimsoll.record import Run
from plimsoll.report.breakdown.waterfall import MS, choice
from plimsoll.report.decision_support.drift_figure import drift_figure
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour, intervals
from plimsoll.report.drawing.series import ramp, shown_trials

Json = dict[str, Any]
_TESTS = {"power": "power test", "throughput": "throughput test, mean of its streams"}
_WORDS = {
    "slower": theme.WORSE,
    "faster": theme.BEST,
    "no relevant difference": "#009E73",
    "cannot tell": theme.UNJUDGED,
}
_WORK = {"query": "#56B4E9", "refresh function": "#E69F00", "not done": "#D55E00"}
_SEGMENTS_MAX = 12
_LABEL_SHARE = 0.02
_TIP = ",.4~g"


def decision_support_figures(run: Run, verdict: Json) -> list[Figure]:
    """The part's figures; none for another workload."""
    if not verdict.get("decision_support"):
        return []
    drift = drift_figure(verdict)
    return [
        *([] if drift is None else [drift]),
        queries_figure(verdict),
        changes_figure(verdict),
        timeline_figure(verdict),
        parts_figure(verdict),
        vmstat_figure(run, verdict),
    ]


def _support(verdict: Json) -> DecisionSupport:
    support: DecisionSupport = verdict["decision_support"]
    return support


def queries_figure(verdict: Json) -> Figure:
    """Seconds of each query by treatment, with intervals; the test chosen from a list."""
    name, title = "queries", "Each query's time"
    labels, rows = treatment_labels(verdict), []
    for treatment, of_treatment in _support(verdict)["treatments"].items():
        for test, queries in of_treatment["queries"].items():
            for query, estimate in queries.items():
                if estimate["value"] is None:
                    continue
                row: Json = {"treatment": labels.get(treatment, treatment), "test": _TESTS[test], "query": query}
                row |= {"seconds": estimate["value"], "blocks": estimate["blocks"]}
                if estimate["low"] is not None:
                    row |= {"low": estimate["low"], "high": estimate["high"]}
                rows.append(row)
    if not rows:
        return Figure(name, title, absent="no query completed in a trial that entered the verdict")
    tests = list(dict.fromkeys(row["test"] for row in rows))
    shown = list(dict.fromkeys(row["treatment"] for row in rows))
    colours = theme.SERIES[: len(shown)] if len(shown) <= len(theme.SERIES) else ramp(len(shown))
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.test == test")
    x = alt.X("query:N", sort=list(NAMES), title=None)
    offset = alt.XOffset("treatment:N", sort=shown)
    colour = by_colour("treatment:N", shown, colours, columns=2, labelLimit=440)
    y = alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5))
    tips = [
        alt.Tooltip("query:N"),
        alt.Tooltip("treatment:N"),
        alt.Tooltip("seconds:Q", format=_TIP),
        alt.Tooltip("low:Q", format=_TIP),
    ]
    tips += [alt.Tooltip("high:Q", format=_TIP), alt.Tooltip("blocks:Q")]
    chart = alt.layer(
        intervals(base, 1.6, x, offset, colour),
        base.mark_point(filled=True, size=42, opacity=1).encode(x, y, offset, colour, tooltip=tips),
    ).properties(width=WIDTH - 70, height=300)
    caption = "Geometric means over blocks with their 95 % t intervals. RF1 and RF2 are the refresh functions."
    return Figure(name, title, caption, spec=spec_of(chart.add_params(choice("test", "test", tests))))


def changes_figure(verdict: Json) -> Figure:
    """How many times longer each query takes than at the best level; the pair and the test chosen from a list."""
    name, title = "query-changes", "Which queries changed"
    rows = []
    for change in _support(verdict)["changes"]:
        row: Json = {
            "shown": f"{change['second_label']} over {change['first_label']}, {change['test']}",
            "query": change["query"],
        }
        row |= {"ratio": change["ratio"], "verdict": change["verdict"], "blocks": change["blocks"]}
        rows.append(row | ({} if change["low"] is None else {"low": change["low"], "high": change["high"]}))
    if not rows:
        return Figure(name, title, absent="no two treatments are compared, or they share no block")
    shown = list(dict.fromkeys(row["shown"] for row in rows))
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.shown == shown")
    x = alt.X("query:N", sort=list(NAMES), title=None)
    y = alt.Y("ratio:Q", title="times as long", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5))
    present = [word for word in _WORDS if any(row["verdict"] == word for row in rows)]
    scale = alt.Scale(domain=present, range=[_WORDS[word] for word in present])
    legend = alt.Legend(orient="top", direction="horizontal")
    colour = alt.Color("verdict:N", title=None, scale=scale, legend=legend)
    shape = alt.Shape("verdict:N", scale=alt.Scale(domain=present, range=_shapes(present)), legend=None)
    tips = [
        alt.Tooltip("query:N"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("ratio:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
    ]
    tips += [alt.Tooltip("high:Q", format=".3f"), alt.Tooltip("blocks:Q")]
    no_change = alt.Chart(alt.Data(values=[{"ratio": 1}])).mark_rule(strokeDash=[4, 3], color=theme.UNJUDGED).encode(y)
    chart = alt.layer(
        no_change,
        intervals(base, 2, x, color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
    ).properties(width=WIDTH - 70, height=260)
    caption = (
        "Ratios of the times within blocks. The intervals hold at 95 % for all queries of a test together, so that no "
        "query is found to have changed for there being many."
    )
    return Figure(name, title, caption, spec=spec_of(chart.add_params(choice("shown", "shown", shown))))


def _shapes(present: list[str]) -> list[str]:
    shapes = {"slower": "triangle-up", "faster": "triangle-down", "no relevant difference": "circle"}
    return [shapes.get(word, "diamond") for word in present]


def timeline_figure(verdict: Json) -> Figure:
    """What each stream was at when; the trial and its test chosen from a list."""
    name, title = "streams", "The streams in time"
    labels, rows = treatment_labels(verdict), []
    where = {trial["number"]: trial for trial in verdict["trials"]}
    for reading in _support(verdict)["trials"][:_SEGMENTS_MAX]:
        entry = where[reading["number"]]
        label = labels.get(entry["treatment"], entry["treatment"])
        for segment in (test for test in reading["segments"] if test["test"] != "plans"):
            shown = f"{label}, block {entry['block']}: {segment['segment']}"
            rows += _bars(segment, shown)
    if not rows:
        return Figure(name, title, absent="no trial has a record of its queries")
    shown_all = list(dict.fromkeys(row["shown"] for row in rows))
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.shown == shown")
    x = alt.X("from:Q", title="seconds from the test's start", axis=alt.Axis(format=",~r", tickCount=8, grid=True))
    y = alt.Y("stream:N", sort=alt.SortField("place"), title="stream", axis=alt.Axis(domain=True))
    present = [kind for kind in _WORK if any(row["kind"] == kind for row in rows)]
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=present, range=[_WORK[kind] for kind in present]),
        legend=alt.Legend(orient="top", direction="horizontal"),
    )
    tips = [
        alt.Tooltip("query:N"),
        alt.Tooltip("title:N"),
        alt.Tooltip("status:N"),
        alt.Tooltip("seconds:Q", format=_TIP),
        alt.Tooltip("error:N"),
    ]
    bars = base.mark_bar(height={"band": 0.72}, stroke="white", strokeWidth=0.8)
    texts = base.transform_filter("datum.is_wide").mark_text(fontSize=10, color="#1A2230")
    chart = alt.layer(
        bars.encode(x, alt.X2("to:Q"), y, colour, tooltip=tips),
        texts.encode(alt.X("middle:Q"), y, text=alt.Text("query:N")),
    ).properties(width=WIDTH - 110, height={"step": 30})
    caption = "A bar a query or refresh function, named where there is room. Point at a bar for its time and its end."
    return Figure(name, title, caption, spec=spec_of(chart.add_params(choice("shown", "shown", shown_all))))


def _bars(segment: Timeline, shown: str) -> list[Json]:
    ended = [work["to_s"] for work in segment["work"] if work["to_s"] is not None]
    rows = []
    for work in segment["work"]:
        began, until = work["from_s"], work["to_s"]
        if began is None or until is None or (lasted := lasted_s(work)) is None:
            continue
        is_refresh = work["stream"] == REFRESH_STREAM or work["name"].startswith("RF")
        kind = "not done" if work["status"] != DONE else "refresh function" if is_refresh else "query"
        place = 1_000_000 if work["stream"] == REFRESH_STREAM else int(work["stream"] or 0)
        row = {"shown": shown, "stream": str(work["stream"]), "place": place, "query": work["name"], "kind": kind}
        row |= {"from": round(began, 4), "to": round(until, 4), "seconds": round(lasted, 4)}
        row |= {"middle": round(began + lasted / 2, 4), "is_wide": lasted >= _LABEL_SHARE * max(ended)}
        rows.append(row | {"status": work["status"], "title": work["title"] or "", "error": work["error"] or ""})
    return rows


def parts_figure(verdict: Json) -> Figure:
    """Where each query's time goes, in ms and as shares; the treatment chosen from a list."""
    name, title = "query-parts", "Where each query's time goes"
    labels = treatment_labels(verdict)
    rows: list[Json] = []
    treatments = _support(verdict)["treatments"]
    named = named_among(parts for of_treatment in treatments.values() for parts in of_treatment["parts"].values())
    for treatment, of_treatment in treatments.items():
        for query, all_parts in of_treatment["parts"].items():
            parts = gathered(all_parts, named)
            order = in_order(set(parts))
            rows += [
                {"treatment": labels.get(treatment, treatment), "query": query, "part": part, "ms": ns * MS}
                | {"order": order.index(part)}
                for part, ns in parts.items()
            ]
    if not rows:
        absent = "there is no breakdown by query (the probe was refused, not asked for, or watched too little)"
        return Figure(name, title, absent=absent)
    names = in_order({row["part"] for row in rows})
    colours = {**theme.SPENT, WORKERS: "#A65628"}
    scale = alt.Scale(domain=names, range=[colours.get(part, theme.UNJUDGED) for part in names])
    legend = alt.Legend(orient="top", direction="horizontal", columns=9, labelLimit=160)
    colour = alt.Color("part:N", title=None, sort=names, scale=scale, legend=legend)
    base = alt.Chart(alt.Data(values=rows)).transform_filter("datum.treatment == treatment").mark_bar()
    panels = []
    sides: list[tuple[Literal["zero", "normalize"], str, str]] = [
        ("zero", "ms", ",~r"),
        ("normalize", "share of the time", "%"),
    ]
    for stack, words, form in sides:
        y = alt.Y("query:N", sort=list(NAMES), title=None, axis=alt.Axis(labels=stack == "zero", domain=True))
        x = alt.X("ms:Q", stack=stack, title=words, axis=alt.Axis(format=form, tickCount=5, grid=True))
        tips = [alt.Tooltip("query:N"), alt.Tooltip("part:N"), alt.Tooltip("ms:Q", title="ms", format=_TIP)]
        panel = base.encode(x, y, colour, alt.Order("order:Q"), tooltip=tips)
        panels.append(panel.properties(width=(WIDTH - 120) // 2, height={"step": 17}))
    shown = list(dict.fromkeys(row["treatment"] for row in rows))
    chart = alt.concat(*panels, columns=2, spacing=24).add_params(choice("treatment", "treatment", shown))
    caption = (
        "Of the session that asked, in the trial's first test, means over blocks: on a CPU, reading data that neither "
        "cache held, temporary files, waiting for workers, and the rest. What the workers themselves did is not in it."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def vmstat_figure(run: Run, verdict: Json) -> Figure:
    """Free, buffer and cache memory, blocks in and out, and CPU shares over each test, as the study's graphs."""
    name, title = "vmstat", "The machine during the tests, as vmstat shows it"
    labels, rows = treatment_labels(verdict), []
    segments = [
        (f"{labels.get(trial.treatment, trial.treatment)}, block {trial.block}: {segment.name}", segment)
        for trial in shown_trials(run, verdict)
        for test, segment in trial.tests
        if test != "plans"
    ]
    for shown, segment in segments[:_SEGMENTS_MAX]:
        for row in vmstat.curve(segment):
            scale = 1 / 1024 if vmstat.COLUMNS[row["column"]].startswith("KiB") else 1.0
            rows.append({**row, "shown": shown, "value": round(row["value"] * scale, 2)})
    if not rows:
        return Figure(name, title, absent="the host's series were not sampled")
    shown_all = list(dict.fromkeys(row["shown"] for row in rows))
    groups = ((vmstat.KIB, "MiB"), (vmstat.KIB_A_SECOND, "MiB/s"), (vmstat.SHARES, "% of CPU time"))
    panels = [_vmstat_panel(rows, list(columns), unit) for columns, unit in groups]
    chart = alt.concat(*panels, columns=3, spacing=24).resolve_scale(color="independent")
    chart = chart.add_params(choice("shown", "shown", shown_all))
    caption = (
        "Of the whole machine, at 1 s, thinned for drawing. free, buff and cache are memory; bi and bo what all "
        "devices read and wrote; us, sy, id, wa and st the CPUs' time: user, system, idle, waiting for I/O, stolen."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def _vmstat_panel(rows: list[Json], columns: list[str], unit: str) -> Any:
    present = [name for name in columns if any(row["column"] == name for row in rows)]
    colour = by_colour("column:N", present, theme.SERIES[: len(present)])
    return (
        alt.Chart(alt.Data(values=[row for row in rows if row["column"] in present]))
        .transform_filter("datum.shown == shown")
        .mark_line(strokeWidth=1.4)
        .encode(
            alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5), scale=alt.Scale(nice=False)),
            alt.Y("value:Q", title=unit, axis=alt.Axis(format=",~r", tickCount=5)),
            colour,
            tooltip=[alt.Tooltip("column:N"), alt.Tooltip("value:Q", format=",.4~r"), alt.Tooltip("seconds:Q")],
        )
        .properties(width=(WIDTH - 240) // 3, height=200)
    )
