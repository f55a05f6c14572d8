"""All figures of a report, in the order they stand on the page."""

from typing import Any

from plimsoll.analysis.metrics import metric_of
from plimsoll.record import Run
from plimsoll.report.caches.caches import cache_figures
from plimsoll.report.caches.double_caching import double_caching_figure
from plimsoll.report.caches.reconcile import reconciliation_figure
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.latency import latency_figure
from plimsoll.report.drawing.levels import levels_figure
from plimsoll.report.drawing.series import memory_figure, warmup_figure
from plimsoll.report.studies.studies import study_of

Json = dict[str, Any]
_MAIN = (
    "Filled marks: geometric mean over blocks with its 95 % t interval; open circles: the single blocks. Bars of one "
    "level include the variation from block to block; the verdict compares within blocks and is more precise. The "
    'band is the A/A spread around the best estimate: differences inside it are "cannot tell".'
)


def main_figure(verdict: Json) -> Figure:
    """What is judged, with everything the verdict rests on."""
    judged = metric_of(verdict["metric"])
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


def study_figures(run: Run, verdict: Json) -> list[Figure]:
    """The study's figures in its terms, with today's intervals; and the device's side, which it could not see."""
    study = study_of(run.experiment) or {}
    study = study if "hit" in study else {}  # the figures' numbers are those of its part on caches
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


def device_figures(verdict: Json) -> list[Figure]:
    """What explains the device's reads."""
    return [reconciliation_figure(verdict)]


def twice_figures(verdict: Json) -> list[Figure]:
    """What both caches hold."""
    return [double_caching_figure(verdict)]


def time_figures(run: Run, verdict: Json) -> list[Figure]:
    """Latency, memory, warm-up."""
    return [latency_figure(verdict), memory_figure(run, verdict), warmup_figure(run, verdict)]
