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
    flows = moved(trial.measure, trial.data) if is_of_files(workload) else None
    if flows is None:
        return None
    calls, done = flows["system_calls"], flows["operations"]
    return flows | {"system_calls_per_operation": None if not calls or not done else calls / done}


def values(trial: Trial) -> dict[str, float | None]:
    """The trial's metrics."""
    flows = reading(trial)
    return {} if flows is None else {BYTES_RATE: flows["bytes_per_second"], CPU_COST: flows["machine_ns_per_mb"]}


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
        "treatments": {name: _treatment(of_treatment) for name, of_treatment in by_treatment.items()},
    }


def _treatment(trials: list[Trial]) -> Json:
    readings = [of_trial for trial in trials if (of_trial := reading(trial)) is not None]
    said = [of_trial["cache"] for of_trial in readings]
    return {
        "trials": [trial.number for trial in trials],
        **{key: _over([of_trial[key] for of_trial in readings], log=True) for key in _LOG},
        **{key: _over([of_trial[key] for of_trial in readings], log=False) for key in _PLAIN},
        "cache": [{"what": what, "trials": said.count(what)} for what in dict.fromkeys(said)],
        "kinds": _kinds(trials),
    }


def _kinds(trials: list[Trial]) -> list[Json]:
    """Each kind in the order of the load: counts of all trials together, latencies over blocks."""
    names = list(dict.fromkeys(kind for trial in trials for kind in trial.measure.kinds))
    latencies = [latency_by_kind(trial.measure) for trial in trials]
    means = [_means(trial) for trial in trials]
    rows = []
    for name in names:
        by_trial = [trial.measure.by_kind.get(name) or {} for trial in trials]
        done, failed = (
            sum(count.get("done") or 0 for count in by_trial),
            sum(count.get("failed") or 0 for count in by_trial),
        )
        counts = {"done": done, "failed": failed}
        if not any(counts.values()):
            continue
        each = [by_kind.get(name) or {} for by_kind in latencies]
        latency = {key: _over([percentiles.get(key) for percentiles in each], log=True) for key in PERCENTILES}
        rows.append(
            {
                "kind": name,
                **counts,
                "latency_ns": {"mean": _over([by_kind.get(name) for by_kind in means], log=True), **latency},
            }
        )
    return rows


def _means(trial: Trial) -> Mapping[str, float]:
    """The mean latency of each kind, from the histograms that hold every operation."""
    return {
        kind: mean for kind, histogram in histograms.of_segment(trial.measure).items() if (mean := _mean(histogram))
    }


def _mean(histogram: histograms.Histogram) -> float | None:
    total = histogram.total
    return float(((histogram.low + histogram.high - 1) / 2 * histogram.count).sum() / total) if total else None


def _over(known: list[float | None], *, log: bool) -> Json | None:
    values_known = [float(value) for value in known if value is not None and (value > 0 or not log)]
    estimate = over_blocks(values_known, log=log)
    return None if estimate is None else asdict(estimate)


def _judge(context: Context) -> Json | None:
    return operations(context.run, context.used)


PART = Part("operations", _judge)
MEASURES: Final = Measures(MIX_METRICS, values)
MIX: Final = Workload(FILES, is_its_own_target=True, is_committed_as_done=False)
DBENCH_LIKE: Final = Workload(FILE_SERVING, is_its_own_target=True, is_committed_as_done=False)
