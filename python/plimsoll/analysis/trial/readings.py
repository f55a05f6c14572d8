"""Single readings of a trial's record: a counter's growth, a series' largest value, how much was done.

Missing stays missing: what the record does not hold is None, never 0. Counters of the server are differences of
readings made with no client connected, exactly around the measured segment.
"""

from typing import Any, Literal

import numpy as np

from plimsoll.record import Segment, Trial

DONE, FAILED, SKIPPED, LOST = 0, 1, 2, 3
SECTOR_BYTES = 512
_DISKSTATS = (
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
)


def _find(tree: Any, key: str) -> float | None:
    """A counter by name, whichever view it is read from."""
    if not isinstance(tree, dict):
        return None
    value = tree.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    for branch in tree.values():
        value_below = _find(branch, key)
        if value_below is not None:
            return value_below
    return None


def counter(trial: Trial, key: str, group: Literal["counters", "group_counters"] = "counters") -> float | None:
    """After minus before of one counter; None when either reading lacks it."""
    readings = trial.data.get(group) or {}
    before, after = _find(readings.get("before"), key), _find(readings.get("after"), key)
    return None if before is None or after is None else after - before


def device_counter(trial: Trial, key: str) -> float | None:
    """A diskstats column summed over the watched devices; from the series where the exact readings are missing.

    Of windows from the series always: the readings around them hold what the other servers did, too.
    """
    readings = {} if has_windows(trial.measure) else trial.data.get("device_counters") or {}
    before, after = readings.get("before") or {}, readings.get("after") or {}
    total, any_device = 0.0, False
    for device, columns in after.items():
        first, last = _column(before.get(device), key), _column(columns, key)
        if first is not None and last is not None:
            total, any_device = total + last - first, True
    if any_device:
        return total
    return grown_of_devices(trial.measure, key)


def grown_of_devices(segment: Segment, key: str) -> float | None:
    """How much a diskstats column of all watched devices grew by within a segment, by its series."""
    table = segment.series("device")
    if table is None or key not in (table.dtype.names or ()) or "device" not in (table.dtype.names or ()):
        return None
    values = segment.column("device", key)
    if values is None or not len(values):
        return None
    spans = [while_open(segment, values[table["device"] == device]) for device in np.unique(table["device"])]
    return float(sum(np.nanmax(span) - np.nanmin(span) for span in spans if np.isfinite(span).any()))


def _column(columns: Any, key: str) -> float | None:
    if isinstance(columns, dict):
        return _find(columns, key)
    if isinstance(columns, list) and key in _DISKSTATS and len(columns) > _DISKSTATS.index(key):
        return float(columns[_DISKSTATS.index(key)])
    return None


def grown(segment: Segment, series: str, column: str) -> float | None:
    """Last minus first of a cumulative series."""
    values = segment.column(series, column)
    if values is None:
        return None
    values = while_open(segment, values)
    values = values[np.isfinite(values)]
    return float(values[-1] - values[0]) if len(values) > 1 else None


def has_windows(segment: Segment) -> bool:
    """Whether the segment was made of windows, between which other servers ran."""
    return segment.windows is not None and len(segment.windows) > 0


def while_open(segment: Segment, values: np.ndarray) -> np.ndarray:
    """A cumulative series without what it grew by between windows; as it is of a segment without windows.

    Of windows it has two rows each: before the first transaction and after the last.
    """
    if not has_windows(segment) or len(values) < 2:
        return values
    between = np.concatenate([[0.0], np.cumsum(values[2::2] - values[1 : len(values) - 1 : 2])])
    return np.asarray(values - np.repeat(between, 2)[: len(values)])


def seconds_open(segment: Segment) -> float | None:
    """How long windows were open or drained, together; None of a segment without windows."""
    table = segment.windows
    if table is None or not len(table):
        return None
    return float((table["drained_ns"].astype(np.int64) - table["opened_ns"].astype(np.int64)).sum()) / 1e9


def largest(segment: Segment, series: str, column: str) -> float | None:
    """The largest sample of a series."""
    values = segment.column(series, column)
    return None if values is None or not np.isfinite(values).any() else float(np.nanmax(values))


