"""The numbers of one trial, from its record. Missing stays missing: a metric without its source is None, never 0.

Counters of the server are differences of readings made with no client connected, exactly around the measured segment,
so that ratios from them are exact and not sampled.
"""

from typing import Any

import numpy as np

from plimsoll.analysis.metrics import PERCENTILES
from plimsoll.record import Segment, Trial

DONE, FAILED, SKIPPED, LOST = 0, 1, 2, 3
_SECTOR = 512
_CPU = ("cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal")
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
    """A counter by name, wherever its view put it."""
    if not isinstance(tree, dict):
        return None
    value = tree.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    for branch in tree.values():
        found = _find(branch, key)
        if found is not None:
            return found
    return None


def counter(trial: Trial, key: str, group: str = "counters") -> float | None:
    """After minus before of one counter; None when either reading lacks it."""
    readings = trial.data.get(group) or {}
    before, after = _find(readings.get("before"), key), _find(readings.get("after"), key)
    return None if before is None or after is None else after - before


def _device_counter(trial: Trial, key: str) -> float | None:
    """A diskstats column summed over the watched devices; from the series where the exact readings are missing."""
    readings = trial.data.get("device_counters") or {}
    before, after = readings.get("before") or {}, readings.get("after") or {}
    total, found = 0.0, False
    for device, columns in after.items():
        first, last = _column(before.get(device), key), _column(columns, key)
        if first is not None and last is not None:
            total, found = total + last - first, True
    if found:
        return total
    table = trial.measure.series("device")
    if table is None or key not in (table.dtype.names or ()) or "device" not in (table.dtype.names or ()):
        return None
    values = trial.measure.column("device", key)
    if values is None:
        return None
    spans = [values[table["device"] == device] for device in np.unique(table["device"])]
    return float(sum(np.nanmax(span) - np.nanmin(span) for span in spans if np.isfinite(span).any()))


def _column(columns: Any, key: str) -> float | None:
    if isinstance(columns, dict):
        return _find(columns, key)
    if isinstance(columns, list) and key in _DISKSTATS and len(columns) > _DISKSTATS.index(key):
        return float(columns[_DISKSTATS.index(key)])
    return None


def _grown(segment: Segment, series: str, column: str) -> float | None:
    """Last minus first of a cumulative series."""
    values = segment.column(series, column)
    if values is None:
        return None
    values = values[np.isfinite(values)]
    return float(values[-1] - values[0]) if len(values) > 1 else None


def _largest(segment: Segment, series: str, column: str) -> float | None:
    values = segment.column(series, column)
    return None if values is None or not np.isfinite(values).any() else float(np.nanmax(values))


def percentile(ordered: np.ndarray, share: float) -> float | None:
    """Nearest rank of sorted values; None unless at least ten lie beyond it."""
    count = len(ordered)
    rank = int(np.ceil(share * count - 1e-9))
    return float(ordered[rank - 1]) if rank >= 1 and count - rank >= 10 else None


def latency_by_kind(segment: Segment) -> dict[str, dict[str, float | None]]:
    """Percentiles of planned-to-end latency of done transactions, by kind and for all together ("all")."""
    table = segment.transactions
    if table is None or not len(table):
        return {}
    done = table[table["outcome"] == DONE]
    latency = (done["end_ns"] - done["planned_ns"]).astype(float)
    kinds = (segment.summary or {}).get("kinds") or []
    found = {"all": latency}
    for index in np.unique(done["kind"]):
        name = str(kinds[index]) if index < len(kinds) else f"kind {index}"
        found[name] = latency[done["kind"] == index]
    result = {}
    for name, values in found.items():
        ordered = np.sort(values)
        result[name] = {"count": float(len(ordered)), "max": float(ordered[-1]) if len(ordered) else None}
        result[name] |= {key: percentile(ordered, share) for key, share in PERCENTILES.items()}
    return result


def _per(value: float | None, count: float | None) -> float | None:
    return None if value is None or not count else value / count


