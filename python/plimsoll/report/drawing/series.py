"""Figures over time: the group's memory and swap, and the warm-up curve with the measured segment shaded."""

from typing import Any

import altair as alt

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.statistics import curves
from plimsoll.record import Run
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, panel_width, spec_of
from plimsoll.report.drawing.marks import by_colour, side_by_side, titled
from plimsoll.words.levels import at_words

Json = dict[str, Any]
_PARTS = {
    "anon_bytes": "anonymous",
    "shmem_bytes": "shared memory",
    "file_bytes": "page cache",
    "swap_bytes": "in swap",
}
_TRIALS_MAX = 64


def shown_trials(run: Run, verdict: Json) -> list[Any]:
    """Finished originals, most of them; the trials of block 1 first where there are too many."""
    entries = {trial["number"]: trial for trial in verdict["trials"]}
    trials = [
        trial
        for trial in run.trials
        if entries.get(trial.number, {}).get("status") == "finished" and not trial.duplicate
    ]
    return sorted(trials, key=lambda trial: (trial.block, trial.number))[:_TRIALS_MAX]


def memory_figure(run: Run, verdict: Json) -> Figure:
    """The group's memory stacked by part, a panel for each treatment, the block chosen from a list."""
    name, title = "memory", "Memory and swap of the server's group over time"
    labels = treatment_labels(verdict)
    rows, windows = [], []
    for trial in shown_trials(run, verdict):
        window = curves.measured_window(trial)
        where = {"treatment": labels.get(trial.treatment, trial.treatment), "block": trial.block}
        curve = curves.memory_curve(trial)
        for row in curve:
            rows.append(
                {**where, "seconds": row["seconds"], "part": _PARTS[row["part"]], "mib": round(row["bytes"] / 2**20, 1)}
            )
        if curve and window:
            windows.append({**where, "from": 0, "to": curves.measured_seconds(window)})
    if not rows:
        return Figure(
            name, title, absent="the group's memory was not sampled (no memory controller, or an existing server)"
        )
    blocks = sorted({row["block"] for row in rows})
    present = [label for label in labels.values() if any(row["treatment"] == label for row in rows)]
    select = alt.param("block", bind=alt.binding_select(options=blocks, name="block "), value=blocks[0])
    columns = min(3, len(present))
    width = (WIDTH - 78 * columns) // columns
    parts = list(theme.PARTS)
    there = [part for part in parts if any(row["part"] == part and row["mib"] > 0 for row in rows)]
    panels = []
    for label in present:
        area = (
            alt.Chart(alt.NamedData(name=label))
            .transform_filter("datum.block == block")
            .mark_area(opacity=0.85)
            .encode(
                alt.X(
                    "seconds:Q",
                    title="seconds from the start of measuring",
                    axis=alt.Axis(tickCount=6),
                    scale=alt.Scale(nice=False),
                ),
                alt.Y("mib:Q", stack="zero", title="MiB", axis=alt.Axis(format=",d", tickCount=5)),
                by_colour("part:N", parts, list(theme.PARTS.values()), values=there),
                alt.Order("order:Q"),
                tooltip=[
                    alt.Tooltip("part:N"),
                    alt.Tooltip("mib:Q", title="MiB", format=",.0f"),
                    alt.Tooltip("seconds:Q"),
                ],
            )
            .transform_calculate(order=f"indexof({parts!r}, datum.part)")
        )
        shade = (
            alt.Chart(alt.Data(values=[window for window in windows if window["treatment"] == label]))
            .transform_filter("datum.block == block")
            .mark_rule(strokeDash=[4, 3], color=theme.UNJUDGED)
            .encode(x=alt.X("from:Q"))
        )
        panels.append(alt.layer(area, shade).properties(width=width, height=170, title=label))
    chart = alt.concat(*panels, columns=columns, spacing=26).resolve_scale(y="shared", x="shared").add_params(select)
    caption = (
        "Usage of the server's group at 1 s, stacked; swap stands on top of what is in memory. Page cache is file "
        "memory without shared memory. The dashed line is where measuring began. One block is shown; choose another "
        "below."
    )
    datasets = {label: [row for row in rows if row["treatment"] == label] for label in present}
    return Figure(name, title, caption, spec=spec_of(chart, datasets), controls=True)


