"""The columns of vmstat over a segment, from the host's series: what study S3's figures show.

As procps has them: `us` holds niced and guests' time, `sy` interrupts, `cache` reclaimable kernel memory; bi and bo are
what all devices read and wrote, swap included (`pgpgin`, `pgpgout`, which the kernel counts in KiB). Shares are of all
CPUs' time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plimsoll.analysis.statistics.curves import drawn_rows
from plimsoll.record import Segment

Json = dict[str, Any]
KIB = {"free": ("mem_free_kib",), "buff": ("buffers_kib",), "cache": ("cached_kib", "s_reclaimable_kib")}
KIB_A_SECOND = {"bi": "pgpgin", "bo": "pgpgout"}
SHARES = {
    "us": ("cpu_user", "cpu_nice"),
    "sy": ("cpu_system", "cpu_irq", "cpu_softirq"),
    "id": ("cpu_idle",),
    "wa": ("cpu_iowait",),
    "st": ("cpu_steal",),
}
COLUMNS = {**dict.fromkeys(KIB, "KiB"), **dict.fromkeys(KIB_A_SECOND, "KiB/s"), **dict.fromkeys(SHARES, "%")}
_ALL = tuple(name for names in SHARES.values() for name in names)


def curve(segment: Segment) -> list[Json]:
    """{seconds (since the segment's first sample), column, value}; a column that cannot be told is absent."""
    host = segment.series("host")
    if host is None or len(host) < 2:
        return []
    times = (host["t_ns"].astype(np.int64) - int(host["t_ns"][0])) / 1e9
    rows = drawn_rows(times)
    if len(rows) < 2:
        return []
    found: dict[str, np.ndarray] = {}
    for name, parts in KIB.items():
        if (total := _sum(segment, parts)) is not None:
            found[name] = total[rows][1:]
    lasted = np.diff(times[rows])
    for name, counter in KIB_A_SECOND.items():
        if (values := segment.column("host", counter)) is not None:
            found[name] = np.diff(values[rows]) / lasted
    whole = _sum(segment, _ALL)
    if whole is not None:
        ticks = np.diff(whole[rows])
        for name, parts in SHARES.items():
            spent = _sum(segment, parts)
            assert spent is not None  # its parts are among all of them
            with np.errstate(invalid="ignore", divide="ignore"):
                found[name] = 100 * np.diff(spent[rows]) / ticks
    return [
        {"seconds": round(float(at), 2), "column": name, "value": float(value)}
        for name, values in found.items()
        for at, value in zip(times[rows][1:], values, strict=True)
        if np.isfinite(value)
    ]


def _sum(segment: Segment, names: tuple[str, ...]) -> np.ndarray | None:
    """None where one of them is absent."""
    columns = [segment.column("host", name) for name in names]
    present = [one for one in columns if one is not None]
    return sum(present[1:], present[0]) if len(present) == len(columns) else None