def seconds_measured(segment: Segment) -> float | None:
    """Length of a segment, from its summary or, where that is lost, from its transactions."""
    summary = segment.summary or {}
    started, ended = summary.get("started_ns"), summary.get("ended_ns")
    if started is None or ended is None:
        table = segment.transactions
        if table is None or len(table) < 2:
            return None
        started, ended = int(table["planned_ns"].min()), int(table["end_ns"].max())
    return (ended - started) / 1e9 if ended > started else None


def _cpu(segment: Segment) -> dict[str, float | None]:
    grown = {name: _grown(segment, "host", name) for name in _CPU}
    total = None if grown["cpu_idle"] is None else sum(value for value in grown.values() if value is not None)
    if not total:
        return dict.fromkeys(("cpu_busy_share", "cpu_iowait_share", "cpu_steal_share"))
    busy = total - sum(grown[name] or 0.0 for name in ("cpu_idle", "cpu_iowait", "cpu_steal"))
    return {
        "cpu_busy_share": busy / total,
        "cpu_iowait_share": _per(grown["cpu_iowait"], total),
        "cpu_steal_share": _per(grown["cpu_steal"], total),
    }


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


def _generator(segment: Segment, seconds: float | None, done: float | None) -> dict[str, float | None]:
    health = (segment.summary or {}).get("health") or {}
    user, system = health.get("cpu_user_ns"), health.get("cpu_system_ns")
    cpu = None if user is None or system is None else float(user + system)
    cores = len(cpu_list(health.get("cpus_allowed")) or []) or None
    lag = health.get("lag_ns") or {}
    return {
        "generator_cpu_ns_per_transaction": _per(cpu, done),
        "generator_core_share": None if not seconds or not cores else _per(cpu, seconds * 1e9 * cores),
        "lag_ns_p50": None if lag.get("p50") is None else float(lag["p50"]),
        "lag_ns_p99": None if lag.get("p99") is None else float(lag["p99"]),
    }


def done_count(segment: Segment) -> int | None:
    """Transactions done, from the identity or, where the summary is lost, from the table."""
    done = ((segment.summary or {}).get("identity") or {}).get("done")
    if done is not None:
        return int(done)
    table = segment.transactions
    return None if table is None else int((table["outcome"] == DONE).sum())


def _statements(segment: Segment) -> float | None:
    table = segment.transactions
    return None if table is None or not len(table) else float(table["statements"].astype(np.int64).sum())


def estimates(trial: Trial) -> dict[str, float | None]:
    """Every metric of metrics.METRICS for one trial."""
    segment = trial.measure
    seconds, done = seconds_measured(segment), done_count(segment)
    count = float(done) if done else None
    hit, read = counter(trial, "blks_hit"), counter(trial, "blks_read")
    blocks = None if hit is None or read is None else hit + read
    read_sectors, write_sectors = _device_counter(trial, "read_sectors"), _device_counter(trial, "write_sectors")
    values: dict[str, float | None] = {
        "throughput_per_second": _per(count, seconds),
        "run_time_seconds_per_100": None if seconds is None else _per(100 * seconds, count),
        "database_hit_ratio": _per(hit, blocks),
        "database_misses_per_query": _per(read, _statements(segment)),
        "device_read_bytes_per_transaction": _per(None if read_sectors is None else read_sectors * _SECTOR, count),
        "device_write_bytes_per_transaction": _per(None if write_sectors is None else write_sectors * _SECTOR, count),
        "wal_bytes_per_transaction": _per(counter(trial, "wal_bytes"), count),
        "full_page_images_per_transaction": _per(counter(trial, "wal_fpi"), count),
        "swap_in_pages_per_transaction": _per(_grown(segment, "host", "pswpin"), count),
        "swap_out_pages_per_transaction": _per(_grown(segment, "host", "pswpout"), count),
        "swap_bytes_max": _largest(segment, "group", "swap_bytes"),
        "usage_bytes_max": _largest(segment, "group", "usage_bytes"),
    }
    overall = latency_by_kind(segment).get("all") or {}
    values |= {f"latency_ns_{name}": overall.get(name) for name in PERCENTILES}
    return values | _cpu(segment) | _generator(segment, seconds, count)