def per(value: float | None, count: float | None) -> float | None:
    """value / count; None where either is missing or there is nothing to divide by."""
    return None if value is None or not count else value / count


def seconds_measured(segment: Segment) -> float | None:
    """Length of a segment, from its summary or, where that is lost, from its transactions; of windows what is open."""
    if has_windows(segment):
        return seconds_open(segment)
    summary = segment.told
    started, ended = summary.get("started_ns"), summary.get("ended_ns")
    if started is None or ended is None:
        table = segment.transactions
        if table is None or len(table) < 2:
            return None
        started, ended = int(table["planned_ns"].min()), int(table["end_ns"].max())
    return (ended - started) / 1e9 if ended > started else None


def cpu_list(text: Any) -> list[int] | None:
    """The CPUs of a list such as "0-1,3" or [0, 1, 3]."""
    if isinstance(text, list):
        return [int(cpu) for cpu in text]
    if not isinstance(text, str) or not text.strip() or not set(text) <= set("0123456789-, "):
        return None
    cpus: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def done_count(segment: Segment) -> int | None:
    """Transactions done, from the identity or, where the summary is lost, from the table."""
    done = segment.identity.get("done")
    if done is not None:
        return int(done)
    table = segment.transactions
    return None if table is None else int((table["outcome"] == DONE).sum())


def statements(segment: Segment) -> float | None:
    """Statements sent, BEGIN and COMMIT not counted."""
    table = segment.transactions
    if table is not None and len(table) and is_whole(segment):
        return float(table["statements"].astype(np.int64).sum())
    kinds = segment.by_kind
    counts = [kind["statements"] for kind in kinds.values() if kind.get("statements") is not None]
    return float(sum(counts)) if counts else None


def is_whole(segment: Segment) -> bool:
    """Whether transactions.npy has every transaction; beyond a bound it has a sample of them."""
    rows = segment.told.get("rows")
    return rows is None or int(rows["sample_one_in"] or 1) == 1


def weights(segment: Segment) -> np.ndarray:
    """How many transactions each row of transactions.npy stands for."""
    table = segment.transactions
    assert table is not None
    if is_whole(segment):
        return np.ones(len(table))
    rows = segment.told["rows"]
    first = int(segment.told.get("first_index") or 0)
    below = int(rows.get("all_below_index") or first)
    return np.where(table["index"] < below, 1.0, float(rows["sample_one_in"]))


def fact(segment: Segment, key: str) -> float | None:
    """A number that the agent gives once a segment, in its summary or among its health."""
    summary = segment.told
    value = summary.get(key, (summary.get("health") or {}).get(key))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_open_loop(segment: Segment) -> bool:
    """Whether transactions were due by a plan of their own."""
    schedule = segment.schedule
    return schedule.get("kind", "closed") != "closed"


def nothing_to_do(segment: Segment) -> int:
    """Transactions skipped because their draw says nothing: those have a kind, and what was too late has none."""
    kinds = segment.by_kind.values()
    return sum(int(kind.get("skipped") or 0) for kind in kinds)


def unanswered(segment: Segment) -> int:
    """Open loops: transactions that were due and got no timely answer (too late, failed or lost); closed loops: 0.

    They are slower than every latency: without them an arm that skips its slowest would have the better percentiles.
    """
    identity = segment.identity
    if not is_open_loop(segment) or identity.get("planned") is None:
        return 0
    return max(0, int(identity["planned"]) - int(identity.get("done") or 0) - nothing_to_do(segment))


def skipped_late(segment: Segment) -> int:
    """Transactions of an open loop that were skipped because they would have started too late."""
    identity = segment.identity
    return max(0, int(identity.get("skipped") or 0) - nothing_to_do(segment)) if is_open_loop(segment) else 0


def late_limit_ns(segment: Segment) -> float | None:
    """How late a transaction of an open loop may start, ns; None where it may start at any time."""
    limit = segment.schedule.get("late_limit_ms")
    return None if limit is None else float(limit) * 1e6
