"""Mixes of operations on files: bytes and CPU time, and each operation's count and latency by treatment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.analysis.files.document import Kind, Mix, MixMoved, Operations
from plimsoll.analysis.files.metrics import BYTES_RATE, CPU_COST, FILE_SERVING, FILES, MIX_METRICS
from plimsoll.analysis.files.moved import RULE, moved
from plimsoll.analysis.metric import OPERATION, Measures
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import over_blocks
from plimsoll.analysis.statistics.means import as_mean
from plimsoll.analysis.trial import histograms
from plimsoll.analysis.trial.latency import latency_by_kind
from plimsoll.analysis.workload import Workload
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Mean, Used

LIKE: Final = {FILES: "a mix of one's own", FILE_SERVING: "dbench-like, not comparable to published results"}
PERCENTILES: Final = ("p50", "p99", "p999", "max")


def is_of_files(name: object) -> bool:
    """Whether a workload is a mix of operations on files."""
    return name in LIKE


def reading(trial: Trial) -> MixMoved | None:
    """The measured segment as `moved`; None where it left no summary, or is of another workload."""
    workload = ((trial.planned.get("resolved") or {}).get("workload") or {}).get("name")
    flows = moved(trial.measure, trial.data) if is_of_files(workload) else None
    if flows is None:
        return None
    calls, done = flows["system_calls"], flows["operations"]
    return {**flows, "system_calls_per_operation": None if not calls or not done else calls / done}


def values(trial: Trial) -> dict[str, float | None]:
    """The trial's metrics."""
    flows = reading(trial)
    return {} if flows is None else {BYTES_RATE: flows["bytes_per_second"], CPU_COST: flows["machine_ns_per_mb"]}


def operations(run: Run, used: Used) -> Operations | None:
    """The `operations` of verdict.json; None where the load was another one."""
    workload = str((run.experiment.get("workload") or {}).get("name"))
    if not is_of_files(workload):
        return None
    trials = {trial.number: trial for trial in run.trials}
    by_treatment: dict[str, list[Trial]] = {name: [] for name in run.plan.get("treatments") or {}}
    for (_, treatment), entry in sorted(used.items()):
        by_treatment.setdefault(treatment, []).append(trials[entry["number"]])
    return {
        "workload": workload,
        "like": LIKE[workload],
        "rule": RULE,
        "treatments": {name: _treatment(of_treatment) for name, of_treatment in by_treatment.items()},
    }


def _treatment(trials: list[Trial]) -> Mix:
    readings = [of_trial for trial in trials if (of_trial := reading(trial)) is not None]
    said = [of_trial["cache"] for of_trial in readings]
    return {
        "trials": [trial.number for trial in trials],
        "bytes_per_second": _over((one["bytes_per_second"] for one in readings), log=True),
        "operations_per_second": _over((one["operations_per_second"] for one in readings), log=True),
        "load_ns_per_mb": _over((one["load_ns_per_mb"] for one in readings), log=True),
        "machine_ns_per_mb": _over((one["machine_ns_per_mb"] for one in readings), log=True),
        "cpu_share": _over((one["cpu_share"] for one in readings), log=False),
        "machine_share": _over((one["machine_share"] for one in readings), log=False),
        "device_read_share": _over((one["device_read_share"] for one in readings), log=False),
        "device_write_share": _over((one["device_write_share"] for one in readings), log=False),
        "system_calls_per_operation": _over((one["system_calls_per_operation"] for one in readings), log=False),
        "cache": [{"what": what, "trials": said.count(what)} for what in dict.fromkeys(said)],
        "kinds": _kinds(trials),
    }


def _kinds(trials: list[Trial]) -> list[Kind]:
    """Each kind in the order of the load: counts of all trials together, latencies over blocks."""
    names = list(dict.fromkeys(kind for trial in trials for kind in trial.measure.kinds))
    latencies = [latency_by_kind(trial.measure) for trial in trials]
    means = [_means(trial) for trial in trials]
    rows: list[Kind] = []
    for name in names:
        by_trial = [trial.measure.by_kind.get(name) or {} for trial in trials]
        done, failed = (
            sum(count.get("done") or 0 for count in by_trial),
            sum(count.get("failed") or 0 for count in by_trial),
        )
        if not done and not failed:
            continue
        each = [by_kind.get(name) or {} for by_kind in latencies]
        latency = {key: _over([percentiles.get(key) for percentiles in each], log=True) for key in PERCENTILES}
        rows.append(
            {
                "kind": name,
                "done": done,
                "failed": failed,
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


def _over(of_trials: Iterable[float | None], *, log: bool) -> Mean | None:
    known = [float(value) for value in of_trials if value is not None and (value > 0 or not log)]
    return as_mean(over_blocks(known, log=log))


def _judge(context: Context) -> Operations | None:
    return operations(context.run, context.used)


PART = Part("operations", _judge)
MEASURES: Final = Measures(MIX_METRICS, values)
MIX: Final = Workload(FILES, unit=OPERATION, is_its_own_target=True, is_committed_as_done=False)
DBENCH_LIKE: Final = Workload(FILE_SERVING, unit=OPERATION, is_its_own_target=True, is_committed_as_done=False)
