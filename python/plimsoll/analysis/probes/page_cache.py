"""What the probes in the kernel counted in one trial's measured segment, as metrics.

A probe that was refused or not asked for gives None everywhere, never 0. The kernel may be unable to tell page faults;
then the record says so, and reads stand alone.
"""

from collections.abc import Mapping

from plimsoll.analysis.trial.readings import counter, cpu_list, done_count, per, seconds_measured, statements
from plimsoll.record import Segment, Trial
from plimsoll.record.summary import Probe

DATA = "data"
# Brought into the page cache from the device, as far as the probe can say; what writes add is not read.
BROUGHT = (
    "read_missed_pages",
    "fault_missed_pages",
    "readahead_pages",
    "prefetch_pages",
    "other_pages",
    "unsettled_pages",
)


def probe(segment: Segment, name: str) -> Probe | None:
    """A probe's entry in summary.json; None when the record has none."""
    entry = segment.probes.get(name)
    return entry if isinstance(entry, dict) else None


def totals(segment: Segment, name: str) -> dict[str, dict[str, int]] | None:
    """Growth over the segment by class or device; None unless the probe was on."""
    entry = probe(segment, name)
    if entry is None or entry.get("status") != "on" or not isinstance(entry.get("totals"), dict):
        return None
    return {str(key): columns for key, columns in entry["totals"].items() if isinstance(columns, dict)}


def lost_events(entry: Probe) -> dict[str, int]:
    """What a probe lost, by kind; empty when nothing was."""
    return {str(what): int(count) for what, count in (entry.get("lost") or {}).items() if count}


def column(entry: Probe, columns: Mapping[str, int], name: str) -> float | None:
    """A counter of one class. What the kernel cannot tell, and says so, counts nothing; any other gap is None."""
    value = columns.get(name)
    if value is None:
        return 0.0 if name in (entry.get("absent") or {}) else None
    return float(value)


def added(*values: float | None) -> float | None:
    """A sum that is unknown when a part is."""
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)


def of_class(entry: Probe, by_class: Mapping[str, Mapping[str, int]], name: str) -> dict[str, int] | None:
    """The columns of a class together with those of a workload's own classes that are parts of it; a column that one of
    them lacks is lacking. None where the class was not counted."""
    parts = entry.get("part_of") or {}
    counted = [columns for one, columns in by_class.items() if name in (one, parts.get(one))]
    if name not in by_class:
        return None
    return {key: sum(one[key] for one in counted) for key in counted[0] if all(key in one for one in counted)}


def asked_and_missed(entry: Probe, columns: Mapping[str, int]) -> tuple[float | None, float | None]:
    """Pages that reads and faults asked for, and those of them that were not in the page cache.

    Without the reads there is nothing to say, whatever the reason.
    """
    if columns.get("read_pages") is None or columns.get("read_missed_pages") is None:
        return None, None
    asked = added(column(entry, columns, "read_pages"), column(entry, columns, "fault_pages"))
    return asked, added(column(entry, columns, "read_missed_pages"), column(entry, columns, "fault_missed_pages"))


def hit_ratio(entry: Probe, columns: Mapping[str, int]) -> float | None:
    """The share of the pages asked for that were in the page cache; None where nothing was asked for."""
    asked, missed = asked_and_missed(entry, columns)
    return _less_than_one(missed, asked)


def _less_than_one(missed: float | None, asked: float | None) -> float | None:
    share = per(missed, asked)
    # A page that was evicted before its call had read it is brought, and counted as missed, again.
    return None if share is None else max(0.0, 1 - share)


