"""What Linux's writeback did in one trial: dirty pages over time, tasks paused for dirtying too fast, the run time.

The kernel's limits hold where dirty pages are counted: for the whole host on cgroup v1, where another program's dirty
pages count too; for the server's group on cgroup v2. Missing stays missing.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from plimsoll.analysis.metric import Metric
from plimsoll.analysis.probes.page_cache import totals
from plimsoll.analysis.statistics import curves
from plimsoll.analysis.trial.readings import done_count, seconds_measured
from plimsoll.record import Segment, Trial

_KIB = 1024
_HOST = {"dirty": ("host", "dirty_kib", _KIB), "writeback": ("host", "writeback_kib", _KIB)}
_GROUP = {"dirty": ("group", "dirty_bytes", 1), "writeback": ("group", "writeback_bytes", 1)}

WRITEBACK_METRICS = [
    Metric(
        "run_time_seconds",
        "run time",
        "s",
        "log",
        "lower",
        "length of the measured segment, where a fixed number of transactions was asked for and all of them were done",
    ),
    Metric(
        "throttled_seconds",
        "throttled time",
        "s",
        "plain",
        "lower",
        "pauses of tasks for dirtying pages of the data's file system faster than they are written "
        "(balance_dirty_pages), summed over tasks, in the measured segment; tasks of other programs count too",
    ),
    *(
        Metric(
            f"{name}_bytes_{how}",
            f"{label}, {words}",
            "bytes",
            "plain",
            None,
            f"{words} of the samples at 1 s of {source} in the measured segment{weighed}",
        )
        for name, label, source in (
            ("dirty", "dirty pages", "the host's dirty pages (Dirty of /proc/meminfo)"),
            ("writeback", "pages under writeback", "the host's pages under writeback (Writeback of /proc/meminfo)"),
            ("group_dirty", "dirty pages of the group", "the dirty pages charged to the server's group"),
        )
        for how, words, weighed in (("mean", "mean", ", weighed by time"), ("max", "largest", ""))
    ),
]


class DirtyPoint(TypedDict):
    """Pages of one kind at one moment; zero is the start of measuring."""

    seconds: float
    what: str  # "dirty" or "writeback"
    bytes: float


def _series(segment: Segment, source: tuple[str, str, int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Times in seconds and values in bytes of the samples that could be read."""
    series, column, unit = source
    table, values = segment.series(series), segment.column(series, column)
    if table is None or values is None:
        return None
    known = np.isfinite(values)
    return (table["t_ns"][known].astype(np.int64) / 1e9, values[known] * unit) if known.any() else None


def time_mean(times: np.ndarray, values: np.ndarray) -> float:
    """Mean over time of samples joined by straight lines: the samples at a segment's end lie closer together."""
    span = float(times[-1] - times[0])
    if span <= 0:
        return float(values.mean())
    return float((np.diff(times) * (values[1:] + values[:-1]) / 2).sum() / span)


def throttled_seconds(segment: Segment) -> float | None:
    """Pauses at balance_dirty_pages over the devices watched; None unless the probe was on."""
    by_device = totals(segment, "throttle")
    if by_device is None or any("paused_ns" not in columns for columns in by_device.values()):
        return None
    return float(sum(int(columns["paused_ns"]) for columns in by_device.values())) / 1e9


def run_time_seconds(trial: Trial) -> float | None:
    """How long the transactions asked for took; None where seconds were asked for, or not all were done."""
    summary = trial.measure.told
    planned = (summary.get("identity") or {}).get("planned")
    if summary.get("ended_by") != "transactions" or not planned or done_count(trial.measure) != planned:
        return None
    return seconds_measured(trial.measure)


def writeback_metrics(trial: Trial) -> dict[str, float | None]:
    """Every metric of WRITEBACK_METRICS for one trial."""
    values: dict[str, float | None] = {
        "run_time_seconds": run_time_seconds(trial),
        "throttled_seconds": throttled_seconds(trial.measure),
    }
    for name, source in (
        ("dirty", _HOST["dirty"]),
        ("writeback", _HOST["writeback"]),
        ("group_dirty", _GROUP["dirty"]),
    ):
        found = _series(trial.measure, source)
        values[f"{name}_bytes_mean"] = None if found is None else time_mean(*found)
        values[f"{name}_bytes_max"] = None if found is None else float(found[1].max())
    return values


def settings_of(planned: Mapping[str, Any]) -> dict[str, int]:
    """The vm.dirty_* settings a planned trial asks for; empty where it leaves them as found."""
    wanted = ((planned.get("resolved") or {}).get("environment") or {}).get("sysctl") or {}
    return {
        str(name): int(value)
        for name, value in wanted.items()
        if str(name).startswith("vm.dirty") and isinstance(value, int) and not isinstance(value, bool)
    }


def is_of_group(trial: Trial) -> bool:
    """Whether dirty pages are counted and limited by group: on cgroup v2."""
    return (trial.data.get("group") or {}).get("version") == 2


def thresholds(trial: Trial) -> dict[str, int]:
    """Bytes at which background writing begins and which are the limit, where they hold as they were set.

    On cgroup v2 the kernel turns bytes into a share of the host's free memory and applies that share to the group.
    """
    names = {"background": "vm.dirty_background_bytes", "limit": "vm.dirty_bytes"}
    wanted = {} if is_of_group(trial) else settings_of(trial.planned)
    return {name: wanted[key] for name, key in names.items() if wanted.get(key)}


def dirty_curve(trial: Trial) -> list[DirtyPoint]:
    """Dirty pages and pages under writeback over time."""
    window = curves.measured_window(trial)
    if window is None:
        return []
    rows: list[DirtyPoint] = []
    for segment in trial.segments:
        for what, (series, column, unit) in (_GROUP if is_of_group(trial) else _HOST).items():
            times, values = curves.seconds_from(segment, series, window[0]), segment.column(series, column)
            if times is None or values is None:
                continue
            chosen = curves.drawn_rows(times)
            for seconds, value in zip(times[chosen], values[chosen] * unit, strict=True):
                if np.isfinite(value):
                    rows.append({"seconds": round(float(seconds), 2), "what": what, "bytes": float(value)})
    return rows
