"""Writeback on the page: dirty pages over time with their thresholds, throttled time, and the study's run time.

Only for runs that set vm.dirty_*; every other report is without this section.
"""

from typing import Any

import altair as alt

from plimsoll.analysis.probes.instruments import instrument_of
from plimsoll.analysis.probes.writeback import dirty_curve, is_of_group, settings_of, thresholds
from plimsoll.record import Run
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.levels import levels_figure
from plimsoll.report.drawing.series import shown_trials
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.report.original_studies import study_of
from plimsoll.report.section import Page, Section
from plimsoll.words.levels import at_words

Json = dict[str, Any]
_MIB = 2**20
_COLUMNS = 3
_LINES = {"dirty": "dirty", "writeback": "under writeback"}
_COLOURS = {"dirty": theme.BEST, "under writeback": theme.WORSE}
# A threshold farther above the data than this is named over its panel and not drawn: it would press the lines flat.
_HEADROOM = 1.3


def sets_writeback(run: Run) -> bool:
    """Whether some trial sets vm.dirty_*."""
    return any(settings_of(trial.planned) for trial in run.trials)


def writeback_figures(run: Run, verdict: Json) -> list[Figure]:
    """The figures of the section, the widest first."""
    study = study_of(run.experiment) or {}
    run_time = levels_figure(
        verdict,
        "run_time_seconds",
        "run-time",
        "Run time of the measured transactions",
        _transactions(run),
        {"title": "seconds", "format": "~r", "tip": ".2f"},
        half=True,
        original=study.get("writeback", ""),
        absent="the trials measured a length of time, not a number of transactions",
    )
    throttled = levels_figure(
        verdict,
        "throttled_seconds",
        "throttled",
        "Throttled time",
        "Pauses of tasks that dirtied pages faster than Linux writes them, summed over tasks, in the measured segment.",
        {"title": "seconds", "format": "~r", "tip": ".3f"},
        half=True,
        absent=instrument_of(verdict, "throttle")["why_absent"] or "",
    )
    writes = levels_figure(
        verdict,
        "device_write_bytes_per_transaction",
        "device-writes",
        "Device writes per transaction",
        "Sectors written to the watched devices, the WAL among them, per done transaction. A page that changes again "
        "while it waits to be written is written once.",
        {"title": "KiB per transaction", "format": "~r", "tip": ",.2f"},
        scale=1 / 1024,
        half=True,
    )
    dirty = levels_figure(
        verdict,
        "dirty_bytes_mean",
        "dirty-mean",
        "Dirty pages, mean over the measured segment",
        "Of the whole host, from samples at 1 s.",
        {"title": "MiB", "format": ",~r", "tip": ",.1f"},
        scale=1 / _MIB,
        half=True,
    )
    return [dirty_figure(run, verdict), run_time, throttled, writes, dirty]


def _transactions(run: Run) -> str:
    asked = [((trial.planned.get("resolved") or {}).get("measure") or {}).get("transactions") for trial in run.trials]
    many = " or ".join(f"{count:,}" for count in sorted({int(count) for count in asked if count}))
    return f"From the first to the last of {many} transactions, after the warm-up." if many else ""


def dirty_figure(run: Run, verdict: Json) -> Figure:
    """Dirty pages and pages under writeback over time: a panel a level, a thin line a block."""
    name, title = "dirty-pages", "Dirty and writeback pages over time"
    trials: dict[str, list[Any]] = {}
    for trial in shown_trials(run, verdict):
        trials.setdefault(trial.treatment, []).append(trial)
    panels = []
    for label, treatment in _treatments(verdict):
        rows = [
            {"seconds": row["seconds"], "what": _LINES[row["what"]], "mib": round(row["bytes"] / _MIB, 2),
             "block": trial.block, "trial": trial.number}
            for trial in trials.get(treatment, ()) for row in dirty_curve(trial)
        ]  # fmt: skip
        if rows:
            panels.append((label, rows, thresholds(trials[treatment][0])))
    if not panels:
        return Figure(name, title, absent="dirty pages were not sampled")
    columns = min(_COLUMNS, len(panels))
    width = (WIDTH - 70 * columns) // columns
    charts = [_panel(*panel).properties(width=width, height=200) for panel in panels]
    chart = alt.concat(*charts, columns=columns, spacing=26).resolve_scale(x="shared", y="independent")
    where = "the server's group" if is_of_group(next(iter(trials.values()))[0]) else "the whole host"
    caption = (
        f"Of {where}, at 1 s, one thin line a block; measuring begins at the dashed line and the warm-up stands before "
        "it. Dotted: where writing in the background begins, and the limit; half-way between them Linux begins to "
        "pause tasks that dirty pages. Each panel has its own scale; a threshold far above the lines is named over its "
        "panel and not drawn."
    )
    return Figure(name, title, caption, spec=spec_of(chart))


