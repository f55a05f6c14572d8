"""Tables of the load itself: latency of all trials together, and for open loops what was planned and what was done."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.percentiles import PERCENTILE_NAMES
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.latency import latency_figure
from plimsoll.report.drawing.series import memory_figure, warmup_figure
from plimsoll.report.drawing.tables import interval
from plimsoll.report.section import Page, Section

Json = dict[str, Any]
PERCENTILES = ("p50", "p90", "p95", "p99", "p999", "p9999")


def percentile_names() -> list[str]:
    """The columns of the merged table."""
    return [PERCENTILE_NAMES.get(name, name) for name in PERCENTILES]


def merged_rows(verdict: Json) -> list[Json]:
    """Percentiles of each treatment's transactions taken together, ms."""
    labels = treatment_labels(verdict)
    rows = []
    for name, entry in verdict["treatments"].items():
        merged = (entry.get("latency_merged_ns") or {}).get("all")
        if merged:
            cells = [interval(merged.get(key), ",.2f", 1e-6) for key in PERCENTILES]
            rows.append({"label": labels.get(name, name), "count": f"{merged['count']:,}", "cells": cells})
    return rows


def open_rows(verdict: Json) -> list[Json]:
    """Planned and achieved rate, skipped, failed, retried and late by treatment; empty for closed loops."""
    labels = treatment_labels(verdict)
    rows = []
    for name, entry in verdict["treatments"].items():
        metrics = entry["metrics"]
        if metrics.get("planned_rate_per_second") is None:
            continue
        rows.append(
            {
                "label": labels.get(name, name),
                "planned": interval(metrics["planned_rate_per_second"], ",.1f"),
                "done": interval(metrics["throughput_per_second"], ",.1f"),
                "achieved": interval(metrics.get("achieved_share"), ".2f", 100),
                "skipped": interval(metrics.get("skipped_share"), ".2f", 100),
                "failed": interval(metrics.get("failed_share"), ".2f", 100),
                "retries": interval(metrics.get("retries_per_transaction"), ".3f"),
                "lag": interval(metrics.get("lag_ns_p99"), ",.2f", 1e-6),
            }
        )
    return rows


def _context(page: Page) -> Json:
    return {
        "open_rows": open_rows(page.verdict),
        "merged_rows": merged_rows(page.verdict),
        "percentile_names": percentile_names(),
    }


def _figures(page: Page) -> list[Figure]:
    return [latency_figure(page.verdict), memory_figure(page.run, page.verdict), warmup_figure(page.run, page.verdict)]


SECTION = Section(
    key="time", title="Latency, memory, warm-up", template="every_run/load.html.j2", context=_context, figures=_figures
)
