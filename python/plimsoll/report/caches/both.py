"""The two caches on the page: the study's figures in its terms, with today's intervals, and the device's side."""

from typing import Any

from plimsoll.record import Run
from plimsoll.report.caches.caches import cache_figures
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.levels import levels_figure
from plimsoll.report.original_studies import study_of
from plimsoll.report.section import Page, Section
from plimsoll.words.probes.caches import cache_lines

Json = dict[str, Any]


def _study(run: Run) -> dict[str, str] | None:
    """The study, where it is the one on caches: the figures' numbers and what they are set beside are its own."""
    study = study_of(run.experiment)
    return study if study is not None and "hit" in study else None


def both_caches_figures(run: Run, verdict: Json) -> list[Figure]:
    """The study's figures in its terms, with today's intervals; and the device's side, which it could not see."""
    study = _study(run) or {}
    hit = levels_figure(
        verdict,
        "database_hit_ratio",
        "database-hit-ratio",
        "Database hit ratio by database cache" + (" (the study's figures 4.1 to 4.4)" if study else ""),
        "From the server's counters read exactly around the measured segment. A miss here may still be a hit in "
        "Linux's page cache.",
        {"title": "hit ratio, %", "format": "d", "tip": ".2f", "domain": [0, 100]},
        scale=100.0,
        half=True,
        original=study.get("hit", ""),
    )
    misses = levels_figure(
        verdict,
        "database_misses_per_query",
        "database-misses-per-query",
        "Database misses per query" + (" (figure 4.5)" if study else ""),
        "Blocks of 8 KiB not found in the database's cache, per statement sent; BEGIN and COMMIT are not counted.",
        {"title": "blocks per query", "format": "~r", "tip": ".3f"},
        half=True,
        original=study.get("misses", ""),
    )
    time = levels_figure(
        verdict,
        "run_time_seconds_per_100",
        "run-time-of-100",
        "Run time of 100 transactions" + (" (figure 4.9)" if study else ""),
        "100 divided by the throughput of the whole load.",
        {"title": "seconds", "format": "~r", "tip": ".3f"},
        half=True,
        original=study.get("time", ""),
    )
    device = levels_figure(
        verdict,
        "device_read_bytes_per_transaction",
        "device-reads",
        "Device reads per transaction: what both caches missed",
        "Sectors read from the watched devices, read-ahead and swap on them included, per done transaction.",
        {"title": "KiB per transaction", "format": "~r", "tip": ",.2f"},
        scale=1 / 1024,
        half=True,
    )
    return [hit, misses, time, device, *cache_figures(verdict, study)]


def _context(page: Page) -> Json:
    return {"study": _study(page.run), "grid": len(page.verdict["comparisons"]) == 1}


SECTION = Section(
    key="caches",
    title="The two caches",
    template="caches/caches.html.j2",
    context=_context,
    figures=lambda page: both_caches_figures(page.run, page.verdict),
    evidence=lambda page: [f"{line}." for line in cache_lines(page.verdict)],
)
