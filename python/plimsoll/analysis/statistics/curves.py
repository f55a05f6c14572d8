"""Trials over time, for figures: hit ratio by second, memory of the group by second.

Time zero is the start of the measured segment, so that trials with warm-ups of different length lie over one another.
Values are rates between neighbouring samples; a stretch without samples stays a gap.
"""

from typing import Any

import numpy as np

from plimsoll.record import Segment, Trial

Json = dict[str, Any]
MEMORY_PARTS = ("anon_bytes", "shmem_bytes", "file_bytes", "swap_bytes")
_POINTS_MAX = 150
# A segment ends with a sample right behind its last regular one; a stump of an interval is no rate.
_STUMP_SECONDS = 0.5


def measured_window(trial: Trial) -> tuple[int, int] | None:
    """Start and end of the measured segment on the trial's clock."""
    summary = trial.measure.told
    start, end = summary.get("started_ns"), summary.get("ended_ns")
    if start is None or end is None:
        table = trial.measure.transactions
        if table is None or not len(table):
            return None
        start, end = int(table["planned_ns"].min()), int(table["end_ns"].max())
    return int(start), int(end)


def measured_seconds(window: tuple[int, int]) -> float:
    """How long a window of measured_window is."""
    return (window[1] - window[0]) / 1e9


def drawn_rows(times: np.ndarray) -> np.ndarray:
    """Which rows to draw: without stumps, and evenly spaced ones where there are too many."""
    rows = np.flatnonzero(np.diff(times, prepend=-np.inf) >= _STUMP_SECONDS)
    if len(rows) <= _POINTS_MAX:
        return rows
    return rows[np.unique(np.linspace(0, len(rows) - 1, _POINTS_MAX).round().astype(int))]


def seconds_from(segment: Segment, series: str, zero: int) -> np.ndarray | None:
    """Times of a series in seconds after `zero`; None when it was not taken."""
    table = segment.series(series)
    return None if table is None else (table["t_ns"].astype(np.int64) - zero) / 1e9


def hit_ratio_curve(trial: Trial) -> list[Json]:
    """Database hit ratio between neighbouring samples: {seconds, hit_ratio, segment}."""
    window = measured_window(trial)
    if window is None:
        return []
    rows: list[Json] = []
    for segment in trial.segments:
        times = seconds_from(segment, "server", window[0])
        hit, read = segment.column("server", "blks_hit"), segment.column("server", "blks_read")
        if times is None or hit is None or read is None or len(times) < 2:
            continue
        chosen = drawn_rows(times)
        hits, reads = np.diff(hit[chosen]), np.diff(read[chosen])
        for seconds, one, other in zip(times[chosen][1:], hits, reads, strict=True):
            if np.isfinite(one) and np.isfinite(other) and one + other > 0:
                ratio = float(one / (one + other))
                rows.append({"seconds": round(float(seconds), 2), "hit_ratio": ratio, "segment": segment.name})
    return rows


def memory_curve(trial: Trial) -> list[Json]:
    """Memory of the server's group by part: {seconds, part, bytes}; a part the machine cannot tell is absent.

    The page-cache figure of a group counts shared memory too, so shared memory is taken out of it.
    """
    window = measured_window(trial)
    if window is None:
        return []
    rows: list[Json] = []
    for segment in trial.segments:
        times = seconds_from(segment, "group", window[0])
        if times is None:
            continue
        chosen = drawn_rows(times)
        values = {part: segment.column("group", part) for part in MEMORY_PARTS}
        for part, column in values.items():
            if column is None:
                continue
            drawn = column[chosen]
            if part == "file_bytes" and values["shmem_bytes"] is not None:
                drawn = np.maximum(0.0, drawn - values["shmem_bytes"][chosen])
            for seconds, value in zip(times[chosen], drawn, strict=True):
                if np.isfinite(value):
                    rows.append({"seconds": round(float(seconds), 2), "part": part, "bytes": float(value)})
    return rows
