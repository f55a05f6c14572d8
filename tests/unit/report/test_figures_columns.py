"""Each figure of levels shows the metric that its title and its axis name, in the axis's unit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.record import open_run
from plimsoll.report.caches.both import both_caches_figures
from plimsoll.report.every_run.levels import main_figure

GOLDEN = Path(__file__).parents[2] / "golden"
# Figure: the metric in it, and the axis's unit by the metric's.
METRICS = {
    "throughput": ("throughput_per_second", 1),
    "database-hit-ratio": ("database_hit_ratio", 100),
    "database-misses-per-query": ("database_misses_per_query", 1),
    "run-time-of-100": ("run_time_seconds_per_100", 1),
    "device-reads": ("device_read_bytes_per_transaction", 1 / 1024),
    "page-cache-hit-ratio": ("page_cache_hit_ratio", 100),
    "database-misses-per-page-cache-miss": ("database_misses_per_page_cache_miss", 1),
    "buffer-heads": ("buffer_head_touches_per_query", 1),
}


def _rows(part: Any) -> Iterator[dict[str, Any]]:
    """Every estimate in a specification, wherever it stands."""
    if isinstance(part, dict):
        yield from [part] if "value" in part and "blocks" in part else []
        for below in part.values():
            yield from _rows(below)
    elif isinstance(part, list):
        for below in part:
            yield from _rows(below)


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    verdict = json.loads((GOLDEN / "synthetic.expected.json").read_text())
    drawn = [main_figure(verdict), *both_caches_figures(open_run(GOLDEN / "synthetic"), verdict)]
    return {"verdict": verdict, **{figure.name: figure.spec for figure in drawn}}


@pytest.mark.parametrize("name", METRICS)
def test_a_figure_shows_the_metric_that_it_names(figures: dict[str, Any], name: str) -> None:
    metric, scale = METRICS[name]
    shown = sorted({row["value"] for row in _rows(figures[name])})
    known = [one["metrics"][metric]["value"] * scale for one in figures["verdict"]["treatments"].values()]
    assert len(shown) >= 2
    assert all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(shown, sorted(known), strict=True)), (shown, known)
