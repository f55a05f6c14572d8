"""What both caches hold, relation by relation and level by level."""

from typing import Any, Final

import altair as alt

from plimsoll.analysis.caches.document import HeldPart, NotRead, Readings
from plimsoll.analysis.caches.double_caching import WHEN
from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.report.drawing import theme
from plimsoll.report.drawing.figure import WIDTH, Figure, spec_of
from plimsoll.report.drawing.marks import by_colour
from plimsoll.report.drawing.tables import NONE, number, trials_words
from plimsoll.report.section import Section
from plimsoll.words.levels import at_words
from plimsoll.words.probes import caches as cache_words

Json = dict[str, Any]
_MB = 1e-6
_PARTS: Final[dict[HeldPart, str]] = {
    "server_only_bytes": "server's cache only",
    "both_bytes": "both",
    "page_cache_only_bytes": "page cache only",
    "neither_bytes": "neither",
}
_LABELS_WIDTH = 150
_COLUMNS = 5


def _comparisons(verdict: Json) -> list[Json]:
    """The comparisons, or all treatments as one where nothing is compared."""
    alone = [{"treatment": key, "level": entry["label"]} for key, entry in verdict["treatments"].items()]
    comparisons: list[Json] = verdict["comparisons"] or [{"label": "treatment", "levels": alone, "at": {}}]
    return comparisons


def _rows(verdict: Json) -> list[Json]:
    rows = []
    for comparison in _comparisons(verdict):
        where = at_words(comparison) or "all"
        for level in comparison["levels"]:
            readings: Readings | None = (verdict["treatments"].get(level["treatment"]) or {}).get("double_caching")
            for when, words in WHEN.items():
                reading = readings[when] if readings else None
                for row in reading["relations"] if reading else ():
                    for order, (key, part) in enumerate(_PARTS.items()):
                        rows.append(
                            {"at": where, "level": level["level"], "when": words, "relation": row["relation"]}
                            | {"part": part, "mb": round(row[key] * _MB, 3), "order": order}
                        )
    return rows


def _panel(rows: list[Json], level: str, relations: list[str], width: int, labelled: bool) -> Any:
    """One level; the relations' names stand at the left end of a row of panels."""
    names, there = list(theme.HELD), {row["part"] for row in rows if row["mb"]}
    axis = alt.Axis(labelLimit=_LABELS_WIDTH, labels=labelled, domain=True)
    return (
        alt.Chart(alt.Data(values=rows))
        .transform_filter("datum.when == when")
        .transform_filter("datum.at == at" if len({row["at"] for row in rows}) > 1 else "true")
        .mark_bar(height={"band": 0.72})
        .encode(
            alt.X("mb:Q", stack="zero", title="MB", axis=alt.Axis(format=",~r", tickCount=4, grid=True)),
            alt.Y("relation:N", sort=relations, scale=alt.Scale(domain=relations), title=None, axis=axis),
            by_colour(
                "part:N",
                names,
                list(theme.HELD.values()),
                values=[name for name in names if name in there],
                labelLimit=240,
            ),
            alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("relation:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("mb:Q", title="MB", format=",.1f"),
                alt.Tooltip("level:N"),
            ],
        )
        .properties(width=width, height={"step": 22}, title=alt.Title(level, frame="group"))
    )


def absent_words(verdict: Json) -> str:
    """Why there is no reading, in every trial or in some."""
    reasons: list[NotRead] = verdict.get("double_caching_absent") or []
    return "; ".join(f"{row['reason']} ({trials_words(row['trials'])})" for row in reasons)


def double_caching_figure(verdict: Json) -> Figure:
    """A panel a level, a bar a relation; the reading, and the other factors' levels, chosen from lists."""
    name, title = "double-caching", "What each cache holds, and what both hold (double caching)"
    rows = _rows(verdict)
    if not rows:
        why = absent_words(verdict) or "no trial that entered the verdict has a reading"
        return Figure(name, title, absent=why)
    relations = list(dict.fromkeys(row["relation"] for row in rows))
    levels = list(dict.fromkeys(level["level"] for one in _comparisons(verdict) for level in one["levels"]))
    levels = [level for level in levels if any(row["level"] == level for row in rows)]
    readings = [words for words in WHEN.values() if any(row["when"] == words for row in rows)]
    places = list(dict.fromkeys(row["at"] for row in rows))
    when = alt.param("when", bind=alt.binding_select(options=readings, name="reading "), value=readings[0])
    at = alt.param("at", bind=alt.binding_select(options=places, name="shown "), value=places[-1])
    columns = len(levels) if len(levels) <= _COLUMNS else -(-len(levels) // -(-len(levels) // _COLUMNS))
    width = (WIDTH - _LABELS_WIDTH - 22 * columns) // columns
    panels = [
        _panel([row for row in rows if row["level"] == level], level, relations, width, place % columns == 0)
        for place, level in enumerate(levels)
    ]
    chart = alt.concat(*panels, columns=columns, spacing=18).resolve_scale(x="shared")
    chart = chart.add_params(when, at) if len(places) > 1 else chart.add_params(when)
    caption = (
        f"A panel a level of {_comparisons(verdict)[0]['label']}, a bar a relation. "
        "Means over blocks. A block of the server's cache counts as held twice with those of its pages that lie in the "
        "page cache too. Without a choice: the reading just after the measured segment."
    )
    missing = absent_words(verdict)
    return Figure(name, title, caption + (f" Not read: {missing}." if missing else ""), spec=spec_of(chart))


def double_caching_rows(verdict: Json) -> list[Json]:
    """One row a treatment: what each cache holds of the database, and what of it twice."""
    labels, rows = treatment_labels(verdict), []
    for treatment in verdict["treatments"]:
        reading = cache_words.after(verdict, treatment)
        if reading is None:
            continue
        total = reading["total"]
        rows.append(
            {
                "label": labels.get(treatment, treatment),
                "database": number(total["bytes"], ",.0f", _MB),
                "server": number(total["server_bytes"], ",.0f", _MB),
                "page_cache": number(total["page_cache_bytes"], ",.0f", _MB),
                "twice": cache_words.held_twice(reading),
                "of_server": NONE if total["share_of_server"] is None else f"{total['share_of_server']:.0%}",
                "of_page_cache": NONE
                if total["share_of_page_cache"] is None
                else f"{total['share_of_page_cache']:.0%}",
                "elsewhere": number(reading["elsewhere_bytes"], ",.1f", _MB),
            }
        )
    return rows


SECTION = Section(
    key="double-caching",
    title="Double caching",
    template="caches/double_caching.html.j2",
    context=lambda page: {"rows": double_caching_rows(page.verdict)},
    figures=lambda page: [double_caching_figure(page.verdict)],
)
