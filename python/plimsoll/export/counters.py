"""The counters of a trace, from the series: memory that waits to be written, and how many requests a device has.

A counter holds until its next value. So what is read at a moment stands there, and a mean over a second stands at the
second's begin.
"""

import numpy as np

from plimsoll.export.trace import BYTES, COUNT, Trace
from plimsoll.record import Segment

_MEMORY = (("host", "dirty_kib", "dirty pages, host"), ("host", "writeback_kib", "pages under writeback, host"))
_GROUP = (("group", "dirty_bytes", "dirty pages, group"),)


def write_counters(trace: Trace, segment: Segment, span: tuple[int, int]) -> list[str]:
    """Writes those that the record has within the window; returns their names."""
    written = []
    for series, column, name in (*_MEMORY, *_GROUP):
        values, table = segment.column(series, column), segment.series(series)
        if values is None or table is None:
            continue
        scale = 1024 if column.endswith("_kib") else 1
        written += _write(trace, name, BYTES, table["t_ns"], values * scale, span)
    table, busy = segment.series("device"), segment.column("device", "weighted_io_ms")
    if table is None or busy is None:
        return written
    devices = segment.devices
    for number in np.unique(table["device"]).tolist():
        mine = table["device"] == number
        times = table["t_ns"][mine]
        queue = np.diff(busy[mine]) / np.maximum(np.diff(times) / 1e6, 1e-9)
        name = str(devices[number]) if number < len(devices) else f"device {number}"
        written += _write(trace, f"{name}: requests queued or under way, mean", COUNT, times[:-1], queue, span)
    return written


def _write(
    trace: Trace, name: str, unit: int, times: np.ndarray, values: np.ndarray, span: tuple[int, int]
) -> list[str]:
    chosen = np.isfinite(values) & (times >= span[0]) & (times < span[1])
    if not chosen.any():
        return []
    track = trace.track(name, unit=unit)
    for at, value in zip(times[chosen].tolist(), values[chosen].tolist(), strict=True):
        trace.counter(track, at, value)
    return [name]
