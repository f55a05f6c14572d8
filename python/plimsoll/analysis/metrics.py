"""What is estimated per trial: name, unit, scale and definition of each metric."""

from typing import Any

from plimsoll.analysis.decision_support.metrics import DECISION_SUPPORT_METRICS, WORKLOAD
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.metrics_probes import PROBE_METRICS
from plimsoll.analysis.percentiles import PERCENTILE_NAMES
from plimsoll.analysis.probes.writeback import WRITEBACK_METRICS

_PERCENTILES = {
    "p50": "half of the transactions took no longer",
    "p90": "90 % took no longer",
    "p95": "95 % took no longer",
    "p99": "99 % took no longer",
    "p999": "99.9 % took no longer",
    "p9999": "99.99 % took no longer",
}

_ALL = [
    Metric(
        "throughput_per_second",
        "throughput",
        "transactions/s",
        "log",
        "higher",
        "transactions done in the measured segment, divided by its length",
    ),
    Metric(
        "run_time_seconds_per_100",
        "run time of 100 transactions",
        "s",
        "log",
        "lower",
        "100 divided by the throughput; with more than one client, of the whole load",
    ),
    *(
        Metric(
            f"latency_ns_{name}",
            f"latency {PERCENTILE_NAMES.get(name, name)}",
            "ns",
            "log",
            "lower",
            f"planned start to last reply, done transactions: {words} (nearest rank; needs ten beyond it; from the "
            "histogram where not every row was kept; in an open loop what was skipped as too late, failed or was lost "
            "counts as slower than any)",
        )
        for name, words in _PERCENTILES.items()
    ),
    Metric(
        "database_hit_ratio",
        "database hit ratio",
        "ratio",
        "plain",
        "higher",
        "blks_hit / (blks_hit + blks_read) of pg_stat_database, from readings exactly around the measured segment; "
        "a read may still be served by Linux's page cache",
        ceiling=1.0,
    ),
    Metric(
        "database_misses_per_query",
        "database misses per query",
        "blocks/query",
        "plain",
        "lower",
        "blks_read divided by the statements sent, BEGIN and COMMIT not counted; a miss is one 8 KiB block",
    ),
    Metric(
        "device_read_bytes_per_transaction",
        "device reads per transaction",
        "bytes",
        "plain",
        "lower",
        "sectors read from the watched devices, read-ahead and swap on them included, per done transaction",
    ),
    Metric(
        "device_write_bytes_per_transaction",
        "device writes per transaction",
        "bytes",
        "plain",
        "lower",
        "sectors written to the watched devices per done transaction",
    ),
    Metric(
        "wal_bytes_per_transaction",
        "WAL per transaction",
        "bytes",
        "plain",
        "lower",
        "wal_bytes of pg_stat_wal per done transaction",
    ),
    Metric(
        "full_page_images_per_transaction",
        "full-page images per transaction",
        "images",
        "plain",
        "lower",
        "wal_fpi of pg_stat_wal per done transaction",
    ),
    Metric(
        "swap_in_pages_per_transaction",
        "swapped in per transaction",
        "pages",
        "plain",
        "lower",
        "pswpin of the whole host per done transaction",
    ),
    Metric(
        "swap_out_pages_per_transaction",
        "swapped out per transaction",
        "pages",
        "plain",
        "lower",
        "pswpout of the whole host per done transaction",
    ),
    Metric(
        "swap_bytes_max",
        "largest swap of the group",
        "bytes",
        "plain",
        "lower",
        "largest swap of the server's group seen at 1 s",
    ),
    Metric(
        "usage_bytes_max", "largest memory of the group", "bytes", "plain", None, "largest usage of the group at 1 s"
    ),
    Metric(
        "cpu_busy_share",
        "CPU busy",
        "ratio",
        "plain",
        None,
        "time not idle and not iowait, all CPUs of the host, steal not counted as busy",
        ceiling=1.0,
    ),
    Metric("cpu_iowait_share", "CPU idle with I/O pending", "ratio", "plain", None, "iowait of the host", ceiling=1.0),
    Metric(
        "cpu_steal_share",
        "CPU stolen by the hypervisor",
        "ratio",
        "plain",
        "lower",
        "steal of the host",
        ceiling=1.0,
    ),
    Metric(
        "cpu_ns_per_transaction",
        "CPU cost per transaction",
        "ns",
        "log",
        "lower",
        "time not idle, iowait or steal of all CPUs of the host, the load generator's included, per done transaction",
    ),
    Metric(
        "generator_cpu_ns_per_transaction",
        "generator CPU per transaction",
        "ns",
        "log",
        "lower",
        "user and system time of the load generator per done transaction",
    ),
    Metric(
        "generator_core_share",
        "generator's share of core time",
        "ratio",
        "plain",
        "lower",
        "CPU time of the generator divided by the core time of the CPUs it may run on",
        ceiling=1.0,
    ),
    Metric(
        "load_threads_cpu_ns_per_transaction",
        "CPU of the load threads per transaction",
        "ns",
        "log",
        "lower",
        "user and system time of the threads that carry the load, without the agent's others, per done transaction",
    ),
    Metric(
        "planned_rate_per_second",
        "planned rate",
        "transactions/s",
        "log",
        None,
        "open loops: mean rate of the plan over the measured segment",
    ),
    Metric(
        "achieved_share",
        "achieved of planned",
        "ratio",
        "plain",
        "higher",
        "open loops: transactions done, divided by those due before the segment's end",
        ceiling=1.0,
    ),
    Metric("failed_share", "failed", "ratio", "plain", "lower", "transactions failed, of those planned", ceiling=1.0),
    Metric(
        "skipped_share",
        "skipped",
        "ratio",
        "plain",
        "lower",
        "transactions not started, because they would have begun too late or their draw says nothing, of those planned",
        ceiling=1.0,
    ),
    Metric(
        "retries_per_transaction",
        "retries per transaction",
        "retries",
        "plain",
        "lower",
        "tries after a serialization failure or a deadlock, per done transaction",
    ),
    Metric("lag_ns_p50", "lag p50", "ns", "plain", "lower", "actual start minus planned start"),
    Metric("lag_ns_p99", "lag p99", "ns", "plain", "lower", "actual start minus planned start"),
    *PROBE_METRICS,
    *WRITEBACK_METRICS,
    *DECISION_SUPPORT_METRICS,
]

METRICS: dict[str, Metric] = {metric.key: metric for metric in _ALL}
JUDGED = "throughput_per_second"
JUDGED_OPEN = "latency_ns_p99"


def shown_for(experiment: dict[str, Any]) -> list[str]:
    """The metrics that a run's verdict has: those of decision support alone are of no other workload."""
    alone = {metric.key for metric in DECISION_SUPPORT_METRICS}
    has_them = (experiment.get("workload") or {}).get("name") == WORKLOAD
    return [key for key in METRICS if has_them or key not in alone]


def judged_of(plan: dict[str, Any], experiment: dict[str, Any]) -> str:
    """The metric that a run's levels are compared by: as its record says, else as experiments have it by default."""
    wanted = plan.get("judged") or (experiment.get("design") or {}).get("judged")
    if wanted in METRICS:
        return str(wanted)
    kind = (experiment.get("schedule") or {}).get("kind", "closed")
    return JUDGED if kind == "closed" else JUDGED_OPEN