def _data_metrics(trial: Trial, done: float | None, sent: float | None) -> dict[str, float | None]:
    """The metrics of the data files."""
    entry, by_class = probe(trial.measure, "page_cache") or {}, totals(trial.measure, "page_cache") or {}
    columns = of_class(entry, by_class, DATA)
    if columns is None:
        return {}

    def value(name: str) -> float | None:
        return column(entry, columns, name)

    asked, missed = asked_and_missed(entry, columns)
    blocks, missed_blocks = columns.get("read_blocks"), columns.get("read_missed_blocks")
    ahead = added(value("readahead_pages"), value("prefetch_pages"))
    return {
        "page_cache_hit_ratio": _less_than_one(missed, asked),
        "page_cache_read_hit_ratio_blocks": _less_than_one(missed_blocks, blocks),
        "page_cache_misses_per_query": per(missed_blocks, sent),
        "database_misses_per_page_cache_miss": per(counter(trial, "blks_read"), missed_blocks),
        "readahead_pages_per_missed_page": per(columns.get("readahead_pages"), missed),
        "ahead_used_share": per(columns.get("ahead_used_pages"), ahead),
        "ahead_evicted_share": per(columns.get("ahead_evicted_pages"), ahead),
        "page_cache_waited_reads_per_transaction": per(columns.get("read_calls_waited"), done),
    }


def brought_pages(entry: Probe, columns: Mapping[str, int]) -> float | None:
    """Pages of one class that came from the device, as far as the probe can say."""
    return added(*(column(entry, columns, name) for name in BROUGHT))


def _brought_bytes(trial: Trial) -> float | None:
    entry, by_class = probe(trial.measure, "page_cache"), totals(trial.measure, "page_cache")
    if entry is None or by_class is None or not entry.get("page_bytes"):
        return None
    pages = added(*(brought_pages(entry, columns) for columns in by_class.values()))
    return None if pages is None else pages * float(entry["page_bytes"])


def _device_sum(trial: Trial, name: str, key: str) -> float | None:
    """A counter of a probe that counts by device, over the devices; None when it was not on."""
    by_device = totals(trial.measure, name)
    if not by_device:
        return None
    return added(*(columns.get(key) for columns in by_device.values()))


def run_ns(trial: Trial) -> float | None:
    """Time in the page-cache probe's programs; None when it was not on or does not know."""
    entry = probe(trial.measure, "page_cache")
    if entry is None or entry.get("status") != "on":
        return None
    spent = (entry.get("cost") or {}).get("run_ns")
    return None if spent is None else float(spent)


def cores_of(trial: Trial) -> int | None:
    """CPUs that server and load may use."""
    cpus = trial.data.get("cpus") or {}
    allowed = trial.measure.health.get("cpus_allowed")
    known = [cpu_list(part) or [] for part in (cpus.get("target"), cpus.get("load"), allowed)]
    return len({cpu for part in known for cpu in part}) or None


def double_cached_bytes(trial: Trial) -> float | None:
    """Bytes in both caches just after the measured segment."""
    after = (trial.data.get("double_caching") or {}).get("after") or {}
    both = (after.get("total") or {}).get("both_bytes")
    return None if both is None else float(both)


def probe_metrics(trial: Trial) -> dict[str, float | None]:
    """Every metric of metrics.PROBE_METRICS but the unexplained share, which reconcile.py gives."""
    count, sent = done_count(trial.measure), statements(trial.measure)
    done = float(count) if count else None
    seconds, cores, spent = seconds_measured(trial.measure), cores_of(trial), run_ns(trial)
    values: dict[str, float | None] = dict.fromkeys(
        (
            "page_cache_hit_ratio",
            "page_cache_read_hit_ratio_blocks",
            "page_cache_misses_per_query",
            "database_misses_per_page_cache_miss",
            "readahead_pages_per_missed_page",
            "ahead_used_share",
            "ahead_evicted_share",
            "page_cache_waited_reads_per_transaction",
            "device_read_unexplained_share",
        )
    )
    values |= _data_metrics(trial, done, sent)
    return values | {
        "page_cache_brought_bytes_per_transaction": per(_brought_bytes(trial), done),
        "double_cached_bytes": double_cached_bytes(trial),
        "buffer_head_touches_per_query": per(_device_sum(trial, "buffer_heads", "touched"), sent),
        "probe_ns_per_transaction": per(spent, done),
        "probe_core_share": None if not seconds or not cores else per(spent, seconds * 1e9 * cores),
    }
