"""Mixes of operations on files: bytes and CPU time, and each operation's count and latency by treatment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from plimsoll.analysis.files.metrics import BYTES_RATE, CPU_COST, FILE_SERVING, FILES, MIX_METRICS
from plimsoll.analysis.files.moved import RULE, moved
from plimsoll.analysis.metric import Measures
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.trial import histograms
from plimsoll.analysis.trial.latency import latency_by_kind
from plimsoll.analysis.workload import Workload
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Used

Json = dict[str, Any]
LIKE: Final = {FILES: "a mix of one's own", FILE_SERVING: "dbench-like, not comparable to published results"}
PERCENTILES: Final = ("p50", "p99", "p999", "max")
_LOG = ("bytes_per_second", "operations_per_second", "load_ns_per_mb", "machine_ns_per_mb")
_PLAIN = ("cpu_share", "machine_share", "device_read_share", "device_write_share", "system_calls_per_operation")


def is_of_files(name: object) -> bool:
    """Whether a workload is a mix of operations on files."""
    return name in LIKE


def reading(trial: Trial) -> Json | None:
    """The measured segment as `moved`; None where it left no summary, or is of another workload."""
    workload = ((trial.planned.get("resolved") or {}).get("workload") or {}).get("name")
    found = moved(trial.measure, trial.data) if is_of_files(workload) else None
    if found is None:
        return None
    calls, done = found["system_calls"], found["operations"]
    return found | {"system_calls_per_operation": None if not calls or not done else calls / done}


def values(trial: Trial) -> dict[str, float | None]:
    """The trial's metrics."""
    found = reading(trial)
    return {} if found is None else {BYTES_RATE: found["bytes_per_second"], CPU_COST: found["machine_ns_per_mb"]}


def operations(run: Run, used: Used) -> Json | None:
    """The `operations` of verdict.json; None where the load was another one."""
    workload = (run.experiment.get("workload") or {}).get("name")
    if not is_of_files(workload):
        return None
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: dict[str, list[Trial]] = {name: [] for name in run.plan.get("treatments") or {}}
    for (_, treatment), entry in sorted(used.items()):
        by_treatment.setdefault(treatment, []).append(trials[entry["number"]])
    return {
        "workload": workload,
        "like": LIKE[str(workload)],
        "rule": RULE,
        "treatments": {name: _treatment(mine) for name, mine in by_treatment.items()},
    }


def _treatment(mine: list[Trial]) -> Json:
    found = [one for trial in mine if (one := reading(trial)) is not None]
    said = [one["cache"] for one in found]
    return {
        "trials": [trial.number for trial in mine],
        **{key: _over([one[key] for one in found], log=True) for key in _LOG},
        **{key: _over([one[key] for one in found], log=False) for key in _PLAIN},
        "cache": [{"what": what, "trials": said.count(what)} for what in dict.fromkeys(said)],
        "kinds": _kinds(mine),
    }


def _kinds(mine: list[Trial]) -> list[Json]:
    """Each kind in the order of the load: counts of all trials together, latencies over blocks."""
    names = list(dict.fromkeys(kind for trial in mine for kind in trial.measure.kinds))
    latencies = [latency_by_kind(trial.measure) for trial in mine]
    means = [_means(trial) for trial in mine]
    rows = []
    for name in names:
        told = [trial.measure.by_kind.get(name) or {} for trial in mine]
        done, failed = (sum(one.get("done") or 0 for one in told), sum(one.get("failed") or 0 for one in told))
        counts = {"done": done, "failed": failed}
        if not any(counts.values()):
            continue
        each = [found.get(name) or {} for found in latencies]
        latency = {key: _over([one.get(key) for one in each], log=True) for key in PERCENTILES}
        rows.append(
            {
                "kind": name,
                **counts,
                "latency_ns": {"mean": _over([one.get(name) for one in means], log=True), **latency},
            }
        )
    return rows


def _means(trial: Trial) -> Mapping[str, float]:
    """The mean latency of each kind, from the histograms that hold every operation."""
    return {kind: mean for kind, found in histograms.of_segment(trial.measure).items() if (mean := _mean(found))}


def _mean(found: histograms.Histogram) -> float | None:
    total = found.total
    return float(((found.low + found.high - 1) / 2 * found.count).sum() / total) if total else None


def _over(known: list[float | None], *, log: bool) -> Json | None:
    values_known = [float(one) for one in known if one is not None and (one > 0 or not log)]
    estimate = over_blocks(values_known, log=log)
    return None if estimate is None else asdict(estimate)


def _judge(context: Context) -> Json | None:
    return operations(context.run, context.used)


PART = Part("operations", _judge)
MEASURES: Final = Measures(MIX_METRICS, values)
MIX: Final = Workload(FILES, is_its_own_target=True, is_committed_as_done=False)
DBENCH_LIKE: Final = Workload(FILE_SERVING, is_its_own_target=True, is_committed_as_done=False)
