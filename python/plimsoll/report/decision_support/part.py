"""Decision support as tables: the figures under DBT-3's names, the load test, each query's time, plans, drift."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.decision_support.document import (
    DecisionSupport,
    Drifted,
    Load,
    PlanChange,
    QueryChange,
    QueryTime,
    TreatmentOfTests,
    Trend,
)
from plimsoll.analysis.decision_support.drift import RULE
from plimsoll.analysis.decision_support.formulas import drift
from plimsoll.analysis.decision_support.metrics import COMPOSITE, LOAD, POWER, THROUGHPUT
from plimsoll.analysis.decision_support.trial import NAMES
from plimsoll.report.decision_support.drift_figure import answer_figure
from plimsoll.report.decision_support.figures import decision_support_figures
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.report.original_studies import S3_THROUGHPUT
from plimsoll.report.section import Page, Section
from plimsoll.words.workloads.decision_support import absent_lines, answer_lines, lines, trend_line

Json = dict[str, Any]
_COLUMNS = (LOAD, POWER, THROUGHPUT, COMPOSITE)
_PLANS_SHOWN = 60
_PLAN_WORDS = {"other": "another", "varies": "varies from block to block"}


def decision_support_part(verdict: Json) -> Json | None:
    """What the template draws; None for another workload."""
    support: DecisionSupport | None = verdict.get("decision_support")
    if not support:
        return None
    labels = treatment_labels(verdict)
    treatments = [(labels.get(name, name), entry) for name, entry in support["treatments"].items()]
    return {
        "like": support["like"],
        "rule": support["rule"],
        "columns": [support["names"][metric] for metric in _COLUMNS],
        "rows": [_figures(label, entry) for label, entry in treatments],
        "answers": answer_lines(support),
        "absent": absent_lines(support, labels),
        "notes": list(
            dict.fromkeys(
                note for _, entry in treatments for about in entry["metrics"].values() for note in about["notes"]
            )
        ),
        "load": [_load(label, entry["load"]) for label, entry in treatments if entry["load"]],
        "queries": [table for test in ("power", "throughput") if (table := _queries(treatments, test))],
        "changes": [_change(entry) for entry in support["changes"] if entry["verdict"] in ("slower", "faster")],
        "plans": [_plan(entry) for entry in support["plans"][:_PLANS_SHOWN]],
        "plans_more": max(0, len(support["plans"]) - _PLANS_SHOWN),
        "cut": [f"Trial {entry['number']}, {line}" for entry in support["trials"] for line in entry["cut"]],
        "drift": [_drift(label, entry["drift"], entry["trend"]) for label, entry in treatments if entry["drift"]],
    }


def _figures(label: str, entry: TreatmentOfTests) -> Json:
    metrics = entry["metrics"]
    cells = [interval(metrics[metric]["estimate"] if metric in metrics else None, ",.1f") for metric in _COLUMNS]
    scale = NONE if entry["scale_factor"] is None else f"{entry['scale_factor']:g}"
    return {"label": label, "scale_factor": scale, "streams": str(entry["streams"] or NONE), "cells": cells}


def _load(label: str, load: Load) -> Json:
    return {
        "label": label,
        "phases": [(row["phase"].replace("_", " "), interval(row["seconds"], ",.2f")) for row in load["phases"]],
        "tables": [
            {
                "table": row["table"],
                "rows": f"{row['rows']:,}",
                "seconds": interval(row["seconds"], ",.2f"),
                "rows_per_second": interval(row["rows_per_second"], ",.0f"),
                "mb_per_second": interval(row["bytes_per_second"], ",.1f", 1e-6),
            }
            for row in load["tables"]
        ],
    }


def _queries(treatments: list[tuple[str, TreatmentOfTests]], test: str) -> Json | None:
    """A row a query, a column a treatment; what failed says so."""
    names = [name for name in NAMES if any(name in entry["queries"][test] for _, entry in treatments)]
    if not names:
        return None
    rows = [
        {"query": name, "cells": [_seconds(entry["queries"][test].get(name)) for _, entry in treatments]}
        for name in names
    ]
    return {"test": test, "columns": [label for label, _ in treatments], "rows": rows}


def _seconds(mean: QueryTime | None) -> str:
    if mean is None:
        return NONE
    failed = f"failed in {len(mean['failed'])}" if mean["failed"] else ""
    if mean["value"] is None:
        return failed
    return interval(mean, ",.3f") + (f" ({failed})" if failed else "")


def _change(change: QueryChange) -> Json:
    ratio = {"value": change["ratio"], "low": change["low"], "high": change["high"]}
    return {
        "pair": f"{change['second_label']} over {change['first_label']}",
        "test": change["test"],
        "query": change["query"],
        "plan": _PLAN_WORDS.get(change["plan"] or "", ""),
        "ratio": interval(ratio, ".2f"),
        "verdict": change["verdict"],
    }


def _plan(plan: PlanChange) -> Json:
    return {
        "title": f"{plan['query']}: {plan['second_label']} and {plan['first_label']}: {_plan_words(plan)}",
        "first": "\n".join(plan["first_plan"]),
        "second": "\n".join(plan["second_plan"]),
        "first_label": plan["first_label"],
        "second_label": plan["second_label"],
    }


def _plan_words(plan: PlanChange) -> str:
    where = f"differ in {plan['differ']} of {plan['blocks']} {'block' if plan['blocks'] == 1 else 'blocks'}"
    if not plan["is_told"]:
        where += ", and each treatment has more than one"
    if (change := plan["change"]) is None:
        return where
    ratio = {"value": change["ratio"], "low": change["low"], "high": change["high"]}
    return f"{where}; {interval(ratio, '.2f')} times as long: {change['verdict']}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{number(share, '+.2f', 100)} %"


def _drift(label: str, rows: list[Drifted], trend: Trend | None) -> Json:
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