def _treatments(verdict: Json) -> list[tuple[str, str]]:
    """Title and treatment of each panel: the levels compared, in order; every treatment where none is."""
    found = [
        (", ".join(part for part in (f"{comparison['label']} {level['level']}", at_words(comparison)) if part),
         level["treatment"])
        for comparison in verdict["comparisons"] for level in comparison["levels"]
    ]  # fmt: skip
    return found or [(entry["label"], key) for key, entry in verdict["treatments"].items()]


def _panel(label: str, rows: list[Json], limits: dict[str, int]) -> Any:
    largest = max(row["mib"] for row in rows)
    drawn = [value / _MIB for value in limits.values() if value / _MIB <= largest * _HEADROOM]
    top = max(1.0, *(1.06 * value for value in (largest, *drawn)))
    named = " · ".join(f"{what} {number(value, ',.0f', 1 / _MIB)} MiB" for what, value in limits.items())
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.1, opacity=0.8)
        .encode(
            alt.X(
                "seconds:Q",
                title="seconds from the start of measuring",
                axis=alt.Axis(tickCount=6),
                scale=alt.Scale(nice=False),
            ),
            alt.Y("mib:Q", title="MiB", axis=alt.Axis(tickCount=5), scale=alt.Scale(domain=[0, top], nice=False)),
            alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
                legend=alt.Legend(orient="top", direction="horizontal"),
            ),
            alt.Detail("trial:N"),
            tooltip=[
                alt.Tooltip("what:N"),
                alt.Tooltip("mib:Q", title="MiB", format=",.1f"),
                alt.Tooltip("seconds:Q"),
                alt.Tooltip("block:Q"),
                alt.Tooltip("trial:Q"),
            ],
        )
    )
    start = (
        alt.Chart(alt.Data(values=[{"from": 0}]))
        .mark_rule(strokeDash=[4, 3], color=theme.UNJUDGED)
        .encode(x=alt.X("from:Q"))
    )
    inside = [{"what": what, "mib": value / _MIB} for what, value in limits.items() if value / _MIB <= top]
    marks: Any = alt.Chart(alt.Data(values=inside))
    rules = marks.mark_rule(strokeDash=[1, 3], strokeWidth=1.4, color=theme.UNJUDGED).encode(y=alt.Y("mib:Q"))
    # One at the left and one at the right: where both are low they would stand on one another.
    words = [
        marks.transform_filter(f"datum.what == '{what}'")
        .mark_text(align=side, baseline="bottom", dx=inward, dy=-2)
        .encode(x=alt.XValue(edge), y=alt.Y("mib:Q"), text=alt.Text("what:N"))
        for what, side, inward, edge in (("limit", "left", 4, 0), ("background", "right", -2, "width"))
    ]
    heading = alt.TitleParams(label, subtitle=named, subtitleColor=theme.UNJUDGED, subtitlePadding=4)
    return alt.layer(start, lines, rules, *words).properties(title=heading)


def writeback_tables(run: Run, verdict: Json) -> list[Json]:
    """One table a comparison: what each level sets, and what came of it."""
    asked = {trial.treatment: settings_of(trial.planned) for trial in run.trials}
    return [
        {
            "label": comparison["label"],
            "at": at_words(comparison),
            "rows": [_row(level, asked.get(level["treatment"], {}), verdict) for level in comparison["levels"]],
        }
        for comparison in verdict["comparisons"]
    ]


def _row(level: Json, asked: dict[str, int], verdict: Json) -> Json:
    metrics = (verdict["treatments"].get(level["treatment"]) or {}).get("metrics") or {}

    def share(bytes_name: str, ratio_name: str) -> str:
        if asked.get(bytes_name):
            return f"{number(asked[bytes_name], ',.0f', 1 / _MIB)} MiB"
        return f"{asked[ratio_name]} %" if ratio_name in asked else NONE

    return {
        "level": level["level"],
        "background": share("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
        "limit": share("vm.dirty_bytes", "vm.dirty_ratio"),
        "interval": number(asked.get("vm.dirty_writeback_centisecs"), "g", 0.01),
        "age": number(asked.get("vm.dirty_expire_centisecs"), "g", 0.01),
        "run_time": interval(metrics.get("run_time_seconds"), ".1f"),
        "throttled": interval(metrics.get("throttled_seconds"), ".2f"),
        "dirty_mean": interval(metrics.get("dirty_bytes_mean"), ",.0f", 1 / _MIB),
        "dirty_max": interval(metrics.get("dirty_bytes_max"), ",.0f", 1 / _MIB),
        "writeback_max": interval(metrics.get("writeback_bytes_max"), ",.0f", 1 / _MIB),
        "writes": interval(metrics.get("device_write_bytes_per_transaction"), ".1f", 1 / 1024),
    }


def _context(page: Page) -> Json:
    return {
        "study": page.study,
        "tables": writeback_tables(page.run, page.verdict),
        "grid": len(page.verdict["comparisons"]) == 1,
    }


SECTION = Section(
    key="writeback",
    title="Writeback",
    template="probes/writeback.html.j2",
    applies=lambda page: sets_writeback(page.run),
    context=_context,
    figures=lambda page: writeback_figures(page.run, page.verdict),
)
