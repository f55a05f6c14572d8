"""Web serving: what each treatment's connections got, the mix against its target, and what the page cache held."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.web.document import Asked, Kept, Serving, WebServing
from plimsoll.analysis.web.serving import PERCENTILES
from plimsoll.report.drawing.tables import NONE, interval, number, percent, short_form
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.web import KBIT, error_words, serving_lines

Json = dict[str, Any]
MS = 1e-6


def serving_part(page: Page) -> Json:
    """What the template draws."""
    part: WebServing = page.verdict["web_serving"]
    labels = treatment_labels(page.verdict)
    return {
        "like": part["like"],
        "rule": part["rule"],
        "speed": part["speed"],
        "is_counted": any(one["hit_ratio"] for one in part["treatments"].values()),
        "rows": [_row(labels.get(name, name), one) for name, one in part["treatments"].items()],
        "tables": [
            {
                "label": labels.get(name, name),
                "kinds": [_asked(one) for one in mine["kinds"]],
                "classes": [_asked(one) for one in mine["classes"]],
                "kept": [_kept(one) for one in mine["kept"]],
                "is_counted": any(one["asked_pages"] is not None for one in mine["kept"]),
            }
            for name, mine in part["treatments"].items()
        ],
    }


def _row(label: str, one: Serving) -> Json:
    return {
        "label": label,
        "requested": number(one["requested"], ",.0f"),
        "conforming": _count(one["conforming"]),
        "is_wrong": bool(one["errors"]["failed"] or one["errors"]["lost"]),
        "share": percent(one["errors"]["share"]),
        "operations": _in_unit(one["operations_per_second"], 1.0),
        "time": _in_unit(one["operation_ns"], MS),
        "speed": _in_unit(one["connection_bits_per_second"], KBIT),
        "line": _in_unit(one["line_bits_per_second"], KBIT),
        "errors": error_words(one["errors"]),
        "hits": _share(one["hit_ratio"]),
    }


def _asked(one: Asked) -> Json:
    return {
        "name": one["name"].replace("_", " "),
        "requests": number(one["requests"], ",.0f"),
        "share": percent(one["share"]),
        "target": percent(one["target"]),
        "range": f"{percent(one['low'])} to {percent(one['high'])}",
        "is_inside": one["is_inside"],
        "times": [_in_unit(one["latency_ns"].get(name), MS) for name in PERCENTILES],
    }


def _kept(one: Kept) -> Json:
    return {
        "name": one["name"],
        "asked": number(one["asked_pages"], ",.0f"),
        "missed": number(one["missed_pages"], ",.0f"),
        "brought": number(one["brought_pages"], ",.0f"),
        "hits": _share(one["hit_ratio"]),
        "before": _share(one["before"]),
        "after": _share(one["after"]),
    }


def _in_unit(mean: Any, scale: float) -> str:
    return NONE if not mean else interval(mean, short_form(mean["value"] * scale), scale)


def _count(mean: Any) -> str:
    """Of things that are counted: a mean of them has a fraction only where trials differ."""
    if not mean:
        return NONE
    return interval(mean, ",.0f" if float(mean["value"]).is_integer() else ",.1f", 1.0)


def _share(mean: Any) -> str:
    return interval(mean, ".1%")


SECTION = Section(
    key="web_serving",
    title="Web serving",
    template="web/serving.html.j2",
    applies=lambda page: bool(page.verdict.get("web_serving")),
    context=lambda page: {"web": serving_part(page)},
    evidence=lambda page: [f"{line}." for line in serving_lines(page.verdict)],
)
