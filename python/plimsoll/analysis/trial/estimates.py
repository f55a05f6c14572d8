"""The numbers of one trial, from its record. Missing stays missing: a metric without its source is None, never 0.

Counters of the server are differences of readings made with no client connected, exactly around the measured segment,
so that ratios from them are exact and not sampled.
"""

from plimsoll.analysis.percentiles import PERCENTILES
from plimsoll.analysis.trial.latency import latency_by_kind
from plimsoll.analysis.trial.readings import (
    SECTOR_BYTES,
    counter,
    cpu_list,
    device_counter,
    done_count,
    fact,
    grown,
    is_open_loop,
    largest,
    per,
    seconds_measured,
    statements,
)
from plimsoll.analysis.trial.standstill import RATE, most_per_second
from plimsoll.analysis.trial.windows import windows
from plimsoll.record import Segment, Trial

_CPU = ("cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal")
_TICK_NS = 10_000_000  # of USER_HZ, the unit of /proc/stat: 100 a second


def _cpu(segment: Segment, done: float | None) -> dict[str, float | None]:
    found = {name: grown(segment, "host", name) for name in _CPU}
    total = None if found["cpu_idle"] is None else sum(value for value in found.values() if value is not None)
    if not total:
        return dict.fromkeys(("cpu_busy_share", "cpu_iowait_share", "cpu_steal_share", "cpu_ns_per_transaction"))
    busy = total - sum(found[name] or 0.0 for name in ("cpu_idle", "cpu_iowait", "cpu_steal"))
    return {
        "cpu_busy_share": busy / total,
        "cpu_iowait_share": per(found["cpu_iowait"], total),
        "cpu_steal_share": per(found["cpu_steal"], total),
        "cpu_ns_per_transaction": per(busy * _TICK_NS, done),
    }


def _generator(segment: Segment, seconds: float | None, done: float | None) -> dict[str, float | None]:
    health = segment.health
    user, system = health.get("cpu_user_ns"), health.get("cpu_system_ns")
    cpu = None if user is None or system is None else float(user + system)
    cores = len(cpu_list(health.get("cpus_allowed")) or []) or None
    lag = health.get("lag_ns")
    load_user, load_system = fact(segment, "load_cpu_user_ns"), fact(segment, "load_cpu_system_ns")
    threads = None if load_user is None or load_system is None else load_user + load_system
    return {
        "generator_cpu_ns_per_transaction": per(cpu, done),
        "load_threads_cpu_ns_per_transaction": per(threads, done),
        "generator_core_share": None if not seconds or not cores else per(cpu, seconds * 1e9 * cores),
        "lag_ns_p50": None if lag is None else float(lag["p50"]),
        "lag_ns_p99": None if lag is None else float(lag["p99"]),
    }


def _outcomes(segment: Segment) -> dict[str, float | None]:
    """What became of the transactions that were planned, and how the rate compares with the plan."""
    identity = segment.identity
    planned, done = identity.get("planned"), identity.get("done")
    failed = None if identity.get("failed") is None else float(identity["failed"])
    is_open = is_open_loop(segment)
    return {
        "failed_share": per(failed, planned),
        "skipped_share": per(None if identity.get("skipped") is None else float(identity["skipped"]), planned),
        "retries_per_transaction": per(fact(segment, "retries"), done),
        "planned_rate_per_second": fact(segment, "planned_rate") if is_open else None,
        "achieved_share": per(None if done is None else float(done), planned) if is_open else None,
    }


def trial_values(trial: Trial) -> dict[str, float | None]:
    """Every metric of metrics.TRIAL_METRICS for one trial."""
    segment = trial.measure
    seconds, done = seconds_measured(segment), done_count(segment)
    count = float(done) if done else None
    hit, read = counter(trial, "blks_hit"), counter(trial, "blks_read")
    blocks = None if hit is None or read is None else hit + read
    read_sectors, write_sectors = device_counter(trial, "read_sectors"), device_counter(trial, "write_sectors")
    values: dict[str, float | None] = {
        "throughput_per_second": per(count, seconds),
        "run_time_seconds_per_100": None if seconds is None else per(100 * seconds, count),
        "database_hit_ratio": per(hit, blocks),
        "database_misses_per_query": per(read, statements(segment)),
        "device_read_bytes_per_transaction": per(None if read_sectors is None else read_sectors * SECTOR_BYTES, count),
        "device_write_bytes_per_transaction": per(
            None if write_sectors is None else write_sectors * SECTOR_BYTES, count
        ),
        "wal_bytes_per_transaction": per(counter(trial, "wal_bytes"), count),
        "full_page_images_per_transaction": per(counter(trial, "wal_fpi"), count),
        "swap_in_pages_per_transaction": per(grown(segment, "host", "pswpin"), count),
        "swap_out_pages_per_transaction": per(grown(segment, "host", "pswpout"), count),
        "swap_bytes_max": largest(segment, "group", "swap_bytes"),
        "usage_bytes_max": largest(segment, "group", "usage_bytes"),
    }
    overall = latency_by_kind(segment).get("all") or {}
    values |= {f"latency_ns_{name}": overall.get(name) for name in PERCENTILES}
    if most_per_second(trial) is not None:
        values |= {RATE: None, "run_time_seconds_per_100": None}
    elif (found := windows(trial)) is not None:
        values |= {"throughput_per_second": found.rate, "run_time_seconds_per_100": 100 / found.rate}
    return values | _cpu(segment, count) | _generator(segment, seconds, count) | _outcomes(segment)