def _warmup_rows(run: Run, verdict: Json, comparison: Json) -> tuple[list[Json], float]:
    """Hit ratio by second of a comparison's trials, and the end of the longest measured segment."""
    levels = {level["treatment"]: level["level"] for level in comparison["levels"]}
    rows: list[Json] = []
    end = 0.0
    for trial in shown_trials(run, verdict):
        window = curves.measured_window(trial)
        if window is None or trial.treatment not in levels:
            continue
        end = max(end, curves.measured_seconds(window))
        where = {"level": levels[trial.treatment], "trial": trial.number, "block": trial.block}
        for row in curves.hit_ratio_curve(trial):
            rows.append({**where, "seconds": row["seconds"], "percent": round(100 * row["hit_ratio"], 2)})
    return rows, end


def _warmup_panel(rows: list[Json], end: float, order: list[str], label: str, width: int, pick: Any) -> Any:
    shade = (
        alt.Chart(alt.Data(values=[{"from": 0, "to": end}]))
        .mark_rect(color=theme.SHADE, opacity=0.13)
        .encode(alt.X("from:Q"), alt.X2("to:Q"))
    )
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.6)
        .encode(
            alt.X("seconds:Q", title="seconds from the start of measuring (shaded)", scale=alt.Scale(nice=False)),
            alt.Y("percent:Q", title="database hit ratio, %", scale=alt.Scale(domain=[0, 100])),
            alt.Color("level:N", title=label, sort=order, scale=alt.Scale(domain=order, range=ramp(len(order)))),
            alt.Detail("trial:N"),
            opacity=alt.OpacityValue(0.12, condition={"param": pick.name, "value": 0.9}),
            tooltip=[
                alt.Tooltip("level:N"),
                alt.Tooltip("block:Q"),
                alt.Tooltip("trial:Q"),
                alt.Tooltip("percent:Q", format=".1f"),
                alt.Tooltip("seconds:Q"),
            ],
        )
        .add_params(pick)
    )
    return alt.layer(shade, lines).properties(width=width, height=280)


def warmup_figure(run: Run, verdict: Json) -> Figure:
    """Database hit ratio by second for each trial, the measured segment shaded; a panel a comparison."""
    name, title = "warm-up", "Warm-up: database hit ratio over time"
    alone = {"levels": [{"treatment": key, "level": entry["label"]} for key, entry in verdict["treatments"].items()]}
    comparisons = verdict["comparisons"] or [{**alone, "label": "treatment", "at": {}}]
    width = (panel_width(min(3, len(comparisons))) - 170) if len(comparisons) == 1 else panel_width(3) - 40
    panels = []
    for place, comparison in enumerate(comparisons):
        pick = alt.selection_point(name=f"level_{place}", fields=["level"], bind="legend")
        rows, end = _warmup_rows(run, verdict, comparison)
        if rows:
            order = [level["level"] for level in comparison["levels"]]
            panel = _warmup_panel(rows, end, order, comparison["label"], width, pick)
            panels.append(titled(panel, at_words(comparison)))
    if not panels:
        return Figure(name, title, absent="the server's counters were not sampled")
    chart = side_by_side(panels, 3, spacing=24)
    caption = "One line a trial, from neighbouring samples at 1 s. Click a level in the legend to single it out."
    return Figure(name, title, caption, spec=spec_of(chart))


def ramp(count: int) -> list[str]:
    """Distinct colours for ordered levels: dark blue over green to yellow-orange, told apart in any colour vision."""
    stops = ["#1B2A6B", "#0072B2", "#2C9FB8", "#009E73", "#8DB543", "#E69F00", "#D55E00", "#8C2D04"]
    if count <= 1:
        return stops[1:2]
    return [stops[round(index * (len(stops) - 1) / (count - 1)) % len(stops)] for index in range(count)]
