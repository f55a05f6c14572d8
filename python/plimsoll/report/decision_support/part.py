"""Decision support as tables: the figures under DBT-3's names, the load test, each query's time, plans, drift."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.decision_support.drift import RULE
from plimsoll.analysis.decision_support.formulas import drift
from plimsoll.analysis.decision_support.metrics import COMPOSITE, LOAD, POWER, THROUGHPUT
from plimsoll.analysis.decision_support.trial import NAMES
from plimsoll.report.decision_support.drift_figure import answer_figure
from plimsoll.report.decision_support.figures import decision_support_figures
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.report.original_studies import S3_THROUGHPUT
from plimsoll.report.section import Page, Section
from plimsoll.words.decision_support import absent_lines, answer_lines, lines, trend_line

Json = dict[str, Any]
_COLUMNS = (LOAD, POWER, THROUGHPUT, COMPOSITE)
_PLANS_SHOWN = 60
_PLAN_WORDS = {"other": "another", "varies": "varies from block to block"}


def decision_support_part(verdict: Json) -> Json | None:
    """What the template draws; None for another workload."""
    support = verdict.get("decision_support")
    if not support:
        return None
    labels = treatment_labels(verdict)
    treatments = [(labels.get(name, name), one) for name, one in support["treatments"].items()]
    return {
        "like": support["like"],
        "rule": support["rule"],
        "columns": [support["names"][metric] for metric in _COLUMNS],
        "rows": [_figures(label, one) for label, one in treatments],
        "answers": answer_lines(support),
        "absent": absent_lines(support, labels),
        "notes": list(
            dict.fromkeys(note for _, one in treatments for about in one["metrics"].values() for note in about["notes"])
        ),
        "load": [_load(label, one["load"]) for label, one in treatments if one["load"]],
        "queries": [table for test in ("power", "throughput") if (table := _queries(treatments, test))],
        "changes": [_change(one) for one in support["changes"] if one["verdict"] in ("slower", "faster")],
        "plans": [_plan(one) for one in support["plans"][:_PLANS_SHOWN]],
        "plans_more": max(0, len(support["plans"]) - _PLANS_SHOWN),
        "cut": [f"Trial {one['number']}, {line}" for one in support["trials"] for line in one["cut"]],
        "drift": [_drift(label, one["drift"], one["trend"]) for label, one in treatments if one["drift"]],
    }


def _figures(label: str, one: Json) -> Json:
    cells = [interval((one["metrics"].get(metric) or {}).get("estimate"), ",.1f") for metric in _COLUMNS]
    scale = NONE if one["scale_factor"] is None else f"{one['scale_factor']:g}"
    return {"label": label, "scale_factor": scale, "streams": str(one["streams"] or NONE), "cells": cells}


def _load(label: str, load: Json) -> Json:
    return {
        "label": label,
        "phases": [(one["phase"].replace("_", " "), interval(one["seconds"], ",.2f")) for one in load["phases"]],
        "tables": [
            {
                "table": one["table"],
                "rows": f"{one['rows']:,}",
                "seconds": interval(one["seconds"], ",.2f"),
                "rows_per_second": interval(one["rows_per_second"], ",.0f"),
                "mb_per_second": interval(one["bytes_per_second"], ",.1f", 1e-6),
            }
            for one in load["tables"]
        ],
    }


def _queries(treatments: list[tuple[str, Json]], test: str) -> Json | None:
    """A row a query, a column a treatment; what failed says so."""
    names = [name for name in NAMES if any(name in one["queries"][test] for _, one in treatments)]
    if not names:
        return None
    rows = [
        {"query": name, "cells": [_seconds(one["queries"][test].get(name)) for _, one in treatments]} for name in names
    ]
    return {"test": test, "columns": [label for label, _ in treatments], "rows": rows}


def _seconds(mean: Json | None) -> str:
    if mean is None:
        return NONE
    failed = f"failed in {len(mean['failed'])}" if mean["failed"] else ""
    if mean["value"] is None:
        return failed
    return interval(mean, ",.3f") + (f" ({failed})" if failed else "")


def _change(one: Json) -> Json:
    ratio = {"value": one["ratio"], "low": one["low"], "high": one["high"]}
    return {
        "pair": f"{one['second_label']} over {one['first_label']}",
        "test": one["test"],
        "query": one["query"],
        "plan": _PLAN_WORDS.get(one["plan"], ""),
        "ratio": interval(ratio, ".2f"),
        "verdict": one["verdict"],
    }


def _plan(one: Json) -> Json:
    return {
        "title": f"{one['query']}: {one['second_label']} and {one['first_label']}: {_plan_words(one)}",
        "first": "\n".join(one["first_plan"]),
        "second": "\n".join(one["second_plan"]),
        "first_label": one["first_label"],
        "second_label": one["second_label"],
    }


def _plan_words(one: Json) -> str:
    where = f"differ in {one['differ']} of {one['blocks']} {'block' if one['blocks'] == 1 else 'blocks'}"
    if not one["is_told"]:
        where += ", and each treatment has more than one"
    if (change := one["change"]) is None:
        return where
    ratio = {"value": change["ratio"], "low": change["low"], "high": change["high"]}
    return f"{where}; {interval(ratio, '.2f')} times as long: {change['verdict']}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{number(share, '+.2f', 100)} %"


def _drift(label: str, rows: list[Json], trend: Json | None) -> Json:
    study_changes = dict(zip(S3_THROUGHPUT, drift(list(S3_THROUGHPUT.values())), strict=True))
    return {
        "label": label,
        "trend": None if trend is None else trend_line(trend, label),
        "rule": RULE,
        "rows": [
            {
                "run": row["run"],
                "value": interval(row["value"], ",.2f"),
                "elapsed": number(row["elapsed_s"], ",.1f"),
                "change": NONE if row["change"] is None else f"{interval(row['change'], '+.2f', 100)} %",
                "verdict": row["verdict"] or "",
                "remarks": "; ".join(row["remarks"]),
                "study": number(S3_THROUGHPUT.get(row["run"]), ".2f"),
                "study_change": _percent(study_changes.get(row["run"])),
            }
            for row in rows
        ],
    }


def _context(page: Page) -> Json:
    return {"decision_support": decision_support_part(page.verdict), "study": page.study}


SECTION = Section(
    key="decision-support",
    title="Decision support",
    template="decision_support/decision_support.html.j2",
    applies=lambda page: bool(page.verdict.get("decision_support")),
    shows=lambda page: answer_figure(page.verdict),
    context=_context,
    figures=lambda page: decision_support_figures(page.run, page.verdict),
    evidence=lambda page: [f"{line}." for line in lines(page.verdict, treatment_labels(page.verdict))],
)
