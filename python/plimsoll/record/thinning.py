"""A segment thinned to a number of bytes, for records of days: fewer samples of each series, histograms whole.

The rule: series keep one sample in 1, 10, 60 or 300 seconds, the first and the last always; cumulative counters lose
nothing by that but the moments between. Histograms by second become histograms of as many seconds, with every latency
in them (latency_blocks.npy, lag_blocks.npy). Where that is not enough single transactions go. The first of these steps
that fits is taken, and its seconds are said.

The fact that constrains it: the machine may be cut off at any point, so each table is written beside its place and
renamed, and thinning what is thin already changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from plimsoll.record.npy import read_table
from plimsoll.record.run import SERIES

if TYPE_CHECKING:
    import numpy as np

STEPS_S: Final = (1, 10, 60, 300)
ROWS: Final = "transactions.npy"
_BY_SECOND: Final = {"latency_seconds.npy": "latency_blocks.npy", "lag_seconds.npy": "lag_blocks.npy"}
_NS: Final = 1_000_000_000


class Thinned(TypedDict):
    """What became of a segment: seconds from sample to sample, whether single transactions are left, and its size."""

    step_s: int
    has_rows: bool
    bytes: int


def bytes_of(folder: Path) -> int:
    """Of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def thin(folder: Path, bytes_max: float) -> Thinned:
    """Thins a segment until it has no more than so many bytes, or cannot be thinned further."""
    for step_s in STEPS_S:
        if step_s > 1:
            for path in sorted(folder.glob("*.npy")):
                _thin_table(path, step_s)
        if (size := bytes_of(folder)) <= bytes_max:
            return {"step_s": step_s, "has_rows": (folder / ROWS).exists(), "bytes": size}
    (folder / ROWS).unlink(missing_ok=True)
    return {"step_s": STEPS_S[-1], "has_rows": False, "bytes": bytes_of(folder)}


def _thin_table(path: Path, step_s: int) -> None:
    is_by_second = path.name in (*_BY_SECOND, *_BY_SECOND.values())
    if not (is_by_second or path.stem in SERIES):
        return  # rows of what happened, and what checks rest on
    table = read_table(path)
    if table is None or not len(table):
        return
    if is_by_second:
        _replace(path.with_name(_BY_SECOND.get(path.name, path.name)), _in_blocks(table, step_s))
        if path.name in _BY_SECOND:
            path.unlink()
        return
    kept = _apart(table["t_ns"], step_s)
    if not kept.all():
        _replace(path, table[kept])


def _apart(times: np.ndarray, step_s: int) -> np.ndarray:
    """Which rows to keep: all of a sample in so many seconds, of the first and of the last."""
    import numpy as np

    slots = (times.astype(np.int64) - int(times[0]) + _NS // 2) // (step_s * _NS)
    samples = np.flatnonzero(np.diff(times, prepend=times[0] - 1))  # where each sample begins: rows of one time
    first = samples[np.flatnonzero(np.diff(slots[samples], prepend=-1))]
    return np.isin(times, times[np.append(first, len(times) - 1)])


def _in_blocks(table: np.ndarray, step_s: int) -> np.ndarray:
    """Histograms of so many seconds: the counts of equal cells added up, the second that in which the block begins."""
    import numpy as np

    cells = [name for name in table.dtype.names or () if name not in ("second", "count")]
    blocks = table["second"] // step_s
    order = np.lexsort([*(table[name] for name in cells), blocks])
    rows, blocks = table[order], blocks[order]
    begins = np.flatnonzero(
        np.any([np.diff(one, prepend=one[:1]) != 0 for one in (blocks, *(rows[name] for name in cells))], axis=0)
    )
    begins = np.unique(np.append(0, begins))
    merged = rows[begins].copy()
    merged["second"] = blocks[begins] * step_s
    merged["count"] = np.add.reduceat(rows["count"], begins)
    return merged


def _replace(path: Path, table: np.ndarray) -> None:
    import numpy as np

    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            np.save(file, table)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
