"""The levels compared: a table a comparison with what decides between them, and the figure of what is judged."""

from typing import Any

from plimsoll.analysis.metric import Metric
from plimsoll.analysis.metrics import metric_of
from plimsoll.record.verdict import Level, Ratio
from plimsoll.report.drawing.answer import answer_figure
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.levels import levels_figure
from plimsoll.report.drawing.tables import NONE, interval, number, short_form
from plimsoll.report.section import Page, Section
from plimsoll.words.levels import NO_INTERVAL, at_words, ends
from plimsoll.words.verdict import a_a_words

Json = dict[str, Any]
_TABLES_SHOWN = 4
_MAIN = (
    "Filled marks: geometric mean over blocks with its 95 % t interval; open circles: the single blocks. Bars of one "
    "level include the variation from block to block; the verdict compares within blocks and is more precise. The "
    "band is the A/A spread around the best estimate: as far as equal trials of this run differed."
)


def main_figure(verdict: Json) -> Figure:
    """What is judged, with everything the verdict rests on."""
    judged = metric_of(verdict["metric"], verdict)
    shown, name = judged.shown, judged.name
    return levels_figure(
        verdict,
        judged.key,
        judged.figure or "judged",
        f"{name[0].upper()}{name[1:]} by level",
        f"{judged.remark} {_MAIN}".lstrip(),
        {"title": shown.axis_unit, "format": shown.axis, "tip": shown.tip}
        | ({"log": True} if shown.is_axis_log else {}),
        scale=shown.factor,
        marked=True,
    )


def level_tables(verdict: Json) -> list[Json]:
    """One table a comparison: the levels with what decides between them."""
    tables = []
    judged = metric_of(verdict["metric"], verdict)
    unit, form_judged, scale = _judged_form(judged)
    for comparison in verdict["comparisons"]:
        rows = []
        for level in comparison["levels"]:
            metrics = (verdict["treatments"].get(level["treatment"]) or {}).get("metrics") or {}
            throughput = metrics.get("throughput_per_second")
            form = short_form(throughput and throughput["value"])
            slower = level["times_slower"]
            rows.append(
                {
                    "level": level["level"],
                    "best": level["in_best_set"],
                    "verdict": _word(level),
                    "judged": interval(metrics.get(judged.key), form_judged, scale) if unit else "",
                    "throughput": interval(throughput, form),
                    "slower": NONE if not slower else _times(slower),
                    "against": level["against"] or "",
                    "hit": interval(metrics.get("database_hit_ratio"), ".1f", 100),
                    "reads": interval(metrics.get("device_read_bytes_per_transaction"), ".1f", 1 / 1024),
                    "swap": number((metrics.get("swap_bytes_max") or {}).get("value"), ",.0f", 2.0**-20),
                    "blocks": level["blocks"],
                    "why": level["why"] or "",
                }
            )
        label = {"label": comparison["label"], "at": at_words(comparison)}
        by = {"worse": judged.worse, "beside": judged.beside}
        tables.append({**label, **by, "judged_unit": unit, "rows": rows})
    return tables


def _judged_form(judged: Metric) -> tuple[str, str, float]:
    """Unit, form and scale of what is judged; no unit where it is the throughput, which has a column anyway."""
    shown = judged.shown
    return ("", "", 1.0) if judged.is_usual else (shown.axis_unit, shown.form, shown.factor)


def _times(slower: Ratio) -> str:
    if slower["ratio"] is None:
        return "not known"
    bound = f"{slower['bound']} " if slower.get("bound") else ""
    return f"{bound}{slower['ratio']:.2f} ×" + (f" {ends(slower)}" if ends(slower) != NO_INTERVAL else "")


def _word(level: Level) -> str:
    if level["verdict"] == "cannot tell":
        return "not distinguishable from the best"
    return level["verdict"]


def _context(page: Page) -> Json:
    return {
        "tables": level_tables(page.verdict),
        "tables_shown": _TABLES_SHOWN,
        "judged": metric_of(page.verdict["metric"], page.verdict).name,
    }


SECTION = Section(
    key="levels",
    title="The levels compared",
    shows=lambda page: answer_figure(page.verdict),
    template="every_run/levels.html.j2",
    context=_context,
    figures=lambda page: [main_figure(page.verdict)],
    evidence=lambda page: [a_a_words(page.verdict)] if page.verdict["comparisons"] else [],
)
