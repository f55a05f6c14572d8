"""What surrounded a trial of a capacity run: the CPU's steal, CPU time per transaction, the device's latency.

A load line that moved within the hour moved for a reason; these are the usual ones, so they stand in every verdict and
two runs are compared by them (capacity_compare.py). Missing stays missing.
"""

from plimsoll.analysis.capacity.document import Conditions
from plimsoll.analysis.trial.readings import counter, done_count, grown, per
from plimsoll.record import Segment, Trial

_CPU = ("cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal")
_WORKING = ("cpu_user", "cpu_nice", "cpu_system", "cpu_irq", "cpu_softirq")
_TICK_NS = 10_000_000
# Place of each column in /proc/diskstats, after the name.
_DEVICE = {"reads": 0, "read_ms": 3, "writes": 4, "write_ms": 7, "flushes": 15, "flush_ms": 16}
CONDITIONS = {
    "cpu_steal_share": ("CPU stolen by the hypervisor", "share"),
    "host_busy_share": ("CPU busy or stolen, whole host", "share"),
    "server_cpu_ns_per_transaction": ("CPU per transaction, server and all else but the generator", "ns"),
    "generator_cpu_ns_per_transaction": ("CPU per transaction, generator", "ns"),
    "device_read_ns": ("device latency of a read", "ns"),
    "device_write_ns": ("device latency of a write", "ns"),
    "device_flush_ns": ("device latency of a flush", "ns"),
    "wal_bytes_per_transaction": ("WAL per transaction", "bytes"),
    "database_hit_ratio": ("database hit ratio", "share"),
}


def _cpu_ticks(segment: Segment) -> dict[str, float] | None:
    found = {name: grown(segment, "host", name) for name in _CPU}
    if found["cpu_idle"] is None or found["cpu_user"] is None:
        return None
    return {name: value or 0.0 for name, value in found.items()}


def host_busy_share(segment: Segment) -> float | None:
    """Time not idle, of all CPUs of the host; steal counts as busy, for nobody here could use it."""
    ticks = _cpu_ticks(segment)
    total = sum(ticks.values()) if ticks else 0.0
    return 1 - (ticks["cpu_idle"] + ticks["cpu_iowait"]) / total if ticks and total else None


def steal_share(segment: Segment) -> float | None:
    """What the hypervisor took of the time of all CPUs of the host."""
    ticks = _cpu_ticks(segment)
    total = sum(ticks.values()) if ticks else 0.0
    return ticks["cpu_steal"] / total if ticks and total else None


def _each_ns(trial: Trial, count: str, milliseconds: str) -> float | None:
    """Mean time of one request of the watched devices, around the measured segment."""
    readings = trial.data.get("device_counters") or {}
    before, after = readings.get("before") or {}, readings.get("after") or {}
    requests = spent = 0.0
    for device, columns in after.items():
        first = before.get(device)
        if not isinstance(first, list) or not isinstance(columns, list) or len(columns) <= _DEVICE[milliseconds]:
            continue
        requests += columns[_DEVICE[count]] - first[_DEVICE[count]]
        spent += columns[_DEVICE[milliseconds]] - first[_DEVICE[milliseconds]]
    return spent * 1e6 / requests if requests > 0 else None


def conditions(trial: Trial) -> Conditions:
    """Every condition of CONDITIONS for one trial, and the checkpoints that began in it."""
    segment = trial.measure
    done = done_count(segment)
    ticks = _cpu_ticks(segment)
    health = segment.health
    user, system = health.get("cpu_user_ns"), health.get("cpu_system_ns")
    generator = None if user is None or system is None else float(user + system)
    working = sum(ticks[name] for name in _WORKING) * _TICK_NS if ticks else None
    hit, read = counter(trial, "blks_hit"), counter(trial, "blks_read")
    checkpoints = [counter(trial, name) for name in ("checkpoints_timed", "checkpoints_req")]
    return {
        "cpu_steal_share": steal_share(segment),
        "host_busy_share": host_busy_share(segment),
        "server_cpu_ns_per_transaction": None
        if working is None or generator is None
        else per(max(0.0, working - generator), done),
        "generator_cpu_ns_per_transaction": per(generator, done),
        "device_read_ns": _each_ns(trial, "reads", "read_ms"),
        "device_write_ns": _each_ns(trial, "writes", "write_ms"),
        "device_flush_ns": _each_ns(trial, "flushes", "flush_ms"),
        "wal_bytes_per_transaction": per(counter(trial, "wal_bytes"), done),
        "database_hit_ratio": None if hit is None or read is None else per(hit, hit + read),
        "checkpoints": None if all(one is None for one in checkpoints) else sum(one or 0.0 for one in checkpoints),
    }
